public import Waku

/// Decides what is posted to gorush, and when. Ids, time and outcomes come in, batches go out; whoever holds it does the talking, and
/// loads the contents when a batch is posted, so that a backlog stays small.
///
///     add ──▶ fresh ──────(a post is free)──────▶ in flight ──(accepted)─────────────▶ accepted
///               │                                 ▲   ▲ │ │ └──(refused, alone)───────▶ dropped
///               │            (a post is free)─────┘   │ │ └────(refused, with others)─▶ halved ──┐
///               │                   │                 └─┼──────────(a post is free)──────────────┤
///               │                retrying ◀──(failed)───┘                                        │
///               │                   │                                                            │
///               └──(too old)────────┴──────────────────────(too old)─────────────────────────────┴──▶ expired
///
/// `remove` takes a delivery out wherever it is. One that is in flight then has no resolution.
///
/// - Half of a batch are fresh deliveries and half are retries that are due, when there are enough of both: neither waits for the other's
///   backlog.
/// - While the last outcome is a failure, there is one post at a time, a small one, after a pause that grows with each failure in a row.
/// - Halves go out first, the last one first, so that there are few of them.
///
/// Times must not go back: the driver adds a monotonic clock to the time at which it started. Every call takes logarithmic time for each
/// delivery that it names.
public struct DeliveryQueue: Sendable {
    private enum Place {
        case fresh
        case retrying
        case inFlight(UInt64)
        /// In the half with this number.
        case halved(UInt64)
    }

    private struct Delivery {
        let expires: Timestamp
        /// How often it failed.
        var failureCount = 0
        var place: Place
    }

    private struct Half {
        let number: UInt64
        let deliveries: [Int64]
    }

    private let configuration: Configuration
    private var generator: any RandomNumberGenerator & Sendable

    private var deliveries: [Int64: Delivery] = [:]
    /// In the order they came.
    private var fresh = IndexedHeap<UInt64>()
    /// By the time they are due.
    private var retrying = IndexedHeap<Timestamp>()
    private var halves: [Half] = []
    /// All that are neither in flight nor in a half, by the time they are too old.
    private var expiring = IndexedHeap<Timestamp>()
    private var batches: [UInt64: Batch] = [:]
    private var lastNumber: UInt64 = 0
    /// Failures in a row.
    private var failureCount = 0
    /// Nothing is posted before.
    private var pausedUntil: Timestamp?
    private var isDraining = false

    public init(
        configuration: Configuration = Configuration(), generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.configuration = configuration
        self.generator = generator
    }

    /// All in the queue, those in flight included.
    public var count: Int { deliveries.count }
    public var freshCount: Int { fresh.count }
    /// Waiting for their next try, due or not.
    public var retryingCount: Int { retrying.count }
    public var batchesInFlight: Int { batches.count }
    /// Whether a delivery is in the queue, in flight or not.
    public func contains(_ id: Int64) -> Bool { deliveries[id] != nil }
    /// Whether the last outcome was a failure.
    public var isGorushFailing: Bool { failureCount > 0 }
    /// Nothing is in flight, and nothing will be.
    public var isDrained: Bool { isDraining && batches.isEmpty }

    /// A new delivery. One that is in the queue already stays as it is.
    public mutating func add(_ id: Int64, expires: Timestamp, now: Timestamp) {
        guard deliveries[id] == nil else { return }
        deliveries[id] = Delivery(expires: expires, place: .fresh)
        fresh.insert(id, key: nextNumber())
        expiring.insert(id, key: expires)
    }

    /// Takes out a delivery that is no longer wanted. The outcome of a batch that it is in means nothing to it any more.
    public mutating func remove(_ id: Int64) {
        guard deliveries.removeValue(forKey: id) != nil else { return }
        fresh.remove(id)
        retrying.remove(id)
        expiring.remove(id)
    }

    /// From now on nothing is posted; what is in flight can finish.
    public mutating func drain() {
        isDraining = true
    }

    /// What is to be done now. To be asked after every `add` and `finished`, and at ``nextWake(now:)``.
    public mutating func actions(now: Timestamp) -> [Action] {
        var expired: [Int64] = []
        while let (expires, id) = expiring.first, expires <= now {
            remove(id)
            expired.append(id)
        }
        var actions: [Action] = []
        while hasFreePost(now: now) {
            let ids = nextIDs(now: now, expired: &expired)
            guard !ids.isEmpty else { break }
            let batch = Batch(id: nextNumber(), deliveries: ids)
            for id in ids { deliveries[id]?.place = .inFlight(batch.id) }
            batches[batch.id] = batch
            actions.append(.post(batch))
        }
        if !expired.isEmpty { actions.insert(.expire(expired), at: 0) }
        return actions
    }

    /// When there is something to do at the latest, if nothing is added and nothing finishes before; nil for never.
    public func nextWake(now: Timestamp) -> Timestamp? {
        var wake = expiring.first?.key
        if batches.count < limitInFlight, !isDraining {
            let resume = max(pausedUntil ?? now, now)
            if !fresh.isEmpty || !halves.isEmpty {
                wake = min(wake ?? resume, resume)
            } else if let due = retrying.first?.key {
                let next = max(due, resume)
                wake = min(wake ?? next, next)
            }
        }
        return wake.map { max($0, now) }
    }

    /// The end of a batch. One that is not in flight has no resolutions.
    public mutating func finished(_ batchID: UInt64, outcome: Outcome, now: Timestamp) -> [Resolution] {
        guard let batch = batches.removeValue(forKey: batchID) else { return [] }
        let ids = batch.deliveries.filter { id in
            if case .inFlight(batchID) = deliveries[id]?.place { true } else { false }
        }
        switch outcome {
        case .accepted, .refused:
            failureCount = 0
            pausedUntil = nil
        case .failed(let retryAfter):
            pause(retryAfter, now)
        case .notPosted: break
        }
        switch outcome {
        case .accepted:
            for id in ids { deliveries[id] = nil }
            return ids.map(Resolution.accepted)
        case .refused where batch.deliveries.count == 1:
            for id in ids { deliveries[id] = nil }
            return ids.map(Resolution.dropped)
        case .refused:
            let middle = (ids.count + 1) / 2
            addHalf(ids[middle...])
            addHalf(ids[..<middle])
            return ids.map(Resolution.retrying)
        case .failed(let retryAfter):
            for id in ids { retry(id, after: retryAfter, now: now) }
            return ids.map(Resolution.retrying)
        case .notPosted:
            for id in ids { retry(id, after: nil, now: now) }
            return ids.map(Resolution.retrying)
        }
    }

    private var limitInFlight: Int { isGorushFailing ? 1 : configuration.maximumBatchesInFlight }

    private func hasFreePost(now: Timestamp) -> Bool {
        !isDraining && batches.count < limitInFlight && (pausedUntil.map { $0 <= now } ?? true)
    }

    /// gorush is out of order, whatever it was posted: all wait, and then one batch tries.
    private mutating func pause(_ retryAfter: Duration?, _ now: Timestamp) {
        let asked = now + min(retryAfter ?? .zero, configuration.longestRetryAfter)
        // Those that were on their way together fail together: that is one failure.
        if let pausedUntil, now < pausedUntil {
            self.pausedUntil = max(pausedUntil, asked)
        } else {
            pausedUntil = max(now + min(backoff(failureCount: failureCount), configuration.longestPause), asked)
            failureCount += 1
        }
    }

    private mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// Takes what goes into the next batch out of where it waits.
    private mutating func nextIDs(now: Timestamp, expired: inout [Int64]) -> [Int64] {
        while let half = halves.popLast() {
            var ids: [Int64] = []
            for id in half.deliveries {
                guard let delivery = deliveries[id], case .halved(half.number) = delivery.place else { continue }
                if delivery.expires <= now {
                    deliveries[id] = nil
                    expired.append(id)
                } else {
                    ids.append(id)
                }
            }
            if !ids.isEmpty { return ids }
        }
        let limit = isGorushFailing ? configuration.probeBatchCount : configuration.maximumBatchCount
        var ids: [Int64] = []
        while ids.count < limit {
            let retry = popDue(now: now)
            if let retry { ids.append(retry) }
            let new = ids.count < limit ? fresh.popFirst() : nil
            if let new { ids.append(new) }
            if retry == nil, new == nil { break }
        }
        for id in ids { expiring.remove(id) }
        return ids
    }

    private mutating func popDue(now: Timestamp) -> Int64? {
        guard let due = retrying.first?.key, due <= now else { return nil }
        return retrying.popFirst()
    }

    private mutating func addHalf(_ ids: ArraySlice<Int64>) {
        guard !ids.isEmpty else { return }
        let half = Half(number: nextNumber(), deliveries: Array(ids))
        for id in ids { deliveries[id]?.place = .halved(half.number) }
        halves.append(half)
    }

    private mutating func retry(_ id: Int64, after retryAfter: Duration?, now: Timestamp) {
        guard var delivery = deliveries[id] else { return }
        let pause = max(backoff(failureCount: delivery.failureCount), min(retryAfter ?? .zero, configuration.longestRetryAfter))
        delivery.failureCount += 1
        delivery.place = .retrying
        deliveries[id] = delivery
        retrying.insert(id, key: now + pause)
        expiring.insert(id, key: delivery.expires)
    }

    /// At random in the upper half of what doubles with each failure.
    private mutating func backoff(failureCount: Int) -> Duration {
        let longest = configuration.longestBackoff
        // Doubled 30 times it is beyond any limit that makes sense, and within the range of a Duration.
        let doubled = min(longest, configuration.firstBackoff * (1 << min(failureCount, 30)))
        return doubled * Double.random(in: 0.5...1, using: &generator)
    }
}
