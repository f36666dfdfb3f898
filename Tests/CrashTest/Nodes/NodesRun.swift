import NodeAssembly
import Foundation
import LoopbackRelay
import LoopbackServer
import StorePostgreSQL
import Synchronization
import TestSupport

/// Injects failures into the nodes of a server in turn, under load, and checks the database after each round.
final class NodesRun: Sendable {
    /// Longer than a lease.
    private static let suspensions = 5.5...9.0

    private enum Suffering: String, CaseIterable {
        case kill = "kill -9 of a node", killAfterReply = "kill -9 right after a reply of gorush's"
        case killAfterAnswer = "kill -9 right after an answer", suspension = "a node suspended", stop = "a node stopped in order"
        case cut = "a node cut off from PostgreSQL", killOfPostgreSQL = "PostgreSQL killed"
    }

    private let crash: CrashRun
    private let bridge: BridgedNetworks
    private let server: PostgreSQLServer
    private let proxies: [PostgreSQLProxy]
    private let seed: UInt64
    private let ports = Mutex<[Int]>([])

    private var stage: Stage { crash.stage }
    private var count: Int { bridge.networks.count }

    init(_ crash: CrashRun, _ bridge: BridgedNetworks, _ server: PostgreSQLServer, seed: UInt64) throws {
        self.crash = crash
        self.bridge = bridge
        self.server = server
        self.seed = seed
        proxies = try bridge.networks.map { _ in try PostgreSQLProxy(server) }
    }

    /// - Throws: ``Failed``, with the round.
    func run(rounds: Int) async throws {
        crash.ledger.withLock { ledger in
            ledger.mayFailToStore = crash.stage.mayFailToStore
        }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask { [bridge] in
                await bridge.run()
                return false
            }
            let (relayPorts, bound) = AsyncStream.makeStream(of: (Int, Int).self)
            for (place, network) in bridge.networks.enumerated() {
                group.addTask {
                    try await LoopbackServer(network: network, port: 0).run { bound.yield((place, $0)) }
                    return false
                }
            }
            group.addTask { [self] in
                var found: [Int: Int] = [:]
                for await (place, port) in relayPorts {
                    found[place] = port
                    if found.count == count { break }
                }
                ports.withLock { [found] ports in ports = (0..<count).map { found[$0] ?? 0 } }
                try await endure(rounds)
                return true
            }
            defer { group.cancelAll() }
            for try await isDone in group where isDone { break }
        }
    }

    private func endure(_ rounds: Int) async throws {
        var nodes: [DaemonProcess] = []
        for place in 0..<count { nodes.append(try start(place)) }
        for node in nodes { try await crash.noteReady(node) }
        let first = nodes
        try await crash.withClients { [self] in
            var nodes = first
            var generator = SeededGenerator(seed: seed &+ 1)
            for round in 1...rounds {
                try await inRound(round, { nodes }) {
                    stage.gorush.set(mood(&generator))
                    let before = nodes.map(\.number)
                    try await suffer(&nodes, &generator)
                    for node in nodes {
                        if before.contains(node.number) { _ = try await node.waitUntilReady() } else { try await crash.noteReady(node) }
                    }
                    try await crash.check(nodes[0], &generator)
                }
            }
            try await inRound(rounds + 1, { nodes }) { try await finish(nodes, &generator) }
        }
    }

    /// Adds the nodes' last log lines to a failure.
    private func inRound(_ round: Int, _ nodes: () -> [DaemonProcess], _ body: () async throws -> Void) async throws {
        do {
            try await crash.inRound(round, body)
        } catch {
            throw Failed("\(error)\n" + nodes().map { "node \($0.number):\n\($0.lastLines)" }.joined(separator: "\n"))
        }
    }

    private func mood(_ generator: inout SeededGenerator) -> GorushStandIn.Mood {
        switch Int.random(in: 0..<100, using: &generator) {
        case ..<60: .well(0...10)
        case ..<85: .well(20...400)
        default: .failing
        }
    }

    /// Starts a node with its own number, and its own connection to PostgreSQL.
    private func start(_ place: Int) throws -> DaemonProcess {
        guard case .postgreSQL(let address) = stage.location else { throw Failed("several nodes need PostgreSQL") }
        let line = address.connectionString.replacing("host=\(server.folder)", with: "host=\(proxies[place].path)")
        let number = crash.ledger.withLock { $0.started() }
        return try stage.start(
            number, data: stage.dataPath + "-\(place)",
            arguments: [
                "--max-request-age", "2h", "--cluster", "node-\(place)", "--gorush-timeout",
                "\(DeliveryHistory.gorushTimeout.components.seconds)s", "--store", line,
            ] + V01Crash.arguments, relayPort: ports.withLock { $0[place] })
    }

    // MARK: Rounds

    private func suffer(_ nodes: inout [DaemonProcess], _ generator: inout SeededGenerator) async throws {
        guard let suffering = Suffering.allCases.randomElement(using: &generator) else { return }
        let place = Int.random(in: 0..<count, using: &generator)
        crash.ledger.withLock { $0.figures.noteSuffering(suffering.rawValue) }
        let node = nodes[place]
        let moment = Double.random(in: 0...1, using: &generator)
        switch suffering {
        case .kill:
            try await Task.sleep(for: .milliseconds(600) * moment)
            try await crash.kill(node)
        case .killAfterReply:
            await crash.replies.wait(for: Int.random(in: 1...10, using: &generator), limit: .seconds(2))
            try await Task.sleep(for: .milliseconds(3) * moment)
            try await crash.kill(node)
        case .killAfterAnswer:
            await crash.ledger.answers.wait(for: Int.random(in: 1...10, using: &generator), limit: .seconds(2))
            try await Task.sleep(for: .milliseconds(3) * moment)
            try await crash.kill(node)
        case .stop: try await crash.stop(node)
        case .suspension:
            try await Task.sleep(for: .milliseconds(300) * moment)
            crash.ledger.withLock { $0.ended(node.number, .suspended(.now)) }
            node.process.send(SIGSTOP)
            try await Task.sleep(for: .seconds(Double.random(in: Self.suspensions, using: &generator)))
            node.process.send(SIGCONT)
        case .cut:
            // Like a pulled cable: no data passes, and neither side is notified.
            crash.ledger.withLock { $0.ended(node.number, .suspended(.now)) }
            proxies[place].inspect { _, _ in .hold }
            try await Task.sleep(for: .seconds(Double.random(in: Self.suspensions, using: &generator)))
            proxies[place].inspect { _, _ in .pass }
            proxies[place].cutAll()
        case .killOfPostgreSQL:
            try await Task.sleep(for: .milliseconds(600) * moment)
            try await blocking { [server] in try server.kill() }
            try await Task.sleep(for: .seconds(2) * moment)
            try await blocking { [server] in try server.start() }
        }
        switch suffering {
        case .kill, .killAfterReply, .killAfterAnswer, .stop:
            // Other nodes do its work for a while, or the time is too short for that.
            try await Task.sleep(for: .seconds(7) * Double.random(in: 0...1, using: &generator) * moment)
            nodes[place] = try start(place)
        case .suspension, .cut, .killOfPostgreSQL: break
        }
    }

    private func blocking(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// With gorush available and no load, everything must be delivered.
    private func finish(_ nodes: [DaemonProcess], _ generator: inout SeededGenerator) async throws {
        stage.gorush.set(.well(0...5))
        try await crash.awaitClientsAndOutbox()
        try await crash.check(nodes[0], &generator, isLast: true)
        for node in nodes { try await crash.stop(node) }
        crash.ledger.withLock { $0.checkAllDelivered() }
        try crash.v01.checkAllDelivered()
    }
}
