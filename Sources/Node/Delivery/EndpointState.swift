/// The state of a gorush endpoint, as observed by posts and health checks.
package struct EndpointState: Sendable {
    package let name: String
    package let breaker: CircuitBreaker
    package let isOpen: Bool
    /// nil while it answers in time.
    package let slowness: DeliveryQueue.Slowness?
    /// The number of unanswered posts, and the age of the oldest.
    package let unanswered: (count: Int, age: Duration)
    /// The maximum number of notifications in the next post.
    package let batchLimit: Int
    package let waitingCount: Int
    /// Why the last post failed.
    package let failure: String
    /// Why the last health check failed; nil once gorush has answered it or a post.
    var healthFailure: String?
    /// See ``NotificationPosting/certificateEnd``.
    package var certificateEnd: Int?

    /// The reason why notifications can't be delivered; nil when they can. After a failure, an endpoint counts as available once its pause is over
    /// and no notifications wait, unless its health check fails.
    package var obstacle: String? {
        if !breaker.isClosed, waitingCount > 0 || isOpen { return "unavailable, \(waitingCount) waiting: \(failure)" }
        if let healthFailure { return "does not answer: \(healthFailure)" }
        return slowness.flatMap { $0.isStalled ? delay : nil }
    }

    /// A description of its slowness; nil when it is not slow, or no notifications wait.
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
