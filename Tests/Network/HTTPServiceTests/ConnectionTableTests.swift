import NIOCore
import Testing

@testable import HTTPService

@Suite struct ConnectionTableTests {
    private func time(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(1_000_000_000_000) + .seconds(seconds) }

    @Test func theLongestIdleConnectionIsEvicted() {
        var table = ConnectionTable<Int>(limit: 3)
        for id in 0..<3 { #expect(table.opened(id, at: time(Int64(id))) == nil) }
        table.advanced(0, isBusy: false, at: time(5))
        #expect(table.opened(3, at: time(6)) == 1)
        #expect(table.opened(4, at: time(7)) == 2)
        #expect(table.opened(5, at: time(8)) == 0)
        #expect(table.count == 3)
    }

    @Test func busyConnectionsAreNotEvicted() {
        var table = ConnectionTable<Int>(limit: 2)
        for id in 0..<2 {
            _ = table.opened(id, at: time(0))
            table.advanced(id, isBusy: true, at: time(1))
        }
        #expect(table.opened(2, at: time(2)) == nil)
        #expect(table.count == 3)
        #expect(table.opened(3, at: time(3)) == 2)
        table.advanced(1, isBusy: false, at: time(4))
        #expect(table.opened(4, at: time(5)) == 3)
        #expect(table.opened(5, at: time(6)) == 1)
    }

    @Test func evictedConnectionsAreIgnored() {
        var table = ConnectionTable<Int>(limit: 1)
        _ = table.opened(0, at: time(0))
        #expect(table.opened(1, at: time(1)) == 0)
        table.advanced(0, isBusy: true, at: time(2))
        table.closed(0)
        #expect(table.count == 1)
        table.closed(1)
        #expect(table.count == 0)
    }
}
