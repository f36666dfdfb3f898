package import Core

/// How long the node may act as the holder of its lease, by what the database has committed.
///
///     pending ──(renewal committed)──▶ held(until) ──(until passed)──▶ lapsed ──(renewal committed)──▶ held
///        └──────────────┴───(the row has ended)──────────┴──▶ ended
///
/// - `until` is when the last committed renewal was **sent**, plus lease − margin. Observers count the lease from when they have *read* the
///   renewal, which is later; so the holder stops at least a margin before anybody ends its lease, however long network and database take.
/// - A renewal whose outcome is unknown extends nothing.
/// - `lapsed` is not `ended`: as long as nobody ended it, the next renewal continues it, and the partitions are still the node's.
///
/// The time must count suspension (`CLOCK_BOOTTIME`, which `Instant.now` is): a machine that wakes up must find its lease over.
package struct OwnLease: Sendable {
    package enum State: Hashable, Sendable {
        case pending
        case held(until: Instant)
        case ended
    }

    package private(set) var state = State.pending
    private let length: Duration

    package init(_ configuration: ClusterConfiguration) {
        length = configuration.lease - configuration.leaseMargin
    }

    package mutating func renewed(sentAt: Instant) {
        switch state {
        case .pending: state = .held(until: sentAt + length)
        case .held(let until): state = .held(until: max(until, sentAt + length))
        case .ended: break
        }
    }

    package mutating func end() { state = .ended }

    /// To be asked right before a post is written to its socket.
    package func isValid(at now: Instant) -> Bool {
        if case .held(let until) = state { now < until } else { false }
    }
}
