import Testing
import Core

@testable import PushClient

@Suite struct SteadyClockTests {
    private let start = MachineBench.start

    @Test func followsTheUptimeRegardlessOfTheClock() {
        let clock = SteadyClock(kept: nil, clock: start, uptime: .seconds(5))
        #expect(clock.time(at: .seconds(5)) == start && clock.time(at: .seconds(65)) == start + .seconds(60))
    }

    @Test func neverGoesBackOverARestart() {
        let clock = SteadyClock(kept: start, clock: start - .seconds(3600), uptime: .zero)
        #expect(clock.time(at: .zero) == start)
    }

    @Test func noticesThatTimePassedBetweenTwoLives() {
        let clock = SteadyClock(kept: start, clock: start + .seconds(3600), uptime: .zero)
        #expect(clock.time(at: .zero) == start + .seconds(3600))
    }
}
