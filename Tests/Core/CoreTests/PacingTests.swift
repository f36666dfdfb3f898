import Testing

@testable import Core

@Suite struct PacingTests {
    /// Begins a transaction whenever one is allowed, with commands always waiting. Returns the start times.
    private func begin(_ pacing: inout Pacing, from start: Duration, to end: Duration) -> [Duration] {
        var (times, now) = ([Duration](), start)
        while now < end {
            let delay = pacing.delay(at: Instant(sinceEpoch: now))
            guard delay == .zero else {
                now += delay
                continue
            }
            times.append(now)
            pacing.begin(at: Instant(sinceEpoch: now))
            now += .milliseconds(1)
        }
        return times
    }

    @Test func withoutAnIntervalNothingWaits() {
        var pacing = Pacing()
        #expect(begin(&pacing, from: .seconds(1), to: .seconds(2)).count == 1000)
    }

    @Test func underLoadTransactionsBeginAnIntervalApart() {
        var pacing = Pacing(interval: .milliseconds(50))
        let times = begin(&pacing, from: .seconds(1), to: .seconds(3))
        #expect(times.prefix(Pacing.burst).allSatisfy { $0 < .milliseconds(1010) })
        let later = times.dropFirst(Pacing.burst)
        #expect(zip(later, later.dropFirst()).allSatisfy { $1 - $0 == .milliseconds(50) })
        #expect(abs(times.count - Pacing.burst - 40) <= 1)
    }

    @Test func workAfterAnIdlePeriodDoesNotWait() {
        var pacing = Pacing(interval: .milliseconds(50))
        _ = begin(&pacing, from: .seconds(1), to: .seconds(2))
        #expect(pacing.delay(at: Instant(sinceEpoch: .milliseconds(1990))) == .milliseconds(10))
        #expect(pacing.delay(at: Instant(sinceEpoch: .seconds(2))) == .zero)
        // After the idle period, as many as before may begin at once.
        let again = begin(&pacing, from: .seconds(4), to: .milliseconds(4020))
        #expect(again.count == Pacing.burst)
    }
}
