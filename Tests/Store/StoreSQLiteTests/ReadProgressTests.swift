import GRDB
import Storage
import Testing

@testable import StoreSQLite

@Suite struct ReadProgressTests {
    @Test("A long read that is at work does not count as one that hangs")
    func longRead() async throws {
        let store = try StoreFixture().store
        let count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT count(*) FROM n"
        let times = await withCheckedContinuation { done in
            store.onReader {
                let began = store.oldestRead
                _ = try? store.pool.read { try Int.fetchOne($0, sql: count) }
                done.resume(returning: [began, store.oldestRead].compactMap(\.self))
            }
        }
        try #require(times.count == 2)
        #expect(times[1] > times[0])
    }
}
