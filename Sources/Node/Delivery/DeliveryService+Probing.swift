import Logging
import Core
import NodeMetrics
import Synchronization

/// Health checks of gorush servers: before the first post, when nothing waits that could show whether a server works again, and for its certificate.
extension DeliveryService {
    /// So many failures in a row count, as for the circuit breaker: gorush may be starting at the same time.
    private static let failureLimit = 3
    /// The pause between two health checks of a server that did not answer.
    private static let probePause = ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(5))
    /// The same while nothing waits for the server.
    private static let idlePause = ExponentialBackoff(initial: .seconds(1), maximum: .seconds(5))

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

    /// Closes a circuit breaker by a health check while nothing waits for the server. Otherwise the node would report the server as unavailable, or as
    /// available, until the next notification. Reads its certificate again, too.
    func probeWhileIdle(_ endpoint: Int) async {
        var failures = 1
        var certificateRead = Instant.now
        while (try? await Task.sleep(for: Self.idlePause.delay(afterFailures: failures, jitter: .random(in: 0...1)))) != nil {
            guard table.withLock({ $0.isUnprobed(endpoint, now: steadyNow) }) else {
                failures = 1
                if gorush[endpoint].posting.certificateEnd != nil, Instant.now - certificateRead >= configuration.certificateInterval {
                    certificateRead = .now
                    // The next post shows whether the server works.
                    _ = await gorush[endpoint].posting.healthFailure()
                }
                continue
            }
            let reason = await gorush[endpoint].posting.healthFailure()
            failures = reason == nil ? 1 : failures + 1
            let isClosed = table.withLock { table in
                let isClosed = table.checkedHealth(of: endpoint, failure: reason, now: steadyNow)
                // Within the lock, as in `finished`.
                if isClosed, table.areAllBreakersClosed { feedback.alarms.clear(.gorushGivenUp) }
                return isClosed
            }
            if isClosed { logger.info("gorush available again", metadata: ["endpoint": "\(routing.rules[endpoint].name)"]) }
        }
    }
}
