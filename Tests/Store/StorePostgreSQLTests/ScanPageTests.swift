import Storage
import Testing

@testable import StorePostgreSQL

@Suite("Rows that a scan fetches at once")
struct ScanPageTests {
    private func rowCounts(of query: Query, pages: [Int]) -> [Int] {
        var page = ScanPage(of: query)
        return pages.map { byteCount in
            page.fetched(byteCount)
            return page.rowCount
        }
    }

    @Test("They double while rows are small")
    func small() {
        let pages = [Int](repeating: 1000, count: 6) + [1 << 20, 1000]
        #expect(rowCounts(of: Counters.numbers, pages: pages) == [32, 64, 128, 256, 512, 512, 16, 32])
    }

    @Test("They stay few if rows have encrypted content: a page of small rows may be followed by rows of 2 MiB each")
    func contents() {
        #expect(rowCounts(of: Counters.sealedRows, pages: [1000, 1000, 1000, 1 << 20]) == [32, 32, 32, 16])
    }

    @Test("They double if encrypted content is small in all rows")
    func smallContents() {
        let (name, sealed) = (Column("name", .bytes), Column("sealed", .bytes))
        let table = Table("entry", columns: [name, sealed], sealed: SealedColumn(small: sealed, boundTo: [name], label: "entries"))
        #expect(rowCounts(of: Query(table, [name, sealed]), pages: [1000, 1000, 1000, 1 << 20]) == [32, 64, 128, 16])
    }
}
