/// How a gorush server is, as far as posts tell.
package struct EndpointState: Sendable {
    package let name: String
    package let breaker: CircuitBreaker
    package let isOpen: Bool
    /// nil while it answers in time.
    package let slowness: DeliveryQueue.Slowness?
    /// Posts without an answer, and how long the oldest of them.
    package let unanswered: (count: Int, age: Duration)
    /// Notifications that the next post may have.
    package let batchLimit: Int
    package let waitingCount: Int
    /// Why the last post failed.
    package let failure: String
    /// Why its health check failed at the start, until it has answered that or a post.
    var healthFailure: String?

    /// What stands in the way of deliveries; nil when nothing does. A gorush that failed and has got nothing to prove itself by since is
    /// given the benefit of the doubt.
    package var obstacle: String? {
        if !breaker.isClosed, waitingCount > 0 || isOpen { return "takes no notifications, \(waitingCount) wait: \(failure)" }
        if let healthFailure { return "does not answer: \(healthFailure)" }
        return slowness.flatMap { $0.isStalled ? delay : nil }
    }

    /// That it is slow; nil when it is not, or nothing waits for it.
    package var delay: String? {
        guard let slowness, waitingCount > 0 else { return nil }
        return "is slow: \(slowness), \(waitingCount) notifications wait"
    }
}

extension CircuitBreaker {
    var severity: Int {
        switch state {
        case .closed: 0
        case .halfOpen: 1
        case .open: 2
        }
    }
}
