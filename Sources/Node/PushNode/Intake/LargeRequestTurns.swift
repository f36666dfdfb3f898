import RateLimits

/// The order in which the parts of large requests are committed. Payers take turns, and a request has one part in line. One transaction at a time has
/// parts of a limited size together, so that the messages of others wait for one such transaction at most.
///
///     add ──▶ in line ──(its payer's turn, and none is being committed)──▶ being committed ──(more parts)──▶ in line
struct LargeRequestTurns<Part: Sendable>: Sendable {
    /// A transaction has parts until their size reaches this: fewer than twice as many devices, in 10 to 20 ms.
    static var transactionSize: Int { 64 }

    private var line: FairQueue<(part: Part, size: Int)>
    private var isBusy = false

    init(capacity: Int) {
        line = FairQueue(capacity: capacity)
    }

    mutating func add(_ part: Part, size: Int, by charge: Charge) {
        // Each request holds some of the work limit, so there are never more than fit.
        _ = line.push((part, size), by: charge.payer, charge.standing)
    }

    /// The parts to commit now, in one transaction; none if one is being committed, or no part waits.
    mutating func next() -> [Part] {
        guard !isBusy else { return [] }
        var parts: [Part] = []
        var size = 0
        while size < Self.transactionSize, let next = line.pop() {
            parts.append(next.part)
            size += next.size
        }
        isBusy = !parts.isEmpty
        return parts
    }

    /// Records that the transaction is durable, or has failed.
    mutating func ended() {
        isBusy = false
    }
}
