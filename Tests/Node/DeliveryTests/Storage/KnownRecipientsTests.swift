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
    /// A store that can't read which notifications were accepted, for the first time.
    private final class FailingStore: Store {
        private let base: any Store
        let failureCount = Mutex(0)

        init(_ base: any Store) { self.base = base }

        func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
            let isFirst = failureCount.withLock { count in
                guard count == 0, Outcome.self == [DeviceID: UInt64].self else { return false }
                count += 1
                return true
            }
            guard !isFirst else { throw StoreError(code: .unavailable, message: "as the test says") }
            return try base.readEach(commands)
        }

        var sealer: Sealer { base.sealer }
        func submit<Outcome>(
            _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
        ) { base.submit(commands, completion: completion) }
        func afterCommits(_ body: @escaping @Sendable () -> Void) { base.afterCommits(body) }
        func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) { try base.scan(read, visit) }
        func onReader(_ body: @escaping @Sendable () -> Void) { base.onReader(body) }
        var failure: String? { base.failure }
        var byteCount: Int { base.byteCount }
        func maintain() async { await base.maintain() }
        func close() throws { try base.close() }
    }

    @Test("are read again after a failure")
    func readAgain() async throws {
        let folder = try TemporaryFolder()
        let store = FailingStore(
            try SQLiteStore(
                folder: folder.path, storageKey: .random(),
                parts: [DeliveryStorage.part, StorePart("devices", tables: [StoredDevices.table])]))
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
        #expect(store.failureCount.withLock { $0 } == 1)
    }
}
