import Core
import Logging
import NodeMetrics
import Storage
import Testing

@testable import Delivery

@Suite("A start with deliveries in the outbox")
struct LoadTests {
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
