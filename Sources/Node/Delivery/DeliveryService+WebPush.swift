import Core
import Logging
import NodeMetrics
import Synchronization

/// Posting to push services.
extension DeliveryService {
    /// Replaces the operator's settings for Web Push messages.
    package func replaceWebPushSettings(_ settings: NotificationSettings) {
        webPushSettings.withLock { $0 = settings }
    }

    func postWebPush(_ delivery: QueuedDelivery, at place: Int) async -> PostResult {
        guard let webPush, let message = delivery.webPushMessage(webPushSettings.withLock(\.self)) else {
            return PostResult(outcome: .refused, reason: "the protocol has no Web Push", postedTokenCount: 1)
        }
        let start = ContinuousClock.now
        let reply = await webPush.posting.post(message)
        counters.record(start.duration(to: .now), in: .webPushPostTime)
        counters.add(.webPush(reply.answer.label))
        let origin = message.subscription.origin
        let now = steadyNow
        let isPaused = table.withLock {
            $0.noteAnswer(
                reply.answer, endpointHash: message.subscription.endpoint.hashValue, from: reply.address, at: place, now: now)
        }
        if isPaused {
            counters.add(.webPushOriginPaused)
            logger.warning("a push service refuses subscriptions, and is paused")
            logger.debug("push service paused", metadata: ["origin": "\(origin)"])
        }
        if reply.answer != .accepted {
            logger.debug(
                "push service did not accept a message",
                metadata: ["origin": "\(origin)", "outcome": "\(reply.answer.label.rawValue)", "reason": "\(reply.reason ?? "unknown")"])
        }
        if reply.answer == .keyRefused {
            feedback.alarm(
                .webPushKeyRefused, "a push service does not accept this node's VAPID key", ["reason": "\(reply.reason ?? "unknown")"])
        }
        return reply.answer.result(id: message.id, status: reply.status, reason: reply.reason)
    }
}
