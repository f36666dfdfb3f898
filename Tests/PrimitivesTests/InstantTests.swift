import Primitives
import TestSupport
import Testing

@Suite struct InstantTests {
    @Test func simulatedInstantsCountFromOneOrigin() {
        #expect(Instant.seconds(3) - .seconds(1) == Duration.seconds(2))
        #expect(Instant.seconds(3) - Duration.seconds(1) == .seconds(2.0))
        #expect(Instant.milliseconds(1_500) > .seconds(1))
        #expect(Instant.seconds(7).sinceZero == .seconds(7))
        // Before the origin too: what a stored time of an earlier run is mapped to.
        #expect(Instant.zero - Duration.seconds(5) < .zero)
    }

    @Test func theClockDoesNotGoBack() {
        let earlier = Instant.now
        #expect(Instant.now >= earlier)
    }
}
