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
    @Test(
        "The only notification with the id is the one, however its token is masked; of several, exactly one must match the mask",
        arguments: [
            (["first"], "**", Counter.tokenRemoved), (["first", "other"], "**her", .tokenRemoved),
            (["first", "other"], "*****", .tokenFailureUnmatched), (["first", "other"], "**", .tokenFailureUnmatched),
        ])
    func matching(tokens: [String], mask: String, expected: Counter) async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(
            folder: folder.path, storageKey: .random(), parts: [DeliveryStorage.part, StorePart("devices", tables: [StoredDevices.table])])
        let inserts = tokens.map { StoredDevices.insert(.integer(4), .bytes(Array($0.utf8))) }
        let rows = try await store.commit(StoreCommand<[Int64]>.apply(inserts) { $0 })
        let shared = DeliveryStoreFixture.delivery(0)
        for (index, row) in rows.enumerated() {
            let (delivery, device) = (DeliveryStoreFixture.delivery(UInt8(index)), DeviceID(StoredDevices().number, row: row))
            _ = try await store.enqueue(delivery, for: device)
            try await store.accept(delivery, for: device, version: 4, postedAs: index == 0 ? nil : shared)
        }
        let counters = Counters([.delivery, .feedback])
        let now = Timestamp(rawValue: 1_800_000_000_000_000_000)
        let feedback = Feedback(
            store: store, sources: DeliverySources([StoredDevices()]), ids: nil, counters: counters,
            alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        let body = #"{"notif_id":"\#(shared.notificationID)","platform":"ios","token":"\#(mask)","error":"Unregistered"}"#
        await feedback.handle([try #require(GorushFailure(parsing: Array(body.utf8)))])
        let counts = [Counter.tokenRemoved, .tokenFailureStale, .tokenFailureUnmatched].filter { counters.count($0) > 0 }
        #expect(counts == [expected])
    }
}
