import Foundation

/// Timeouts of tests that wait for another thread or process.
package enum TestTimeout {
    /// Multiplier of all timeouts, for instance under a sanitizer: the environment variable `TEST_TIMEOUT_FACTOR`.
    package static let factor = ProcessInfo.processInfo.environment["TEST_TIMEOUT_FACTOR"].flatMap { Int($0) } ?? 1

    package struct Exceeded: Error, CustomStringConvertible {
        package let description: String
    }
}

/// Returns when the condition holds.
///
/// - Parameters:
///   - limit: Multiplied by ``TestTimeout/factor``. Far longer than needed: it only ends failing tests.
///   - fileID: The caller's file, for the error.
///   - line: The caller's line, for the error.
///   - condition: Tested every few milliseconds.
/// - Throws: ``TestTimeout/Exceeded``, and errors of the condition.
package func eventually(
    within limit: Duration = .seconds(240), fileID: StaticString = #fileID, line: UInt = #line, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit * TestTimeout.factor
    while try await !condition() {
        guard ContinuousClock.now < deadline else {
            throw TestTimeout.Exceeded(description: "\(fileID):\(line): condition not met within \(limit * TestTimeout.factor)")
        }
        try await Task.sleep(for: .milliseconds(5))
    }
}
