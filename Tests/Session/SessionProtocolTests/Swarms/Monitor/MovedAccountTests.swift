import Foundation
import Core
@testable import SessionProtocol
import SessionStandIns
import TestSupport
import Testing

/// Storage servers of this process that send accounts elsewhere, over sockets.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct MovesOverSocketsTests {
    private static let (old, new): (UInt64, UInt64) = (1 << 40, 1 << 41)
    private static let serverCount = 5

    /// Set `SESSION_MOVE_COUNT` for measurements.
    private static let accountCount = ProcessInfo.processInfo.environment["SESSION_MOVE_COUNT"].flatMap { Int($0) } ?? 1000

    /// Runs a monitor of accounts at servers of one swarm; the servers of the other swarm are not in the map.
    private func withMonitor(
        _ configure: (inout SubscriptionMonitor.Configuration) -> Void = { _ in },
        _ body: (StorageServerStandIn, [AccountID], Inbox, EventCounts, RecordedLog) async throws -> Void
    ) async throws {
        let swarms = [Self.old, Self.new].flatMap { [UInt64](repeating: $0, count: Self.serverCount) }
        let folder = try TemporaryFolder()
        let (store, inbox, events, log) = (StoredEntries(), Inbox(), EventCounts(), RecordedLog())
        try await StorageServerStandIn.running(sodium: .load(), swarms: swarms) { servers in
            let listed = servers.descriptions.filter { $0.swarm == Self.old }
            let path = folder.path + "/nodes.json"
            try Data(StorageServerStandIn.nodesFile(listed).utf8).write(to: URL(fileURLWithPath: path))
            var configuration = SubscriptionMonitor.Configuration(source: .file(path))
            configure(&configuration)
            let monitor = SubscriptionMonitor(
                configuration, sodium: try .load(), entries: store, receiver: inbox, logger: log.logger, count: { events.add($0) })
            let accounts = (0..<Self.accountCount).map { account(UInt64($0)) }
            let all = accounts.enumerated().map { index, account in
                let authority = SignedAuthority(
                    account: account, sessionKey: nil, delegation: .none, signedAt: 1,
                    signature: Confidential([UInt8](repeating: 1, count: 64)))
                let entry = MonitorEntry(authority, namespaces: [0], wantsData: true)
                let id = SubscriptionID(rawValue: Int64(index))
                store.set(id, entry)
                return MonitoredSubscription(id: id, account: account, entryByteCount: entry.bytes.count)
            }
            let running = Task { try await monitor.run() }
            monitor.load(all)
            try await eventually { servers.figures.accepted == accounts.count * Self.serverCount }
            try await body(servers, accounts, inbox, events, log)
            running.cancel()
            try await running.value
        }
    }

    @Test func accountsThatMoveAreMonitoredAtTheServersThatAreNamed() async throws {
        // The old servers are not asked again during the test, however slow the machine is.
        try await withMonitor {
            $0.swarms.pauses = [.seconds(600)]
        } _: { servers, accounts, inbox, events, log in
            let start = ContinuousClock.now
            #expect(servers.move(accounts, to: Self.new) == accounts.count * Self.serverCount)
            // Includes repeated requests to the old servers, if the move takes longer than their first pause.
            try await eventually { servers.figures.accepted >= 2 * accounts.count * Self.serverCount }
            try await eventually { servers.monitorCount(in: Self.new) == accounts.count * Self.serverCount }
            print("\(accounts.count) accounts at \(Self.serverCount) servers moved in \(ContinuousClock.now - start)")
            try await eventually { events.count(.ended) == accounts.count * Self.serverCount }
            #expect(servers.monitorCount(in: Self.new) == accounts.count * Self.serverCount)
            #expect(servers.report(.sample(of: accounts[0], hash: PythonNetwork.hash("moved"))) == Self.serverCount)
            try await eventually { inbox.hashes.count == Self.serverCount }
            #expect(events.count(.disconnected) == 0, "\(log.lines)")
        }
    }

    @Test func unknownCommandsEndNoConnectionAndThoseThatSendTooManyAreReadSlowly() async throws {
        try await withMonitor { configuration in
            (configuration.drops.burst, configuration.drops.rate) = (100, 200)
        } _: { servers, accounts, inbox, events, log in
            for _ in 0..<200 { servers.send(command: "notify.other", [1]) }
            #expect(servers.report(.sample(of: accounts[0], hash: PythonNetwork.hash("behind"))) == Self.serverCount)
            try await eventually { inbox.hashes.count == Self.serverCount }
            #expect(events.dropped(.unknownCommand) == 200 * Self.serverCount)
            #expect(log.contains("reading slowly from storage server: too many invalid messages"))
            #expect(events.count(.disconnected) == 0, "\(log.lines)")
        }
    }
}
