package import Core
import Waku

extension DeliveryQueue {
    /// nil unless a post is overdue, or was and nothing has been answered since.
    package func slowness(at now: Timestamp) -> Slowness? {
        guard case .slow(let slow) = pace.state else { return nil }
        let (count, age) = pace.outstanding(at: now)
        let isStalled = now.since(slow.lastAnswer ?? slow.since) >= configuration.stalledAfter
        return Slowness(postCount: count, age: age, isStalled: isStalled)
    }

    /// Posts without an answer, and how long the oldest of them.
    package func unanswered(at now: Timestamp) -> (count: Int, age: Duration) {
        pace.outstanding(at: now)
    }

    /// Notifications that the next post may have.
    package func batchLimit(at now: Timestamp) -> Int { pace.batchLimit(at: now) }

    /// What waits for another try is due now, and so is a probe when gorush is given up or slow. Returns how many of them wait for gorush alone.
    ///
    /// - Parameter ids: nil for all.
    package mutating func hasten(_ ids: [Int64]?, now: Timestamp) -> Int {
        breaker.hasten(at: now)
        pace.hasten()
        var count = 0
        for id in ids ?? Array(deliveries.keys) {
            switch deliveries[id]?.place {
            case .backlog:
                backlog.remove(id)
                place(id, inBacklogAt: now)
                count += 1
            case .held, .fresh, .halved: count += 1
            case .inFlight, nil: break
            }
        }
        return count
    }
}
