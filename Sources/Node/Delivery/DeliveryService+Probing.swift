import Logging
import Core
import Synchronization

/// Health checks of gorush servers before the first post.
extension DeliveryService {
    /// The pause between two health checks of a server that did not answer.
    private static let probePause = ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(5))

    /// Repeats a server's health check until it succeeds or the server has answered a post. Deliveries do not wait for it.
    func probe(_ endpoint: Int) async {
        var failures = 0
        while !Task.isCancelled, let reason = await gorush[endpoint].posting.healthFailure() {
            guard table.withLock({ $0.healthCheckFailed(reason, at: endpoint) }) else { return }
            if failures == 0 {
                logger.warning("gorush does not answer", metadata: ["endpoint": "\(routing.rules[endpoint].name)", "reason": "\(reason)"])
            }
            failures += 1
            guard (try? await Task.sleep(for: Self.probePause.delay(afterFailures: failures, jitter: .random(in: 0...1)))) != nil else {
                return
            }
        }
        table.withLock { $0.healthCheckAnswered(by: endpoint) }
    }
}
