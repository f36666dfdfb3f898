import Foundation

/// Tests that take minutes by design have a short form, which always runs, and a long one.
package enum LongTests {
    /// Whether the long forms run: the environment variable `WAKU_PUSH_LONG_TESTS`, which `Deploy/test --all` sets.
    package static let areEnabled = ProcessInfo.processInfo.environment["WAKU_PUSH_LONG_TESTS"] != nil
}
