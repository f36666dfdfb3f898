import Core

/// Whether a node can't write its store, or read the outbox, while its heartbeats, which have a connection of their own, are committed: as when
/// the server refuses it further connections. Such a node keeps its lease, so nobody would take over what it can't do.
struct StoreTrouble: Sendable {
    private var since: Instant?
    /// Whether it has failed for two leases. After the server's return a store that has nothing to do takes most of one until it notices.
    private(set) var isLasting = false

    /// A heartbeat was committed.
    mutating func heartbeatCommitted(storeFails: Bool, lease: Duration, at now: Instant) {
        since = storeFails ? since ?? now : nil
        isLasting = since.map { now - $0 >= lease * 2 } ?? false
    }

    /// The database is away: that is no reason to hand work over, now or when it returns.
    mutating func heartbeatFailed() {
        if !isLasting { since = nil }
    }
}
