import Core
import NodeAPI
import NodeAssembly
import NodeMetrics
import RateLimits
import SessionProtocol
import Storage
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
