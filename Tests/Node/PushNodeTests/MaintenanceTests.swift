import Core
import Delivery
import Logging
import NodeAPI
import NodeAssembly
@testable import PushNode
import ServiceLifecycle
import Storage
import StoreSQLite
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("Maintenance", .timeLimit(.minutes(2)))
struct MaintenanceTests {
    /// The calls of maintenance.
    private final class Calls: Sendable {
        /// Of `recount`, before the first call of `prune`.
        let minutes = Atomic(0)
        let isPruning = Atomic(false)
        /// Of the last call of `prune`.
        let retention = Mutex<Retention?>(nil)
        let hasExpired = Atomic(false)
    }

    private final class Counted: Sendable {
        let count = Atomic(0)
    }

    /// A protocol that prunes until the node stops.
    private struct PruningProtocol: NodeProtocol, ProtocolService {
        static let description = EchoProtocol.description
        let calls: Calls
        var attack: String?
        var number: ProtocolNumber { Self.description.number }
        var topics: any WakuTopics { EchoProtocol() }
        var limitReport: LimitReport? { LimitReport(refusals: [], payers: [], attack: attack) }

        func makeService(_ node: NodeServices) throws -> any ProtocolService { self }

        func recount() async { if !calls.isPruning.load(ordering: .relaxed) { calls.minutes.add(1, ordering: .relaxed) } }

        func prune(_ retention: Retention) async {
            calls.retention.withLock { $0 = retention }
            calls.isPruning.store(true, ordering: .relaxed)
            while (try? await Task.sleep(for: .seconds(3600))) != nil {}
        }

        func expire(at now: Timestamp) async { calls.hasExpired.store(true, ordering: .relaxed) }
    }

    @Test("Nothing is removed in the first nine minutes; then a stop waits for the operation in progress, and not for the rest of a round")
    func stopDuringRound() async throws {
        let (calls, relay, folder) = (Calls(), FeedRelay(), try TemporaryFolder())
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var configuration = NodeConfiguration(identity: .generate(), dataPath: folder.path)
        configuration.maintenanceInterval = .milliseconds(1)
        configuration.maximumRequestAge = .seconds(300)
        let node = try NodeService(
            configuration, protocols: [PruningProtocol(calls: calls)], gorush: [GorushEndpoint(ScriptedGorush())], logger: quiet
        ) { _ in relay }
        let services = ServiceGroup(services: [node], logger: quiet)
        async let run: Void = services.run()
        try await node.wait { calls.isPruning.load(ordering: .relaxed) }
        // More on a busy machine, where the removal begins later than it is decided.
        #expect(calls.minutes.load(ordering: .relaxed) >= 10)
        let last = calls.retention.withLock { $0 }
        let retention = try #require(last)
        #expect(retention.now.since(retention.fresh) == .seconds(300))
        await services.triggerGracefulShutdown()
        try await run
        let hasExpired = calls.hasExpired.load(ordering: .relaxed)
        #expect(!hasExpired)
        withExtendedLifetime(folder) {}
    }

    @Test("While the clock is known to be far ahead, nothing is removed")
    func clockAhead() async throws {
        let (calls, folder) = (Calls(), try TemporaryFolder())
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var configuration = NodeConfiguration(identity: .generate(), dataPath: folder.path)
        configuration.maintenanceInterval = .milliseconds(1)
        let node = try NodeService(
            configuration, protocols: [PruningProtocol(calls: calls)], gorush: [GorushEndpoint(ScriptedGorush())], logger: quiet
        ) { _ in FeedRelay() }
        node.base.clock.compared(ahead: .seconds(15 * 86_400), of: "the Waku node's")
        let services = ServiceGroup(services: [node], logger: quiet)
        async let run: Void = services.run()
        try await node.wait { calls.minutes.load(ordering: .relaxed) > 15 }
        let isPruning = calls.isPruning.load(ordering: .relaxed)
        #expect(!isPruning)
        node.base.clock.compared(ahead: .zero, of: "the Waku node's")
        try await node.wait { calls.isPruning.load(ordering: .relaxed) }
        await services.triggerGracefulShutdown()
        try await run
        withExtendedLifetime(folder) {}
    }

    @Test("While a long log is copied or all rows are read again, minutes go on, and rows are removed; a stop cancels both")
    func longWorkOfTheStore() async throws {
        let (calls, pauses, relay, folder) = (Calls(), Counted(), FeedRelay(), try TemporaryFolder())
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var configuration = NodeConfiguration(identity: .generate(), dataPath: folder.path)
        configuration.maintenanceInterval = .milliseconds(1)
        let storageKey = Sealer.storageKey(of: configuration.identity)
        let node = try NodeService(
            configuration, protocols: [PruningProtocol(calls: calls)], gorush: [GorushEndpoint(ScriptedGorush())], logger: quiet,
            openStore: { parts in
                FaultyStore(
                    try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: parts),
                    pause: {
                        pauses.count.add(1, ordering: .relaxed)
                        while (try? await Task.sleep(for: .seconds(3600))) != nil {}
                    })
            }, makeRelay: { _ in relay })
        let services = ServiceGroup(services: [node], logger: quiet)
        async let run: Void = services.run()
        try await node.wait { calls.isPruning.load(ordering: .relaxed) }
        #expect(pauses.count.load(ordering: .relaxed) == 2)
        await services.triggerGracefulShutdown()
        try await run
        withExtendedLifetime(folder) {}
    }

    @Test("Deliveries and answers are remembered for a day, or as long as their request may come again", arguments: [300, 86_400, 172_800])
    func retention(age: Int) {
        var configuration = NodeConfiguration(identity: .generate(), dataPath: "")
        configuration.maximumRequestAge = .seconds(age)
        #expect(configuration.retention == .seconds(max(age, 86_400)))
    }

    @Test("An attack is logged when it begins")
    func attack() async throws {
        let (calls, log, folder) = (Calls(), RecordedLog(), try TemporaryFolder())
        var configuration = NodeConfiguration(identity: .generate(), dataPath: folder.path)
        configuration.maintenanceInterval = .milliseconds(1)
        let node = try NodeService(
            configuration, protocols: [PruningProtocol(calls: calls, attack: "600 refused")], gorush: [GorushEndpoint(ScriptedGorush())],
            logger: log.logger
        ) { _ in FeedRelay() }
        let services = ServiceGroup(services: [node], logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() })
        async let run: Void = services.run()
        // After ten minutes of the attack.
        try await node.wait { calls.isPruning.load(ordering: .relaxed) }
        #expect(log.lines.filter { $0.contains("under attack") } == ["warning under attack reason=600 refused"])
        await services.triggerGracefulShutdown()
        try await run
        withExtendedLifetime(folder) {}
    }

    @Test("The log says when the store fails, and when it works again")
    func storeAvailableAgain() async throws {
        let (log, relay, folder) = (RecordedLog(), FeedRelay(), try TemporaryFolder())
        let faults = StoreFaults(in: folder.path)
        var configuration = NodeConfiguration(identity: .generate(), dataPath: folder.path)
        configuration.maintenanceInterval = .milliseconds(1)
        let node = try NodeService(
            configuration, protocols: [EchoProtocol()], gorush: [GorushEndpoint(ScriptedGorush())], logger: log.logger
        ) { _ in relay }
        let services = ServiceGroup(services: [node], logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() })
        async let run: Void = services.run()
        try await node.wait { log.contains("node started") }
        #expect(!log.contains("store available again"))
        // SQLITE_IOERR_WRITE.
        faults.add(.code(778), to: .write)
        try await node.wait { log.contains("error store unavailable reason=the disk fails") }
        #expect(!log.contains("store available again"))
        faults.clear()
        try await node.wait { log.contains("store available again") }
        await services.triggerGracefulShutdown()
        try await run
        withExtendedLifetime(folder) {}
    }
}
