import Core
import Logging
import NodeMetrics
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import Delivery

@Suite("Which token a failure from the hook is about")
struct FeedbackMatchingTests {
    private let folder: TemporaryFolder
    private let store: SQLiteStore
    private let counters = Counters([.delivery, .feedback])
    private let feedback: Feedback

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(
            folder: folder.path, storageKey: .random(), parts: [DeliveryStorage.part, StorePart("devices", tables: [StoredDevices.table])])
        let now = Timestamp(rawValue: 1_800_000_000_000_000_000)
        feedback = Feedback(
            store: store, sources: DeliverySources([StoredDevices()]), ids: nil, counters: counters,
            alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
    }

    /// Stores a device with each token. Returns the deliveries for them, which are in the outbox.
    private func enqueue(_ tokens: [String]) async throws -> [(delivery: DeliveryID, device: DeviceID)] {
        let inserts = tokens.map { StoredDevices.insert(.integer(4), .bytes(Array($0.utf8))) }
        let rows = try await store.commit(StoreCommand<[Int64]>.apply(inserts) { $0 })
        let waiting = rows.enumerated().map {
            (DeliveryStoreFixture.delivery(UInt8($0.offset)), DeviceID(StoredDevices().number, row: $0.element))
        }
        for (delivery, device) in waiting { _ = try await store.enqueue(delivery, for: device) }
        return waiting
    }

    private func failure(_ mask: String) throws -> GorushFailure {
        let id = DeliveryStoreFixture.delivery(0).notificationID
        let body = #"{"notif_id":"\#(id)","platform":"ios","token":"\#(mask)","error":"Unregistered"}"#
        return try #require(GorushFailure(parsing: Array(body.utf8)))
    }

    private var counts: [Counter] {
        [Counter.tokenRemoved, .tokenFailureStale, .tokenFailureUnmatched].filter { counters.count($0) > 0 }
    }

    @Test(
        "The only notification with the id is the one, however its token is masked, unless the mask shows another token; of several, exactly one must match the mask",
        arguments: [
            (["first"], "**", Counter.tokenRemoved), (["first"], "**rst", .tokenRemoved), (["first"], "**her", .tokenFailureStale),
            (["first", "other"], "**her", .tokenRemoved), (["first", "other"], "*****", .tokenFailureUnmatched),
            (["first", "other"], "**", .tokenFailureUnmatched),
        ])
    func matching(tokens: [String], mask: String, expected: Counter) async throws {
        for (index, waiting) in try await enqueue(tokens).enumerated() {
            let shared = index == 0 ? nil : DeliveryStoreFixture.delivery(0)
            try await store.accept(waiting.delivery, for: waiting.device, version: 4, postedAs: shared)
        }
        await feedback.handle([try failure(mask)], isLast: true)
        #expect(counts == [expected])
    }

    @Test("A failure that arrives before another node has stored the acceptance is looked up once more", arguments: [true, false])
    func beforeTheAcceptance(isStored: Bool) async throws {
        let waiting = try await enqueue(["first"])[0]
        let unknown = await feedback.handle([try failure("*****")], isLast: false)
        #expect(unknown.count == 1 && counts.isEmpty)
        if isStored { try await store.accept(waiting.delivery, for: waiting.device, version: 4) }
        #expect(await feedback.handle(unknown, isLast: true).isEmpty)
        #expect(counts == [isStored ? .tokenRemoved : .tokenFailureUnmatched])
    }
}
