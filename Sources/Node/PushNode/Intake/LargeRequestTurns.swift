import RateLimits

/// The order in which the parts of large requests are committed: one at a time, so that the messages of others wait for one part at most. Payers take
/// turns; a request has one part in line.
///
///     add ──▶ in line ──(its payer's turn, and no part is being committed)──▶ being committed ──(more parts)──▶ in line
struct LargeRequestTurns<Part: Sendable>: Sendable {
    private var line: FairQueue<Part>
    private var isBusy = false

    /// - Parameter capacity: the maximum number of requests.
    init(capacity: Int) {
        line = FairQueue(capacity: capacity)
    }

    mutating func add(_ part: Part, by charge: Charge) {
        // Each request holds some of the work limit, so there are never more than fit.
        _ = line.push(part, by: charge.payer, charge.standing)
    }

    /// The part to commit now; nil if one is being committed, or none waits.
    mutating func next() -> Part? {
        guard !isBusy, let part = line.pop() else { return nil }
        isBusy = true
        return part
    }

    /// Records that the part is durable, or has failed.
    mutating func ended() {
        isBusy = false
    }
}
