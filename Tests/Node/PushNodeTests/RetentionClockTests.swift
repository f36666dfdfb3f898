import Testing
import Core

@testable import PushNode

@Suite("Retention and steps of the system clock")
struct RetentionClockTests {
    private let start = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private var clock = RetentionClock(retention: .seconds(86_400))

    @Test("With a steady clock the cutoff is the current time minus the retention")
    mutating func running() {
        for hour in 0..<48 {
            let uptime = Duration.seconds(hour * 3600)
            #expect(clock.cutoff(clock: start + uptime, uptime: uptime) == start + uptime - .seconds(86_400))
        }
    }

    @Test("A step forward takes effect after it has lasted for the whole retention")
    mutating func forward() {
        _ = clock.cutoff(clock: start, uptime: .zero)
        let ahead = start + .seconds(1_000_000)
        for uptime in stride(from: 10, to: 86_400, by: 600) {
            let cutoff = clock.cutoff(clock: ahead + .seconds(uptime), uptime: .seconds(uptime))
            #expect(cutoff == start + .seconds(uptime) - .seconds(86_400))
        }
        #expect(clock.cutoff(clock: ahead + .seconds(86_500), uptime: .seconds(86_500)) == ahead + .seconds(100))
    }

    @Test("A step forward that is reverted never takes effect")
    mutating func forwardAndBack() {
        _ = clock.cutoff(clock: start, uptime: .zero)
        for round in 1...100 {
            let uptime = Duration.seconds(round * 3600)
            let isAhead = !round.isMultiple(of: 12)
            let cutoff = clock.cutoff(clock: start + uptime + (isAhead ? .seconds(1_000_000) : .zero), uptime: uptime)
            #expect(cutoff == start + uptime - .seconds(86_400))
        }
    }

    @Test("A step back and drift take effect at once")
    mutating func back() {
        _ = clock.cutoff(clock: start, uptime: .zero)
        #expect(clock.cutoff(clock: start + .seconds(15), uptime: .seconds(10)) == start + .seconds(15) - .seconds(86_400))
        #expect(clock.cutoff(clock: start - .seconds(5000), uptime: .seconds(20)) == start - .seconds(5000) - .seconds(86_400))
    }

    @Test mutating func timesAtTheEndsOfTheRangeNeverTrap() {
        _ = clock.cutoff(clock: Timestamp(rawValue: .min), uptime: .seconds(1))
        _ = clock.cutoff(clock: Timestamp(rawValue: .max), uptime: .seconds(2))
        _ = clock.cutoff(clock: Timestamp(rawValue: .max), uptime: .seconds(200_000))
    }
}
