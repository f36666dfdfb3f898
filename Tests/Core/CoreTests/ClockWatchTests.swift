import Core
import Testing

/// Each arrow of the picture above `ClockWatch`.
@Suite struct ClockWatchTests {
    @Test func statesFollowTheDifference() {
        for sign in [1, -1] {
            var watch = ClockWatch()
            func compared(_ seconds: Double) -> ClockWatch.State? { watch.compared(ahead: .seconds(seconds * Double(sign))) }
            #expect(watch.state == .inStep && watch.ahead == nil)
            #expect(compared(2) == nil)
            #expect(compared(2.1) == .differs)
            #expect(compared(15) == nil)
            #expect(compared(15.1) == .wrong)
            #expect(compared(1200) == nil && watch.ahead == .seconds(1200 * sign))
            #expect(compared(10.1) == nil)
            #expect(compared(10) == .differs)
            #expect(compared(14.9) == nil)
            #expect(compared(0) == .inStep)
            #expect(compared(-16) == .wrong)
            #expect(compared(0) == .inStep)
        }
    }

    /// A transaction that took 40 s says nothing of a clock within these 40 s.
    @Test(arguments: [(100, 100, 140, 0), (140, 100, 140, 0), (99, 100, 140, 1), (160, 100, 140, -20), (1300, 100, 101, -1199)])
    func theRoundTripIsNotCounted(other: Int, start: Int, end: Int, ahead: Int) {
        #expect(
            ClockWatch.certainDifference(to: .seconds(other), from: .seconds(start), until: .seconds(end)) == .seconds(ahead))
    }
}
