import Core
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct InstantTests {
    @Test func arithmeticIsThatOfDurations() {
        #expect(Instant.seconds(3) - .seconds(1) == Duration.seconds(2))
        #expect(Instant.seconds(3) - Duration.seconds(1) == .seconds(2.0))
        #expect(Instant.milliseconds(1_500) > .seconds(1))
        #expect(Instant.seconds(7).sinceEpoch == .seconds(7))
        // Times before the epoch occur too: stored times of an earlier run are mapped to them.
        #expect(Instant.zero - Duration.seconds(5) < .zero)
    }

    @Test func theClockDoesNotGoBack() {
        let earlier = Instant.now
        #expect(Instant.now >= earlier)
    }

    @Test func sleepingEndsAtTheInstant() async throws {
        let end = Instant.now + .milliseconds(20)
        try await end.sleep()
        #expect(Instant.now >= end)
        try await (Instant.now - Duration.seconds(3600)).sleep()
    }

    @Test func cancellationEndsTheSleep() async {
        let sleeper = Task { try await (Instant.now + .seconds(3600)).sleep() }
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
    }
}
