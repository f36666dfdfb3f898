import NodeAPI
import NodeMetrics
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import StatusV01Server

struct V01ServiceTests {
    private let fixture: V01StoreFixture

    init() throws {
        fixture = try V01StoreFixture()
    }

    @Test func registeredDevicesAreMeasured() async throws {
        let identity = PrivateKey.generate()
        let account = V01Account(of: identity.publicKey)
        try await fixture.take(account.register(version: 1), of: account)
        let node = BareNode(fixture.store, of: .statusV01, metrics: StatusPushV01.description.metrics)
        let service = try StatusPushV01(identity: identity).makeService(node.services)
        // Unlike a scrape, it waits for a slow store.
        await service.countDevices()
        await service.updateGauges(node.services.counters)
        let text = node.services.counters.registry.exposition(as: .text)
        #expect(text.contains("\nwaku_push_registrations{protocol=\"status-v0.1\",platform=\"apn\",state=\"registered\"} 1.0\n"))
    }
}
