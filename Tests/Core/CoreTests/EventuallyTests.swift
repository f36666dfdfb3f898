import TestSupport
import Testing

struct EventuallyTests {
    @Test func waitsBeyondTenSecondsAreReported() {
        let limit = Duration.seconds(10) * TestTimeout.factor
        #expect(TestTimeout.warning(after: limit, fileID: "Tests/A.swift", line: 3) == nil)
        let warning = TestTimeout.warning(after: limit + .seconds(2), fileID: "Tests/A.swift", line: 3)
        #expect(warning == "Tests/A.swift:3: warning: condition met after \(10 * TestTimeout.factor + 2) s")
    }

    @Test func conditionThatNeverHoldsIsAnErrorAtTheCaller() async throws {
        let error = await #expect(throws: TestFailure.self) {
            try await eventually(within: .zero, fileID: "Tests/A.swift", line: 3) { false }
        }
        #expect(error?.description == "Tests/A.swift:3: condition not met within \(Duration.zero)")
    }
}
