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

@Suite("The age of a device's row when its notification is posted")
struct RowAgeTests {
    /// A share that has all devices.
    private final class WholeShare: OutboxShare {
        let markCount = Mutex(0)

        func owns(_ device: DeviceID) -> Bool { true }

        func mark(_ deliveries: [(waiting: WaitingDelivery, hasUnknownOutcome: Bool)]) async -> Set<Int64> {
            markCount.withLock { $0 += 1 }
            return Set(deliveries.map(\.waiting.id))
        }
    }

    @Test(
        "A row that was read too long before the marks are stored is read again before a post",
        arguments: [(Duration.zero, false), (.seconds(600), true)])
    func aged(rowAge: Duration, isPosted: Bool) async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(
            folder: folder.path, storageKey: .random(), parts: [DeliveryStorage.part, StorePart("devices", tables: [StoredDevices.table])])
        let insert = StoredDevices.insert(.integer(4), .bytes(Array("token".utf8)))
        let row = try await store.commit(StoreCommand<Int64>.apply([insert]) { $0[0] })
        let waiting = try await store.enqueue(
            DeliveryStoreFixture.delivery(1), for: DeviceID(StoredDevices().number, row: row), expires: Timestamp(rawValue: 1 << 60))
        let (share, gorush, counters) = (WholeShare(), AcceptingGorush(), Counters([.delivery, .feedback]))
        var configuration = DeliveryService.Configuration()
        configuration.rowAge = rowAge
        let now = Timestamp(rawValue: 10)
        let service = DeliveryService(
            configuration, store: store, share: share, sources: DeliverySources([StoredDevices()]), gorush: [GorushEndpoint(gorush)],
            counters: counters, alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        let address = DeviceAddress(version: 4, platform: .apn, deviceToken: DeviceToken("token"), apnTopic: "")
        service.enqueue([QueuedDelivery(waiting, to: address, TextContent("text"), times: nil)])
        let running = Task { await service.run() }
        try await eventually { share.markCount.withLock { $0 } >= 2 || !gorush.posted.withLock(\.isEmpty) }
        running.cancel()
        await running.value
        #expect(gorush.posted.withLock(\.isEmpty) != isPosted)
    }
}
