import Foundation

/// Timeouts of tests that wait for another thread or process.
package enum TestTimeout {
    /// Multiplier of all timeouts, for instance under a sanitizer: the environment variable `TEST_TIMEOUT_FACTOR`.
    package static let factor = ProcessInfo.processInfo.environment["TEST_TIMEOUT_FACTOR"].flatMap { Int($0) } ?? 1

    /// The duration after which a wait is reported.
    private static let slow = Duration.seconds(10)

    /// nil for a wait of the usual length.
    package static func warning(after duration: Duration, fileID: StaticString, line: UInt) -> String? {
        guard duration > slow * factor else { return nil }
        return "\(fileID):\(line): warning: condition met after \(duration.components.seconds) s"
    }

    /// Prints the warning about a wait that has ended.
    package static func reportWait(since start: ContinuousClock.Instant, fileID: StaticString, line: UInt) {
        guard let warning = warning(after: ContinuousClock.now - start, fileID: fileID, line: line) else { return }
        FileHandle.standardError.write(Data((warning + "\n").utf8))
    }
}

/// Returns when the condition holds. Prints a warning to standard error if that took more than 10 s: the test may fail on a busier machine.
///
/// - Parameters:
///   - limit: Multiplied by ``TestTimeout/factor``. Far longer than needed: it only ends failing tests.
///   - fileID: The caller's file, for the error and the warning.
///   - line: The caller's line, for the error and the warning.
///   - condition: Tested every few milliseconds.
/// - Throws: ``TestFailure``, and errors of the condition.
package func eventually(
    within limit: Duration = .seconds(60), fileID: StaticString = #fileID, line: UInt = #line, _ condition: () async throws -> Bool
) async throws {
    let start = ContinuousClock.now
    while try await !condition() {
        guard ContinuousClock.now - start < limit * TestTimeout.factor else {
            throw TestFailure("\(fileID):\(line): condition not met within \(limit * TestTimeout.factor)")
        }
        try await Task.sleep(for: .milliseconds(5))
    }
    TestTimeout.reportWait(since: start, fileID: fileID, line: line)
}
