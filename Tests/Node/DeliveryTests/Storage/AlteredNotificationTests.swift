import Core
import Logging
import NodeMetrics
import Storage
import StoreSQLite
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import Delivery

@Suite("A notification that was altered in the outbox")
struct AlteredNotificationTests {
    @Test("is dropped and counted; others are posted")
    func dropped() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(
            folder: folder.path, storageKey: .random(), parts: [DeliveryStorage.part, StorePart("devices", tables: [StoredDevices.table])])
        let insert = StoredDevices.insert(.integer(4), .bytes(Array("token".utf8)))
        let row = try await store.commit(StoreCommand<Int64>.apply([insert]) { $0[0] })
        var waiting: [WaitingDelivery] = []
        for delivery in [DeliveryStoreFixture.delivery(1), DeliveryStoreFixture.delivery(2)] {
            let device = DeviceID(StoredDevices().number, row: row)
            waiting.append(try await store.enqueue(delivery, for: device, expires: Timestamp(rawValue: 1 << 60)))
        }
        let alter = Mutation(DeliveryStorage.outbox, .update([DeliveryStorage.sealed], where: [.equal(.id)]))
        try await store.commit(.change([alter(.bytes([1]), .integer(waiting[0].id))]))

        let (gorush, counters, now) = (AcceptingGorush(), Counters([.delivery, .feedback]), Timestamp(rawValue: 10))
        let service = DeliveryService(
            DeliveryService.Configuration(), store: store, sources: DeliverySources([StoredDevices()]), gorush: [GorushEndpoint(gorush)],
            counters: counters, alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        try service.load()
        let running = Task { await service.run() }
        try await eventually {
            counters.count(.notificationUnreadable) == 1 && (try? store.read(DeliveryStorage.waitingCount())) == 0
        }
        running.cancel()
        await running.value
        #expect(gorush.posted.withLock { $0 } == [waiting[1].delivery.notificationID])
    }
}
