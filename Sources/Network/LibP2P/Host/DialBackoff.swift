public import Core

/// When a peer may be dialed again after failed attempts: exponential backoff with jitter, per peer.
public struct DialBackoff: Sendable {
    /// The maximum number of peers that are remembered. Beyond it, the peer whose retry is due first is forgotten.
    public let capacity: Int

    private struct Entry {
        var failures: Int
        var retryAt: Instant
    }

    private let backoff: ExponentialBackoff
    private var entries: [PeerID: Entry] = [:]

    /// - Parameter initial: The longest delay after the first failure; it doubles with each further one. Delays are at least half of the longest.
    public init(initial: Duration = .seconds(1), maximum: Duration = .seconds(300), capacity: Int = 1_024) {
        backoff = ExponentialBackoff(initial: initial, maximum: maximum)
        self.capacity = capacity
    }

    /// Whether the peer's delay has passed, or it has no failures.
    public func mayDial(_ peer: PeerID, at now: Instant) -> Bool {
        entries[peer].map { now >= $0.retryAt } ?? true
    }

    /// Whether the last attempt failed.
    package func hasFailed(_ peer: PeerID) -> Bool { entries[peer] != nil }

    /// Records a failed attempt, or a connection that was lost at once.
    /// - Parameter jitter: A random number from 0 to 1.
    public mutating func failed(_ peer: PeerID, at now: Instant, jitter: Double) {
        let failures = (entries[peer]?.failures ?? 0) + 1
        entries[peer] = Entry(failures: failures, retryAt: now + backoff.delay(afterFailures: failures, jitter: jitter))
        if entries.count > capacity, let first = entries.min(by: { $0.value.retryAt < $1.value.retryAt }) { entries[first.key] = nil }
    }

    /// Records that a connection to the peer lasted, so that its next failure counts as the first.
    public mutating func succeeded(_ peer: PeerID) {
        entries[peer] = nil
    }
}
