package import Core
import Waku

/// What is held against the token of a registration whose notifications failed for reasons that may be the operator's own.
///
///     none ──(failure)──▶ in doubt ──(five failures in a row, the first at least a day ago)──▶ unregistered
///       ▲                  │  ▲ │
///       │                  │  └─┘ (failure)
///       └──(success)───────┘
///
/// gorush tells failures alone, so a success is what remains: a notification that it accepted, of which no failure came for ten minutes. That
/// is looked at when the next notification is accepted, or fails. Ten minutes leave time for gorush's own queue and its tries; notifications in
/// quick succession, whose failures come after all of them were accepted, are no success.
package struct TokenDoubt: Hashable, Sendable {
    package static let failureLimit = 5
    package static let period = Duration.seconds(24 * 3600)
    package static let grace = Duration.seconds(600)

    /// Of the registration that has the token. A newer one has none of it.
    package let version: UInt64
    /// In a row.
    package private(set) var failureCount = 1
    package private(set) var firstFailure: Timestamp
    package private(set) var lastFailure: Timestamp
    /// When the first notification after the last failure was accepted.
    package private(set) var unfailedSince: Timestamp?

    /// At the first failure.
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

    /// gorush accepted another notification. Returns whether the doubt is over.
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
