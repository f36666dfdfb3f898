import NodeAssembly
import Storage
import StoreSQLite
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Cursors of pubsub topics")
struct RelayCursorsTests {
    private let one = PubsubTopic.statusDefault
    private let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")
    private let time = Timestamp(rawValue: 1_800_000_000_123_456_789)

    private func withStore(_ engine: StoreEngine = .sqlite, _ body: (any Store) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let store = try NodeAssembly.store(at: try await engine.location(), in: folder.path, of: .generate())
        try await body(store)
        try store.close()
    }

    private func save(
        _ cursors: [PubsubTopic: Timestamp], of node: String? = nil, at now: Timestamp = .now(), in store: any Store
    ) async throws {
        let common = try await store.commit(RelayCursors.save(cursors, of: node, at: now))
        #expect(try store.read(RelayCursors.read(of: Array(cursors.keys))) == common || cursors.isEmpty)
    }

    @Test("Each topic has its own cursor, and keeps it while the node does not listen on it")
    func own() async throws {
        try await withStore { [one, other, time] store async throws in
            #expect(try store.read(RelayCursors.read(of: [one, other])) == [:])
            try await save([one: time], in: store)
            try await save([other: time + .seconds(1)], in: store)
            #expect(
                try store.read(RelayCursors.read(of: [one, other])) == [one: time, other: time + .seconds(1)])
        }
    }

    @Test("The cursor of an older database is used for every topic, until each has its own")
    func migrated() async throws {
        try await withStore { [one, other, time] store async throws in
            let bytes = withUnsafeBytes(of: time.rawValue.bigEndian, Array.init)
            try await store.commit(StoreCommand.change([Properties.set("relay seen until", to: bytes)]))
            #expect(try store.read(RelayCursors.read(of: [one, other])) == [one: time, other: time])
            // A relay without a cursor does not change it.
            try await save([:], in: store)
            #expect(try store.read(RelayCursors.read(of: [one])) == [one: time])
            try await save([one: time + .seconds(5)], in: store)
            #expect(try store.read(RelayCursors.read(of: [one, other])) == [one: time + .seconds(5)])
        }
    }

    // MARK: Several nodes

    @Test("Of several nodes the least cursor counts, for each topic", arguments: StoreEngine.allCases)
    func several(engine: StoreEngine) async throws {
        try await withStore(engine) { [one, other, time] store async throws in
            func common() throws -> [PubsubTopic: Timestamp] { try store.read(RelayCursors.read(of: [one, other])) }
            let now = time + .seconds(10_000)
            // An earlier release has the common cursor only.
            try await save([one: time], in: store)
            try await save([one: time + .seconds(60), other: time], of: "a", at: now, in: store)
            try await save([one: time + .seconds(30), other: time + .seconds(90)], of: "b", at: now, in: store)
            #expect(try common() == [one: time + .seconds(30), other: time])
            try await save([one: time + .seconds(100), other: time + .seconds(100)], of: "a", at: now, in: store)
            #expect(try common() == [one: time + .seconds(30), other: time + .seconds(90)])
            // A gap whose store fails takes a node back.
            try await save([one: time + .seconds(20)], of: "a", at: now, in: store)
            try await save([one: time + .seconds(110)], of: "b", at: now, in: store)
            #expect(try common() == [one: time + .seconds(20), other: time + .seconds(90)])
            // A node without cursors changes nothing.
            try await save([:], of: "c", at: now, in: store)
            #expect(try common() == [one: time + .seconds(20), other: time + .seconds(90)])
        }
    }

    @Test("A node that was removed holds the cursor for an hour, then its own is removed", arguments: StoreEngine.allCases)
    func removedNode(engine: StoreEngine) async throws {
        try await withStore(engine) { [one, time] store async throws in
            func save(_ node: String, after seconds: Int) async throws -> Timestamp? {
                let cursor = time + .seconds(seconds)
                return try await store.commit(RelayCursors.save([one: cursor], of: node, at: cursor))[one]
            }
            #expect(try await save("gone", after: 0) == time)
            #expect(try await save("a", after: 3600) == time)
            #expect(try await save("a", after: 3601) == time + .seconds(3601))
            let names = try store.read(Properties.all()).map(\.name).filter { $0.contains("relay seen") }
            #expect(Set(names) == ["relay seen until \(one.rawValue)", "relay seen until \(one.rawValue) of a"])
        }
    }

    @Test("After a time in which no node ran, all cursors count")
    func noNode() { #expect(RelayCursors.least(of: [time, time + .seconds(60)], at: time + .seconds(86_400)) == time) }

    @Test("A node whose clock is ahead neither advances the cursor nor excludes the others")
    func clockAhead() {
        #expect(RelayCursors.least(of: [time, time + .seconds(7200)], at: time) == time)
        #expect(RelayCursors.least(of: [time - .seconds(60), time + .seconds(7200)], at: time) == time - .seconds(60))
        #expect(RelayCursors.least(of: [time - .seconds(7200), time], at: time) == time)
        // Of a node that is gone.
        #expect(RelayCursors.least(of: [time - .seconds(7200), time + .seconds(3600)], at: time) == time - .seconds(7200))
    }

    /// Three nodes stop and start for some minutes at a time, the third with a relay that may be cut off from the network, or from all but some nodes
    /// there. Every message that a relay of the network had is received by a node, live or from its store.
    @Test(arguments: 1...8)
    func simulatedNodes(seed: UInt64) async throws {
        try await withStore { [one] store async throws in
            var simulation = CursorSimulation(topic: one, seed: seed)
            try await simulation.start(0, isCutOff: false, in: store)
            for _ in 0..<200 {
                if let node = simulation.step() { try await simulation.save(node, in: store) }
                try await simulation.startOrStop(in: store)
            }
            for node in 0..<3 { try await simulation.start(node, isCutOff: false, in: store) }
            #expect(simulation.missing.isEmpty, "seed \(seed): lost \(simulation.missing.count) of \(simulation.sent)")
            #expect(simulation.sent > 100 && simulation.recovered > 0)
        }
    }
}

private struct CursorSimulation {
    private struct Node {
        var heard: HeardMessages
        var isCutOff: Bool
    }

    private let topic: PubsubTopic
    private var random: SeededGenerator
    private var now = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private var nodes: [Node?] = [nil, nil, nil]
    private(set) var missing: [Timestamp] = []
    private(set) var sent = 0
    private(set) var recovered = 0

    init(topic: PubsubTopic, seed: UInt64) {
        self.topic = topic
        random = SeededGenerator(seed: seed)
    }

    private func message(at time: Timestamp) -> ReceivedMessage {
        ReceivedMessage(
            message: WakuMessage(payload: [1], contentTopic: ContentTopic(TopicTag(rawValue: 1)), timestamp: time), pubsubTopic: topic)
    }

    /// - Returns: a running node whose turn it is to store its cursors.
    mutating func step() -> Int? {
        now = now + .seconds(Int.random(in: 1...30, using: &random))
        sent += 1
        var isReceived = false
        for node in nodes {
            // A relay that is cut off still has some messages of its own.
            guard let node, !node.isCutOff || Bool.random(using: &random) else { continue }
            node.heard.note([message(at: now)], at: now)
            isReceived = isReceived || !node.isCutOff
        }
        if !isReceived { missing.append(now) }
        return nodes.indices.filter { nodes[$0] != nil }.randomElement(using: &random)
    }

    /// Its relay always says that nothing is missing.
    func save(_ number: Int, in store: any Store) async throws {
        guard let node = nodes[number] else { return }
        _ = try await store.commit(RelayCursors.save(node.heard.limit([topic: now]), of: "\(number)", at: now))
    }

    mutating func startOrStop(in store: any Store) async throws {
        guard Int.random(in: 0..<8, using: &random) == 0 else { return }
        let number = Int.random(in: 0..<3, using: &random)
        guard nodes[number] != nil else {
            return try await start(number, isCutOff: number == 2 && Int.random(in: 0..<4, using: &random) > 0, in: store)
        }
        // Others are killed.
        if Bool.random(using: &random) { try await save(number, in: store) }
        nodes[number] = nil
    }

    mutating func start(_ number: Int, isCutOff: Bool, in store: any Store) async throws {
        let cursors = try store.read(RelayCursors.read(of: [topic]))
        let heard = HeardMessages(after: cursors, startedAt: now)
        nodes[number] = Node(heard: heard, isCutOff: isCutOff)
        if !isCutOff, let cursor = cursors[topic] {
            let found = missing.filter { $0 >= cursor }
            recovered += found.count
            missing.removeAll { $0 >= cursor }
            heard.note(found.map(message), at: now)
        }
        try await save(number, in: store)
    }
}
