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

    /// The pause of a notification while the allowance of new connections to an address is used up.
    private static let busyAddressPause = Duration.seconds(5)

    /// Reports when push services wait long for a place, and when none waits any more.
    func noteLongWait(at now: Timestamp) {
        let change = table.withLock { table -> (isLong: Bool, figures: WebPushFigures)? in
            table.origins.longWaitChange(now: now).map { ($0, table.origins.figures(now: now)) }
        }
        guard let (isLong, figures) = change else { return }
        guard isLong else {
            feedback.alarms.clear(.webPushPlaces)
            return logger.info("push services no longer wait for a place")
        }
        let isResponsive = figures.responsiveWait > .zero
        feedback.alarms.raise(.webPushPlaces, isResponsive ? "services that answer wait, too" : "services that have not answered wait")
        logger.warning("push services wait for a place", metadata: ["others_only": .stringConvertible(!isResponsive)])
    }

    func postWebPush(_ delivery: QueuedDelivery, of batch: DeliveryQueue.Batch, to origin: WebPushOrigin) async -> PostResult {
        guard let webPush, let message = delivery.webPushMessage(webPushSettings.withLock(\.self)) else {
            return PostResult(outcome: .unpostable, reason: "the protocol has no Web Push", postedTokenCount: 1)
        }
        let sent = steadyNow
        let isProven = table.withLock { $0.origins.isProven(origin, at: sent) }
        let start = ContinuousClock.now
        let reply = await webPush.posting.post(message, hasAnswered: isProven)
        let time = start.duration(to: .now)
        // The push service was not asked.
        guard reply.answer != .tooLong else { return reply.answer.result(id: message.id, status: nil, reason: reply.reason) }
        counters.record(time, in: .webPushPostTime)
        counters.add(.webPush(reply.answer.label))
        let now = steadyNow
        let isPaused = table.withLock { table in
            // The push service has not failed: it, and the notification, count as if nothing had happened.
            if reply.answer == .addressBusy {
                table.postpone([delivery.waiting.id: now + Self.busyAddressPause], of: batch, at: .webPush(origin))
            }
            return table.origins.noteAnswer(
                reply.answer, of: origin, endpointHash: message.subscription.endpoint.hashValue, from: reply.address, after: time,
                postCount: reply.postCount, now: now)
        }
        if isPaused {
            counters.add(.webPushOriginPaused)
            logger.warning("a push service refuses subscriptions, and is paused")
        }
        // Without the origin: a push service may be one person's own.
        logger.debug(
            "push service answered", metadata: ["outcome": "\(reply.answer.label.rawValue)", "reason": "\(reply.reason ?? "none")"])
        if reply.answer == .keyRefused {
            // One that never accepted anything may be a user's own, which wants credentials.
            let reason = (reply.reason ?? "unknown") + (isProven ? "" : "; it accepted nothing within 24 hours")
            feedback.alarm(.webPushKeyRefused, "a push service does not accept this node's VAPID key", ["reason": "\(reason)"])
        }
        return reply.answer.result(id: message.id, status: reply.status, reason: reply.reason)
    }
}
