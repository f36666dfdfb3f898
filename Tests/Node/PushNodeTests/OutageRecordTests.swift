import Core
import NodeAPI
import NodeAssembly
import Storage
import TestSupport
import Testing
import WakuCrypto

@Suite("The record of times without a node")
struct OutageRecordTests {
    private static let start = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private static let lifetime = Duration.seconds(90 * 86_400)

    private static func day(_ days: Int) -> Timestamp { start + .seconds(days * 86_400) }

    /// The day of the cutoff.
    private func cutoff(_ record: OutageRecord, onDay day: Int) -> Int64 {
        record.cutoff(lifetime: Self.lifetime, at: Self.day(day)).since(Self.start).components.seconds / 86_400
    }

    @Test("Outages between a renewal and now do not count; those before the renewal do not matter")
    func outages() {
        var record = OutageRecord()
        record.noteAlive(at: Self.day(0))
        record.noteAlive(at: Self.day(10))
        #expect(cutoff(record, onDay: 10) == -90)
        for day in 11...40 { record.noteAlive(at: Self.day(day)) }
        record.noteAlive(at: Self.day(60))
        // 30 days without a node: those from 0 to 10, and from 40 to 60.
        #expect(cutoff(record, onDay: 60) == -60)
        for day in 61...200 { record.noteAlive(at: Self.day(day)) }
        // A renewal before the second outage has 90 other days on day 149, and so has one after it on day 150.
        #expect(cutoff(record, onDay: 149) == 39)
        #expect(cutoff(record, onDay: 150) == 60)
        #expect(cutoff(record, onDay: 200) == 110)
    }

    @Test("Times of a clock that was ahead are forgotten, and do not count before")
    func clockAhead() {
        var record = OutageRecord()
        for day in [0, 1, 300, 2, 3] { record.noteAlive(at: Self.day(day)) }
        for day in [3, 299, 301] { #expect(cutoff(record, onDay: day) == Int64(day - 90)) }
        record.noteAlive(at: Self.day(500))
        #expect(cutoff(record, onDay: 100) == 10)
    }

    @Test("The record is stored, after that of an earlier release, and holds the last 64 outages")
    func stored() async throws {
        let folder = try TemporaryFolder()
        let store = try NodeAssembly.store(in: folder.path, of: .generate())
        #expect(try store.read(OutageRecord.stored()) == OutageRecord())
        try await store.commit(.change([Properties.set("alive at", to: Self.day(0).bytes)]))
        var record = OutageRecord()
        record.noteAlive(at: Self.day(0))
        for day in 1...70 {
            #expect(try store.read(OutageRecord.stored()) == record)
            record.noteAlive(at: Self.day(day * 2))
            try await store.commit(OutageRecord.recordAlive(at: Self.day(day * 2)))
        }
        #expect(try store.read(Properties.property("alive at"))?.count == 8 + 64 * 16)
    }
}
