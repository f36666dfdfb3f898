import Logging
import Core
import Synchronization

/// Health checks of gorush servers before the first post.
extension DeliveryService {
    /// So many failures in a row count, as for the circuit breaker: gorush may be starting at the same time.
    private static let failureLimit = 3
    /// The pause between two health checks of a server that did not answer.
    private static let probePause = ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(5))

    /// Repeats a server's health check until it succeeds or the server has answered a post. Deliveries do not wait for it.
    func probe(_ endpoint: Int) async {
        var failures = 0
        while !Task.isCancelled, let reason = await gorush[endpoint].posting.healthFailure() {
            failures += 1
            guard !table.withLock({ $0.hasAnsweredPost(endpoint) }) else { return }
            if failures >= Self.failureLimit { table.withLock { $0.setHealthFailure(reason, of: endpoint) } }
            if failures == Self.failureLimit {
                logger.warning(
                    "gorush health check failed", metadata: ["endpoint": "\(routing.rules[endpoint].name)", "reason": "\(reason)"])
            }
            guard (try? await Task.sleep(for: Self.probePause.delay(afterFailures: failures, jitter: .random(in: 0...1)))) != nil else {
                return
            }
        }
        table.withLock { $0.setHealthFailure(nil, of: endpoint) }
    }
}
