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

@Suite("Acceptances of a batch that meet damaged rows", .timeLimit(.minutes(5)))
struct UnstorableAcceptanceTests {
    private final class AcceptingGorush: NotificationPosting {
        var certificateEnd: Int? { nil }
        let posted = Mutex<[String]>([])

        func post(_ notifications: [Delivery.Notification]) async -> PostResult {
            posted.withLock { $0 += notifications.map(\.id) }
            return PostResult(outcome: .accepted, postedTokenCount: notifications.count)
        }

        func showsRepetitionOnce(_ notification: Delivery.Notification) -> Bool { true }
    }

    /// The commits of acceptances that fail.
    private final class Damage: Sendable {
        private struct State {
            var single: ClosedRange<Int>
            var singleCount = 0
            var isRepaired = false
        }

        private let state: Mutex<State>

        /// - Parameter single: which of the acceptances that are stored by themselves fail, by their numbers.
        init(single: ClosedRange<Int>) { state = Mutex(State(single: single)) }

        func repair() { state.withLock { $0.isRepaired = true } }

        func error(of outcome: Any.Type) -> StoreError? {
            state.withLock { state in
                guard !state.isRepaired else { return nil }
                // Those of a whole batch look for doubts, in whose table a row is damaged.
                if outcome == Bool?.self { return .ofTest(.damaged) }
                guard outcome == Bool.self else { return nil }
                state.singleCount += 1
                return state.single.contains(state.singleCount) ? .ofTest(.damaged) : nil
            }
        }
    }

    private let folder: TemporaryFolder
    private let gorush = AcceptingGorush()
    private let counters = Counters([.delivery, .feedback])

    init() throws {
        folder = try TemporaryFolder()
    }

    private func store(_ damage: Damage) throws -> FaultyStore {
        FaultyStore(
            try SQLiteStore(
                folder: folder.path, storageKey: .random(),
                parts: [DeliveryStorage.part, StorePart("devices", tables: [StoredDevices.table])]),
            commit: damage.error)
    }

    private func service(_ store: any Store, _ configuration: DeliveryService.Configuration) -> DeliveryService {
        let now = Timestamp(rawValue: 10)
        return DeliveryService(
            configuration, store: store, sources: DeliverySources([StoredDevices()]), gorush: [GorushEndpoint(gorush)],
            counters: counters, alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
    }

    /// Three notifications for a device each: a batch has one of a device.
    private func waiting(in store: any Store) async throws -> [WaitingDelivery] {
        let insert = StoredDevices.insert(.integer(4), .bytes(Array("token".utf8)))
        var waiting: [WaitingDelivery] = []
        for number in 1...3 as ClosedRange<UInt8> {
            let row = try await store.commit(StoreCommand<Int64>.apply([insert]) { $0[0] })
            let device = DeviceID(StoredDevices().number, row: row)
            waiting.append(
                try await store.enqueue(DeliveryStoreFixture.delivery(number), for: device, expires: Timestamp(rawValue: 1 << 60)))
        }
        return waiting
    }

    @Test("are stored one by one, and the next batch is posted", arguments: [0, 1])
    func storedOneByOne(damagedCount: Int) async throws {
        let store = try store(Damage(single: damagedCount...damagedCount))
        let waiting = try await waiting(in: store)
        var configuration = DeliveryService.Configuration()
        configuration.damagePause = .seconds(3600)
        let service = service(store, configuration)
        try service.load()
        let running = Task { await service.run() }
        try await eventually { counters.count(.notificationAccepted) == 3 - damagedCount && !service.isPosting(for: { _ in true }) }
        #expect(try store.read(DeliveryStorage.waitingCount()) == damagedCount)
        // A delivery that is still in the outbox is known, so that it is not posted again.
        #expect(service.unknown(among: waiting.map(\.id)).count == 3 - damagedCount)

        let later = try await store.enqueue(
            DeliveryStoreFixture.delivery(9), for: waiting[1].device, expires: Timestamp(rawValue: 1 << 60))
        let address = DeviceAddress(version: 4, platform: .apn, deviceToken: DeviceToken("token"), apnTopic: "")
        service.enqueue([QueuedDelivery(later, to: address, TextContent("text"), times: nil)])
        try await eventually { counters.count(.notificationAccepted) == 4 - damagedCount }
        running.cancel()
        await running.value
        let ids = (waiting + [later]).map(\.delivery.notificationID)
        #expect(gorush.posted.withLock { $0 }.sorted() == ids.sorted())
    }

    @Test("are stored once the rows can be written again, without another post")
    func storedLater() async throws {
        let damage = Damage(single: 1...Int.max)
        let store = try store(damage)
        let waiting = try await waiting(in: store)
        var configuration = DeliveryService.Configuration()
        configuration.damagePause = .milliseconds(10)
        let service = service(store, configuration)
        try service.load()
        let running = Task { await service.run() }
        try await eventually { gorush.posted.withLock { $0.count } == 3 && !service.isPosting(for: { _ in true }) }
        damage.repair()
        try await eventually { counters.count(.notificationAccepted) == 3 }
        running.cancel()
        await running.value
        #expect(try store.read(DeliveryStorage.waitingCount()) == 0)
        #expect(service.unknown(among: waiting.map(\.id)).count == 3)
        #expect(gorush.posted.withLock { $0.count } == 3)
    }
}
