public import Core

/// When a peer may be dialed again after failed attempts: exponential backoff with jitter, per peer.
public struct DialBackoff: Sendable {
    /// Peers that are remembered; beyond it the one whose retry is due first is forgotten.
    public let capacity: Int

    private struct Entry {
        var failures: Int
        var retryAt: Instant
    }

    private let backoff: ExponentialBackoff
    private var entries: [PeerID: Entry] = [:]

    /// - Parameters:
    ///   - initial: The longest delay after the first failure; it doubles with each further one. At least half of it is waited.
    ///   - maximum: The longest delay.
    ///   - capacity: Peers that are remembered.
    public init(initial: Duration = .seconds(1), maximum: Duration = .seconds(300), capacity: Int = 1_024) {
        backoff = ExponentialBackoff(initial: initial, maximum: maximum)
        self.capacity = capacity
    }

    public func mayDial(_ peer: PeerID, at now: Instant) -> Bool {
        entries[peer].map { now >= $0.retryAt } ?? true
    }

    /// When the peer may be dialed again; nil for a peer without failures.
    public func retryTime(_ peer: PeerID) -> Instant? {
        entries[peer]?.retryAt
    }

    /// - Parameters:
    ///   - peer: The peer that could not be reached, or its connection was lost at once.
    ///   - now: The current time.
    ///   - jitter: A random number from 0 to 1.
    public mutating func failed(_ peer: PeerID, at now: Instant, jitter: Double) {
        let failures = (entries[peer]?.failures ?? 0) + 1
        entries[peer] = Entry(failures: failures, retryAt: now + backoff.delay(afterFailures: failures, jitter: jitter))
        if entries.count > capacity, let first = entries.min(by: { $0.value.retryAt < $1.value.retryAt }) { entries[first.key] = nil }
    }

    /// A connection to the peer lasted for a while.
    public mutating func succeeded(_ peer: PeerID) {
        entries[peer] = nil
    }
}
