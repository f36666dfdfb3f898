import Testing
import Core

@Suite struct TimestampTests {
    private static let ends = [Int64.min, .min + 1, -1, 0, 1, .max - 1, .max].map(Timestamp.init)
    private static let durations = [
        Duration.zero, .nanoseconds(1), .nanoseconds(-1), .seconds(300), .seconds(-300), .nanoseconds(Int64.max), .nanoseconds(Int64.min),
        .seconds(Int64.max), .seconds(Int64.min), .init(secondsComponent: .min, attosecondsComponent: -999_999_999_999_999_999),
    ]

    @Test func sumsAndDifferencesAreInNanoseconds() {
        let time = Timestamp(rawValue: 1_000_000_000)
        #expect(time + .seconds(2) == Timestamp(rawValue: 3_000_000_000))
        #expect(time - .milliseconds(1) == Timestamp(rawValue: 999_000_000))
        #expect(time.since(Timestamp(rawValue: 400_000_000)) == .milliseconds(600))
        #expect(Timestamp(rawValue: 0).since(time) == .seconds(-1))
        #expect(Timestamp(rawValue: -1) < Timestamp(rawValue: 0))
        #expect(Duration.microseconds(-1500).nanoseconds == -1_500_000)
    }

    @Test(arguments: ends, durations)
    func nothingTrapsAtTheEndsOfTheRange(time: Timestamp, duration: Duration) {
        if duration >= .zero {
            #expect(time + duration >= time && time - duration <= time)
        } else {
            #expect(time + duration <= time && time - duration >= time)
        }
    }

    @Test(arguments: ends, ends)
    func differencesOfTheEndsCanBeAddedAndTakenAwayAgain(later: Timestamp, earlier: Timestamp) {
        let difference = later.since(earlier)
        #expect((difference < .zero) == (later < earlier))
        #expect((earlier + difference < earlier) == (later < earlier))
        #expect((later - difference < later) == (later > earlier))
    }

    @Test func sumsStopAtTheEnds() {
        #expect(Timestamp(rawValue: .max) + .nanoseconds(1) == Timestamp(rawValue: .max))
        #expect(Timestamp(rawValue: .min) - .nanoseconds(1) == Timestamp(rawValue: .min))
        #expect(Timestamp(rawValue: 1) + .seconds(Int64.max) == Timestamp(rawValue: .max))
        #expect(Timestamp(rawValue: -2) - .seconds(Int64.max) == Timestamp(rawValue: .min))
        #expect(Timestamp(rawValue: .max).since(Timestamp(rawValue: .min)) == .nanoseconds(Int64.max))
    }

    @Test func theClockIsInNanosecondsAndAfterThisWasWritten() {
        let now = Timestamp.now()
        #expect(now > Timestamp(rawValue: 1_700_000_000_000_000_000))
        #expect(Timestamp.now() >= now)
    }
}
