import Core
import Logging
import NodeMetrics
import Storage
import Synchronization
import Testing

@testable import Delivery

@Suite("A start with deliveries in the outbox")
struct LoadTests {
    /// The share of a node that posts nothing.
    private struct NoShare: OutboxShare {
        func owns(_ device: DeviceID) -> Bool { false }
        func mark(_ deliveries: [(waiting: WaitingDelivery, hasUnknownOutcome: Bool)]) async -> Set<Int64> { [] }
    }

    @Test("A request does not look up its delivery that another node posts")
    func remote() async throws {
        let fixture = try DeliveryStoreFixture()
        let waiting = try await fixture.store.enqueue(DeliveryStoreFixture.delivery(1))
        let counters = Counters([.delivery])
        let now = Timestamp(rawValue: 10)
        let service = DeliveryService(
            DeliveryService.Configuration(), store: fixture.store, share: NoShare(), sources: DeliverySources([]), gorush: [.none],
            counters: counters, alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        let address = DeviceAddress(version: 1, platform: .apn, deviceToken: DeviceToken("token"), apnTopic: "")
        service.enqueue([QueuedDelivery(waiting, to: address, TextContent("text"), times: nil)])
        let awaited = AwaitedDeliveries([waiting.delivery]) { _ in }
        let steadyNow = service.steadyNow
        let result = service.table.withLock { $0.await(awaited, deadline: steadyNow + .seconds(2), now: steadyNow) }
        guard case .waits(let unknown) = result else {
            Issue.record("the request does not wait")
            return
        }
        #expect(unknown == [])
    }

    @Test("The deliveries that an earlier run left are in the queue again")
    func loaded() async throws {
        let fixture = try DeliveryStoreFixture()
        let waiting = try await fixture.store.enqueue(DeliveryStoreFixture.delivery(1))
        let counters = Counters([.delivery])
        let now = Timestamp(rawValue: 10)
        let service = DeliveryService(
            DeliveryService.Configuration(), store: fixture.store, sources: DeliverySources([]), gorush: [.none], counters: counters,
            alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        #expect(service.unknown(among: [waiting.id]) == [waiting.id])
        try service.load()
        #expect(service.unknown(among: [waiting.id]).isEmpty)
    }
}
