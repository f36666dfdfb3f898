import Core
import NodeAPI
import NodeAssembly
import NodeMetrics
import RateLimits
import SessionProtocol
import Storage
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import SessionServer

@Suite(.timeLimit(.minutes(5))) struct SessionServiceTests {
    private let folder: TemporaryFolder
    private let faults: StoreFaults
    private let store: any Store
    private let sodium: Sodium
    private let monitor = FakeMonitor()

    init() throws {
        folder = try TemporaryFolder()
        faults = StoreFaults(in: folder.path)
        store = try NodeAssembly.store(at: .dataFolder, in: folder.path, of: .generate())
        sodium = try Sodium.load()
    }

    private func node(_ store: any Store) -> BareNode {
        BareNode(store, of: .session, metrics: SessionPush.description.metrics, hasTopics: false)
    }

    private func service(_ node: BareNode, _ monitor: FakeMonitor, port: UInt16 = 0) throws -> any ProtocolService {
        let key = try #require(OnionKey(SecretBytes.random(count: 32), sodium: sodium))
        return try SessionPush(SessionPush.Configuration(monitor, onionKey: key, sodium: sodium, port: Int(port))).makeService(
            node.services)
    }

    /// Stores subscriptions of an account.
    private func subscribe(_ account: SessionAccount, count: Int) async throws -> AppliedRequests {
        let requests = (0..<count).map { _ in SessionRequest.subscribe(account.subscription(SessionDevice())) }
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: count)
        return try await store.commit(Subscriptions(store.sealer, sodium: sodium).apply(requests, rules, at: .now) { _ in nil })
    }

    @Test func aNodeThatCannotListenDoesNotWaitForAStoreThatFails() async throws {
        let account = try SessionAccount.sessionID()
        _ = try await subscribe(account, count: 1)
        let (node, port) = (node(store), try ReservedPort())
        let service = try service(node, monitor, port: port.number)
        await #expect(throws: NodeError.self) { try await service.run() }
        // The node has not begun its work, and storage servers were asked for nothing.
        #expect(!service.hasPort && monitor.monitored.isEmpty)
        faults.add(.code(13), to: .write)
        await monitor.report([message(for: account)])
        #expect(node.services.counters.count(.sessionDropped(.notStored)) == 1)
        withExtendedLifetime(port) {}
    }

    /// Reads of the rows on damaged pages fail.
    private final class DamagedStore: Store {
        private static let damage = StoreError(code: .damaged, message: "as the test says")

        private let base: any Store
        private let damaged: Mutex<Set<Int64>>
        private var rows: Set<Int64> { damaged.withLock(\.self) }

        init(_ base: any Store, rows: Set<Int64>) {
            self.base = base
            damaged = Mutex(rows)
        }

        func mend() { damaged.withLock { $0 = [] } }

        func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
            let results = try base.readEach(commands)
            return zip(commands, results).map { command, result in
                guard case .read(let reads, _) = command, reads.contains(where: { !rows.isDisjoint(with: $0.ids) }) else { return result }
                return .failure(Self.damage)
            }
        }

        func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) {
            if case .integer(let first)? = read.arguments.first, case .integer(let end)? = read.arguments.last,
                rows.contains(where: { first <= $0 && $0 < end })
            {
                throw Self.damage
            }
            try base.scan(read, visit)
        }

        var sealer: Sealer { base.sealer }
        func submit<Outcome>(
            _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
        ) { base.submit(commands, completion: completion) }
        func afterCommits(_ body: @escaping @Sendable () -> Void) { base.afterCommits(body) }
        func onReader(_ body: @escaping @Sendable () -> Void) { base.onReader(body) }
        var failure: String? { base.failure }
        var byteCount: Int { base.byteCount }
        func maintain() async { await base.maintain() }
        func recheck() async { await base.recheck() }
        func close() throws { try base.close() }
    }

    @Test func subscriptionsThatCannotBeReadHideNoOthers() async throws {
        let applied = try await subscribe(try SessionAccount.sessionID(), count: 10)
        let all = applied.monitoring.compactMap { if case .set(let one) = $0 { one } else { nil } }
        // One on a damaged page, and one with a value of another kind.
        let lost = try #require(all.dropFirst(3).first)
        let altered = Mutation(SessionStorage.subscription, .updateAny([SessionStorage.name], where: [.equal(.id)]))
        try await store.commit(.change([altered(.integer(5), .integer(all[6].id.rawValue))]))
        let readable = Set(all.map(\.id)).subtracting([lost.id, all[6].id])

        let damaged = DamagedStore(store, rows: [lost.id.rawValue])
        let service = try service(node(damaged), monitor)
        try await service.reload()
        #expect(Set(monitor.monitored.keys) == readable)
        // Storage servers are asked for the others, and it is not taken for one that has ended.
        monitor.set(lost)
        #expect(Set(try await monitor.entries(of: all.map(\.id)).keys) == readable)
        #expect(monitor.monitored[lost.id] != nil)
        // A disk that failed for a while.
        monitor.remove(lost.id)
        await (service as? SessionService)?.loadUnreadable()
        #expect(monitor.monitored[lost.id] == nil)
        damaged.mend()
        await (service as? SessionService)?.loadUnreadable()
        #expect(monitor.monitored[lost.id] == lost)
        withExtendedLifetime(service) {}
    }

    @Test func theMonitorIsReleasedWithItsService() throws {
        weak var released: FakeMonitor?
        do {
            let monitor = FakeMonitor()
            released = monitor
            _ = try service(node(store), monitor)
        }
        #expect(released == nil)
    }

    @Test func gaugesShowWhatTheMonitorReaches() async throws {
        let node = node(store)
        var figures = SubscriptionMonitor.Figures()
        (figures.knownServers, figures.connectedServers) = (5, 4)
        (figures.knownSwarms, figures.reachableSwarms, figures.monitoredSubscriptions) = (3, 2, 1)
        monitor.figures = figures
        try await service(node, monitor).updateGauges(node.services.counters)
        let exposition = node.services.counters.registry.exposition()
        for sample in [
            "storage_servers{state=\"known\"} 5", "storage_servers{state=\"connected\"} 4", "swarms{state=\"known\"} 3",
            "swarms{state=\"connected\"} 2", "monitored_subscriptions 1",
        ] {
            #expect(exposition.contains("waku_push_session_\(sample).0\n"), "\(sample)")
        }
    }
}
