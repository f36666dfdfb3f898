import Core
import Logging
import NodeMetrics
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Delivery

@Suite("Deliveries in the outbox that are in no queue")
struct LoadTests {
    private let fixture: DeliveryStoreFixture
    private let service: DeliveryService

    init() throws {
        fixture = try DeliveryStoreFixture()
        let counters = Counters([.delivery])
        let now = Timestamp(rawValue: 10)
        service = DeliveryService(
            DeliveryService.Configuration(), store: fixture.store, sources: DeliverySources([]), gorush: [.none], counters: counters,
            alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
    }

    /// The share of a node that posts nothing.
    private struct NoShare: OutboxShare {
        func owns(_ device: DeviceID) -> Bool { false }
        func mark(_ deliveries: [(waiting: WaitingDelivery, hasUnknownOutcome: Bool)]) async -> Set<Int64> { [] }
    }

    @Test("A request does not look up its delivery that another node posts")
    func remote() async throws {
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
        let waiting = try await fixture.store.enqueue(DeliveryStoreFixture.delivery(1))
        #expect(service.unknown(among: [waiting.id]) == [waiting.id])
        try service.load()
        #expect(service.unknown(among: [waiting.id]).isEmpty)
    }

    @Test("All deliveries that an earlier run left stay, also if the limit was lowered; a new one displaces one")
    func loadedBeyondTheLimit() async throws {
        var waiting: [WaitingDelivery] = []
        for number in 1...5 { waiting.append(try await fixture.store.enqueue(DeliveryStoreFixture.delivery(UInt8(number)))) }
        var configuration = DeliveryService.Configuration()
        configuration.outboxLimit = 2
        let counters = Counters([.delivery])
        let now = Timestamp(rawValue: 10)
        let service = DeliveryService(
            configuration, store: fixture.store, sources: DeliverySources([]), gorush: [.none], counters: counters,
            alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        try service.load()
        #expect(service.waitingCount == 5 && service.unknown(among: waiting.map(\.id)).isEmpty)
        await service.enqueueFromOutbox([try await fixture.store.enqueue(DeliveryStoreFixture.delivery(6))])
        let evicted = service.table.withLock { table in
            table.step(now: service.steadyNow).actions.compactMap { if case .evict(let ids) = $0.action { ids } else { nil } }
        }
        #expect(evicted.joined().count == 1)
    }

    @Test("A delivery that another process left is enqueued when a request waits for it, and the request goes on waiting")
    func lookedUp() async throws {
        let waiting = try await fixture.store.enqueue(DeliveryStoreFixture.delivery(1))
        service.await(AwaitedDeliveries([waiting.delivery]) { _ in })
        try await eventually { service.unknown(among: [waiting.id]).isEmpty }
        #expect(service.awaitingCount == 1)
    }

    @Test("A request for deliveries that have ended gets their stored outcomes")
    func ended() async throws {
        let (accepted, dropped) = (DeliveryStoreFixture.delivery(2), DeliveryStoreFixture.delivery(3))
        try await fixture.store.accept(accepted)
        let outcomes = await withCheckedContinuation { continuation in
            service.await(AwaitedDeliveries([accepted, dropped]) { continuation.resume(returning: $0.outcomes) })
        }
        #expect(outcomes == [accepted: .accepted, dropped: .failed])
    }
}
