import Core
import Logging
import NodeMetrics
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Delivery

@Suite("Expired deliveries")
struct ExpiryTests {
    @Test("are counted as losses of the node unless others can choose their expiry", arguments: [false, true])
    func counted(othersChooseExpiry: Bool) async throws {
        let fixture = try DeliveryStoreFixture()
        let waiting = try await fixture.store.enqueue(DeliveryStoreFixture.delivery(1), expires: Timestamp(rawValue: 5))
        let counters = Counters([.delivery])
        let now = Timestamp(rawValue: 10)
        let service = DeliveryService(
            DeliveryService.Configuration(), store: fixture.store,
            sources: DeliverySources([StoredDevices(othersChooseExpiry: othersChooseExpiry)]), gorush: [GorushEndpoint(AcceptingGorush())],
            counters: counters, alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        let address = DeviceAddress(version: 1, platform: .apn, deviceToken: DeviceToken("token"), apnTopic: "")
        service.enqueue([QueuedDelivery(waiting, to: address, TextContent("text"), times: nil)])
        let running = Task { await service.run() }
        let (ended, lost) = (Counter.notificationMessageEnded, Counter.notificationExpired)
        try await eventually { counters.count(ended) + counters.count(lost) == 1 }
        running.cancel()
        await running.value
        #expect(counters.count(ended) == (othersChooseExpiry ? 1 : 0))
        #expect(counters.count(.notificationAccepted) == 0)
    }

    /// After an outage the whole outbox may expire at once, and registrations wait for each commit.
    @Test("are removed in several commits if they are many")
    func chunks() async throws {
        let fixture = try DeliveryStoreFixture()
        let waiting = try await fixture.store.enqueue(DeliveryStoreFixture.delivery(1))
        let commits = Mutex(0)
        let store = FaultyStore(
            fixture.store,
            commit: { _ in
                commits.withLock { $0 += 1 }
                return nil
            })
        let counters = Counters([.delivery])
        let now = Timestamp(rawValue: 10)
        let service = DeliveryService(
            DeliveryService.Configuration(), store: store, sources: DeliverySources([]), gorush: [.none], counters: counters,
            alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        // The others are gone already.
        await service.drop((0..<4_001).map { waiting.id + 4_000 - $0 }, .notificationExpired)
        let count = commits.withLock(\.self)
        #expect(count == 3 && counters.count(.notificationExpired) == 4_001)
        #expect(try fixture.store.read(DeliveryStorage.waitingCount()) == 0)
    }
}
