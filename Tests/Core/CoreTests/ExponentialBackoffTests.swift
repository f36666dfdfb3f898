import Core
import Testing

@Suite struct ExponentialBackoffTests {
    private let backoff = ExponentialBackoff(initial: .milliseconds(250), maximum: .seconds(10))

    @Test(arguments: [(1, 250), (2, 500), (3, 1_000), (6, 8_000), (7, 10_000), (8, 10_000)])
    func theDelayDoublesUpToTheMaximum(failures: Int, milliseconds: Int) {
        #expect(backoff.delay(afterFailures: failures, jitter: 1) == .milliseconds(milliseconds))
    }

    @Test(arguments: [(0.0, 500), (0.5, 750), (1, 1_000), (-3, 500), (7, 1_000)])
    func jitterChoosesFromTheUpperHalf(jitter: Double, milliseconds: Int) {
        #expect(backoff.delay(afterFailures: 3, jitter: jitter) == .milliseconds(milliseconds))
    }

    @Test(arguments: [Int.min, -1, 0]) func fewerFailuresThanOneCountAsOne(failures: Int) {
        #expect(backoff.delay(afterFailures: failures, jitter: 1) == .milliseconds(250))
    }

    @Test(arguments: [22, 64, Int.max]) func anyNumberOfFailuresStaysWithinTheMaximum(failures: Int) {
        #expect(backoff.delay(afterFailures: failures, jitter: 1) == .seconds(10))
    }
}
