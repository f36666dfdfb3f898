package import Core

/// The time for which the node may act as the holder of its lease, from the renewals that the database has committed.
///
///     pending ──(renewal committed)──▶ held(until) ──(until passed)──▶ lapsed ──(renewal committed)──▶ held
///        └──────────────┴───(the row has ended)──────────┴──▶ ended
///
/// - `until` is the time at which the last committed renewal was **sent**, plus lease − margin. Observers measure the lease from the time at which
///   they *read* the renewal, which is later; so the holder stops at least a margin before another node ends its lease, however slow network and
///   database are.
/// - A renewal whose outcome is unknown extends nothing.
/// - `lapsed` is not `ended`: until another node ends the lease, the next renewal continues it, and the partitions remain the node's.
///
/// Times must include suspension (`CLOCK_BOOTTIME`, as `Instant.now` does): a machine that wakes up must find its lease over.
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

    /// Check right before a post is written to its socket.
    package func isValid(at now: Instant) -> Bool {
        if case .held(let until) = state { now < until } else { false }
    }
}
