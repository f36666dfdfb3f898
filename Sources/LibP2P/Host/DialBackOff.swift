/// When a peer that could not be reached may be dialled again: twice as long each time up to a limit, less up to half of it by chance, so that many
/// who lost the same node do not come back in one instant. Pure: time and chance come in.
public struct DialBackOff: Sendable {
    public var initial: Duration
    public var maximum: Duration
    /// Peers that are remembered; beyond it the one that is due first is forgotten.
    public var capacity: Int

    private struct Entry {
        var failures = 0
        var retryAt = Duration.zero
    }

    private var entries: [PeerID: Entry] = [:]

    public init(initial: Duration = .seconds(1), maximum: Duration = .seconds(300), capacity: Int = 1_024) {
        self.initial = initial
        self.maximum = maximum
        self.capacity = capacity
    }

    /// `now` is since any start, on a clock that never goes back.
    public func mayDial(_ peer: PeerID, at now: Duration) -> Bool {
        entries[peer].map { now >= $0.retryAt } ?? true
    }

    /// When it may be dialled, if that is not now.
    public func retryTime(_ peer: PeerID) -> Duration? {
        entries[peer]?.retryAt
    }

    /// `jitter` is a random number from 0 to 1.
    public mutating func failed(_ peer: PeerID, at now: Duration, jitter: Double) {
        var entry = entries[peer] ?? Entry()
        // Twenty doublings are beyond any maximum: more would only overflow.
        let full = min(maximum, initial * (1 << min(entry.failures, 20)))
        entry.failures += 1
        entry.retryAt = now + full / 2 + full / 2 * min(max(jitter, 0), 1)
        entries[peer] = entry
        if entries.count > capacity, let first = entries.min(by: { $0.value.retryAt < $1.value.retryAt }) { entries[first.key] = nil }
    }

    /// A connection that held for a while: one that is lost at once is a failure like any other.
    public mutating func succeeded(_ peer: PeerID) {
        entries[peer] = nil
    }
}
