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

@Suite("The recipients for which gorush accepted notifications before the start")
struct KnownRecipientsTests {
    @Test("are read again after a failure")
    func readAgain() async throws {
        let folder = try TemporaryFolder()
        let failureCount = Mutex(0)
        let store = FaultyStore(
            try SQLiteStore(
                folder: folder.path, storageKey: .random(),
                parts: [DeliveryStorage.part, StorePart("devices", tables: [StoredDevices.table])]),
            read: { outcome in
                // Which notifications were accepted.
                guard outcome == [DeviceID: UInt64].self else { return nil }
                return failureCount.withLock { count in
                    count += 1
                    return count == 1 ? .ofTest(.unavailable) : nil
                }
            })
        let insert = StoredDevices.insert(.integer(4), .bytes(Array("token".utf8)))
        let row = try await store.commit(StoreCommand<Int64>.apply([insert]) { $0[0] })
        try await store.accept(DeliveryStoreFixture.delivery(1), for: DeviceID(StoredDevices().number, row: row))

        let (counters, now) = (Counters([.delivery, .feedback]), Timestamp(rawValue: 10))
        let service = DeliveryService(
            DeliveryService.Configuration(), store: store, sources: DeliverySources([StoredDevices()]), gorush: [.none],
            counters: counters, alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        let running = Task { await service.run() }
        try await eventually { service.table.withLock { $0.knownCount } == 1 }
        running.cancel()
        await running.value
        #expect(failureCount.withLock { $0 } == 2)
    }
}
