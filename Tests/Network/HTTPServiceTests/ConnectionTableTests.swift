import Core
import NIOCore
import Testing

@testable import HTTPService

@Suite struct ConnectionTableTests {
    private func time(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(1_000_000_000_000) + .seconds(seconds) }

    @Test func theLongestIdleConnectionIsEvicted() {
        var table = ConnectionTable<Int>(limit: 3)
        for id in 0..<3 { #expect(table.opened(id, of: nil, at: time(Int64(id))) == nil) }
        table.advanced(0, isBusy: false, at: time(5))
        #expect(table.opened(3, of: nil, at: time(6)) == 1)
        #expect(table.opened(4, of: nil, at: time(7)) == 2)
        #expect(table.opened(5, of: nil, at: time(8)) == 0)
        #expect(table.count == 3)
    }

    @Test func theNetworkWithMostConnectionsLosesOne() {
        let (large, small) = (AddressRange("192.0.2.0/24"), AddressRange("198.51.100.0/24"))
        var table = ConnectionTable<Int>(limit: 4)
        _ = table.opened(0, of: small, at: time(0))
        for id in 1..<4 { _ = table.opened(id, of: large, at: time(Int64(id))) }
        table.advanced(1, isBusy: true, at: time(4))
        #expect(table.opened(4, of: small, at: time(5)) == 2)
        #expect(table.opened(5, of: large, at: time(6)) == 0)
        #expect(table.opened(6, of: large, at: time(7)) == 3)
    }

    @Test func busyConnectionsAreNotEvicted() {
        var table = ConnectionTable<Int>(limit: 2)
        for id in 0..<2 {
            _ = table.opened(id, of: nil, at: time(0))
            table.advanced(id, isBusy: true, at: time(1))
        }
        #expect(table.opened(2, of: nil, at: time(2)) == nil)
        #expect(table.count == 3)
        #expect(table.opened(3, of: nil, at: time(3)) == 2)
        table.advanced(1, isBusy: false, at: time(4))
        #expect(table.opened(4, of: nil, at: time(5)) == 3)
        #expect(table.opened(5, of: nil, at: time(6)) == 1)
    }

    @Test func evictedConnectionsAreIgnored() {
        var table = ConnectionTable<Int>(limit: 1)
        _ = table.opened(0, of: nil, at: time(0))
        #expect(table.opened(1, of: nil, at: time(1)) == 0)
        table.advanced(0, isBusy: true, at: time(2))
        table.closed(0)
        #expect(table.count == 1)
        table.closed(1)
        #expect(table.count == 0)
    }
}
