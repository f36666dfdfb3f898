package import Core

/// The failures of a registration's token for reasons that may be the operator's own mistake.
///
///     none ──(failure)──▶ in doubt ──(five failures in a row, the first at least a day ago)──▶ unregistered
///       ▲                  │  ▲ │
///       │                  │  └─┘ (failure)
///       └──(success)───────┘
///
/// gorush reports only failures, so a success is inferred: an accepted notification without a failure in the next ten minutes. This is checked when
/// the next notification is accepted or fails. Ten minutes leave time for gorush's queue and its retries. Notifications in quick succession whose
/// failures arrive after all of them were accepted do not count as successes.
package struct TokenDoubt: Hashable, Sendable {
    package static let failureLimit = 5
    package static let period = Duration.seconds(24 * 3600)
    package static let grace = Duration.seconds(600)

    /// The version of the registration with this token. The doubt does not apply to newer versions.
    package let version: UInt64
    /// The number of failures in a row.
    package private(set) var failureCount = 1
    package private(set) var firstFailure: Timestamp
    package private(set) var lastFailure: Timestamp
    /// The time at which the first notification after the last failure was accepted.
    package private(set) var unfailedSince: Timestamp?

    /// Begins a doubt at the first failure.
    package init(version: UInt64, at now: Timestamp) {
        self.version = version
        firstFailure = now
        lastFailure = now
    }

    package init(version: UInt64, failureCount: Int, firstFailure: Timestamp, lastFailure: Timestamp, unfailedSince: Timestamp?) {
        self.version = version
        self.failureCount = failureCount
        self.firstFailure = firstFailure
        self.lastFailure = lastFailure
        self.unfailedSince = unfailedSince
    }

    /// Records that gorush accepted another notification. Returns whether the doubt is over.
    package mutating func accepted(at now: Timestamp) -> Bool {
        if hasSucceeded(at: now) { return true }
        unfailedSince = unfailedSince ?? now
        return false
    }

    package mutating func failed(at now: Timestamp) {
        if hasSucceeded(at: now) {
            self = TokenDoubt(version: version, at: now)
        } else {
            failureCount += 1
            lastFailure = now
            unfailedSince = nil
        }
    }

    package var isEnough: Bool { failureCount >= Self.failureLimit && lastFailure.since(firstFailure) >= Self.period }

    private func hasSucceeded(at now: Timestamp) -> Bool {
        unfailedSince.map { now.since($0) > Self.grace } ?? false
    }
}
