import Core
import Testing

struct DescriptorLimitTests {
    /// Event loops, the database, gorush, the relay and libdispatch need descriptors while listeners are full.
    @Test func listenersLeaveAReserve() {
        let lowest = DescriptorLimit.minimum
        for limit in Array(lowest..<lowest + 3000) + [65_536, 1_048_576, .max] {
            let reserve = limit - DescriptorLimit.forListeners(of: limit)
            #expect(reserve >= max(limit / 4, 64) && reserve < limit, "\(limit)")
        }
        #expect(DescriptorLimit.forListeners(of: 0) > 0)
    }
}
