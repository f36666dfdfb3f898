package import Core

extension DeliveryQueue {
    /// The slowness while a post is overdue, and afterwards until a post is answered; otherwise nil.
    package func slowness(at now: Timestamp) -> Slowness? {
        guard case .slow(let slow) = pace.state else { return nil }
        let (count, age) = pace.outstanding(at: now)
        let isStalled = now.since(slow.lastAnswer ?? slow.since) >= configuration.stalledAfter
        return Slowness(postCount: count, age: age, isStalled: isStalled)
    }

    /// The number of unanswered posts, and the age of the oldest.
    package func unanswered(at now: Timestamp) -> (count: Int, age: Duration) {
        pace.outstanding(at: now)
    }

    /// The maximum number of notifications in the next post.
    package func batchLimit(at now: Timestamp) -> Int { pace.batchLimit(at: now) }

    /// Makes deliveries in the backlog due now, and allows a probe if gorush is unavailable or slow. Returns those of these deliveries that are not in
    /// flight.
    ///
    /// - Parameter ids: nil for all.
    package mutating func hasten(_ ids: [Int64]?, now: Timestamp) -> [Int64] {
        breaker.hasten(at: now)
        pace.hasten()
        var hastened: [Int64] = []
        for id in ids ?? Array(deliveries.keys) {
            switch deliveries[id]?.place {
            case .backlog:
                backlog.remove(id)
                doubtful.remove(id)
                place(id, inBacklogAt: now)
                hastened.append(id)
            case .held, .fresh, .halved: hastened.append(id)
            case .inFlight, nil: break
            }
        }
        return hastened
    }
}
