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
    @Test func aNodeThatCannotListenDoesNotWaitForAStoreThatFails() async throws {
        let folder = try TemporaryFolder()
        let faults = StoreFaults(in: folder.path)
        let store = try NodeAssembly.store(at: .dataFolder, in: folder.path, of: .generate())
        let (sodium, account) = (try Sodium.load(), try SessionAccount.sessionID())
        let subscribe = SessionRequest.subscribe(account.subscription(SessionDevice(), at: .now))
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: 1)
        try await store.commit(
            Subscriptions(store.sealer, isShared: false, sodium: sodium).apply([subscribe], rules, at: .now) { _ in nil })

        let (node, monitor) = (
            BareNode(store, of: .session, metrics: SessionPush.description.metrics, hasTopics: false), FakeMonitor()
        )
        let port = try ReservedPort()
        let service = try SessionPush(
            SessionPush.Configuration(
                httpAddress: SocketAddress(host: "127.0.0.1", port: Int(port.number)),
                onionKey: try #require(OnionKey(SecretBytes.random(count: 32), sodium: sodium)), sodium: sodium, makeMonitor: monitor.make)
        ).makeService(node.services)
        await #expect(throws: NodeError.self) { try await service.run() }
        faults.add(.code(13), to: .write)
        await monitor.report([message(for: account)])
        #expect(node.services.counters.count(.sessionDropped(.notStored)) == 1)
        withExtendedLifetime((port, folder)) {}
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
        func close() throws { try base.close() }
    }

    @Test func subscriptionsThatCannotBeReadHideNoOthers() async throws {
        let folder = try TemporaryFolder()
        let base = try NodeAssembly.store(at: .dataFolder, in: folder.path, of: .generate())
        let (sodium, account, monitor) = (try Sodium.load(), try SessionAccount.sessionID(), FakeMonitor())
        let requests = (0..<10).map { _ in SessionRequest.subscribe(account.subscription(SessionDevice(), at: .now)) }
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: 10)
        let applied = try await base.commit(Subscriptions(base.sealer, sodium: sodium).apply(requests, rules, at: .now) { _ in nil })
        let all = applied.monitoring.compactMap { if case .set(let one) = $0 { one } else { nil } }
        // One on a damaged page, and one with a value of another kind.
        let lost = try #require(all.dropFirst(3).first)
        let altered = Mutation(SessionStorage.subscription, .updateAny([SessionStorage.name], where: [.equal(.id)]))
        try await base.commit(.change([altered(.integer(5), .integer(all[6].id.rawValue))]))
        let readable = Set(all.map(\.id)).subtracting([lost.id, all[6].id])

        let store = DamagedStore(base, rows: [lost.id.rawValue])
        let node = BareNode(store, of: .session, metrics: SessionPush.description.metrics, hasTopics: false)
        let service = try SessionPush(
            SessionPush.Configuration(
                httpAddress: SocketAddress(host: "127.0.0.1", port: 0),
                onionKey: try #require(OnionKey(SecretBytes.random(count: 32), sodium: sodium)), sodium: sodium, makeMonitor: monitor.make)
        ).makeService(node.services)
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
        store.mend()
        await (service as? SessionService)?.loadUnreadable()
        #expect(monitor.monitored[lost.id] == lost)
        withExtendedLifetime((folder, service)) {}
    }

    @Test func theMonitorIsReleasedWithItsService() throws {
        let folder = try TemporaryFolder()
        let store = try NodeAssembly.store(at: .dataFolder, in: folder.path, of: .generate())
        let node = BareNode(store, of: .session, metrics: SessionPush.description.metrics, hasTopics: false)
        let sodium = try Sodium.load()
        weak var released: FakeMonitor?
        do {
            let monitor = FakeMonitor()
            released = monitor
            _ = try SessionPush(
                SessionPush.Configuration(
                    httpAddress: SocketAddress(host: "127.0.0.1", port: 0),
                    onionKey: try #require(OnionKey(SecretBytes.random(count: 32), sodium: sodium)), sodium: sodium,
                    makeMonitor: monitor.make)
            ).makeService(node.services)
        }
        #expect(released == nil)
        withExtendedLifetime(folder) {}
    }

    @Test func gaugesShowWhatTheMonitorReaches() async throws {
        let folder = try TemporaryFolder()
        let store = try NodeAssembly.store(at: .dataFolder, in: folder.path, of: .generate())
        let node = BareNode(store, of: .session, metrics: SessionPush.description.metrics, hasTopics: false)
        let (sodium, monitor) = (try Sodium.load(), FakeMonitor())
        var figures = SubscriptionMonitor.Figures()
        (figures.knownServers, figures.connectedServers) = (5, 4)
        (figures.knownSwarms, figures.reachableSwarms, figures.monitoredSubscriptions) = (3, 2, 1)
        monitor.figures = figures
        let service = try SessionPush(
            SessionPush.Configuration(
                httpAddress: SocketAddress(host: "127.0.0.1", port: 0),
                onionKey: try #require(OnionKey(SecretBytes.random(count: 32), sodium: sodium)), sodium: sodium, makeMonitor: monitor.make)
        ).makeService(node.services)
        await service.updateGauges(node.services.counters)
        let exposition = node.services.counters.registry.exposition(as: .text)
        for sample in [
            "storage_servers{state=\"known\"} 5", "storage_servers{state=\"connected\"} 4", "swarms{state=\"known\"} 3",
            "swarms{state=\"connected\"} 2", "monitored_subscriptions 1",
        ] {
            #expect(exposition.contains("waku_push_session_\(sample).0\n"), "\(sample)")
        }
        withExtendedLifetime(folder) {}
    }
}
