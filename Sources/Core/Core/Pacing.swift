/// When a transaction may begin, where several nodes share a database: under load each node waits a little for more to do in it, so that all of
/// them together begin about as many transactions as one would. A transaction costs the server, and the nodes that it notifies, nearly as much
/// for one command as for many.
///
/// A node of which little is asked waits for nothing: transactions are counted on average, and some may follow each other at once.
package struct Pacing: Hashable, Sendable {
    /// So many transactions may begin at once after a quiet time.
    package static let burst = 8

    /// The mean time between two transactions. Zero: none waits.
    package let interval: Duration
    /// When the transactions that began are paid for, one each interval.
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
