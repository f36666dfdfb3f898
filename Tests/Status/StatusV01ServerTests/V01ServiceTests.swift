import Core
import Delivery
import NodeAPI
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import Storage
import StoreSQLite
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import StatusV01Server

struct V01ServiceTests {
    private let fixture: V01StoreFixture

    init() throws {
        fixture = try V01StoreFixture()
    }

    private func request(_ account: V01Account, _ number: UInt8) -> V01.Request {
        V01.Request(requests: [account.entry()], message: [1], messageID: [number], ackKey: [])
    }

    private func handler(_ identity: PrivateKey) throws -> (handler: V01Handler, service: any ProtocolService) {
        let node = BareNode(fixture.store, of: .statusV01, metrics: StatusPushV01.description.metrics)
        let service = try StatusPushV01(identity: identity).makeService(node.services)
        return (try #require(node.handler(V01Handler.self)), service)
    }

    /// Whoever gorush accepted a notification for is known, after a restart too.
    @Test func anAcceptedNotificationMakesKnown() async throws {
        let identity = PrivateKey.generate()
        let account = V01Account(of: identity.publicKey)
        try await fixture.take(account.register(version: 1), of: account)
        let (handler, _) = try handler(identity)
        func standing(_ handler: V01Handler) -> Standing { handler.limits.charge(of: account.keyHash, at: .now()).standing }
        let message = Decoded(
            V01AddressedCommand(command: .request(request(account, 1), key: [1], expires: .now() + .seconds(60)), server: 0), .request,
            hash: MessageHash(bytes: [UInt8](repeating: 1, count: 32)), pubsubTopic: .statusDefault)
        guard case .request(let outcome) = try await fixture.store.commit(handler.change(message, at: .now())) else {
            throw TestFailure("not a request")
        }
        let waiting = try #require(outcome.queued.first?.waiting)
        let posted = PostedNotification(delivery: waiting.delivery, device: waiting.device, version: 1)
        try await fixture.store.commit(.change(DeliveryStorage.accept(posted, postedAs: nil, at: .now())))
        #expect(standing(handler) == .stranger)
        handler.finish(message, .success(.request(outcome)))
        try await eventually { standing(handler) == .known }

        let (restarted, service) = try self.handler(identity)
        #expect(standing(restarted) == .stranger)
        try await service.run()
        #expect(standing(restarted) == .known)
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
