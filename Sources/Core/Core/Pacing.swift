/// Limits the rate of transactions where several nodes share a database: under load each node waits briefly to batch more work into a transaction, so
/// that all nodes together begin about as many transactions as a single node. A transaction costs the server, and the nodes that it notifies, nearly
/// as much for one command as for many.
///
/// The limit applies on average: a node with little load never waits, and may begin some transactions in direct succession.
package struct Pacing: Hashable, Sendable {
    /// The number of transactions that may begin at once after an idle period.
    package static let burst = 8

    /// The mean time between two transactions. Zero disables the limit.
    package let interval: Duration
    /// The end of the time slots taken by transactions so far, one interval per transaction.
    private var paid = Instant(sinceEpoch: .zero)

    package init(interval: Duration = .zero) {
        self.interval = interval
    }

    /// How long the next transaction must wait; zero when it may begin.
    package func delay(at now: Instant) -> Duration {
        max(.zero, paid - interval * (Self.burst - 1) - now)
    }

    package mutating func begin(at now: Instant) {
        paid = max(paid, now) + interval
    }
}
