extension MetricGroup {
    /// Posts to Web Push services. No label names a push service.
    package static let webPush = MetricGroup(
        metrics: [
            .webPushPosts, .webPushPostTime, .webPushOrigins, .webPushPlaceWait, .webPushWaiting, .webPushPaused, .webPushSubscriptions,
        ],
        counters: [
            .webPushAccepted, .webPushGone, .webPushRefused, .webPushKeyRefused, .webPushLater, .webPushUnanswered, .webPushOriginPaused,
        ])
}

extension Metric {
    package static let webPushPosts = Metric(
        "waku_push_web_push_posts_total", WebPushAnswerLabel.self, help: "Posts to Web Push services, by outcome.")
    package static let webPushPostTime = Metric(
        "waku_push_web_push_post_seconds", buckets: fineBuckets + [30], help: "Duration of posts to Web Push services.")
    package static let webPushOrigins = Metric(
        "waku_push_web_push_origins", WebPushOriginLabel.self,
        help: "Push services with notifications that wait or are being posted, by state.")
    package static let webPushPlaceWait = Metric(
        "waku_push_web_push_place_wait_seconds", WebPushPlaceLabel.self,
        help: "How long the push service has waited that waits longest until something can be posted to it, because of others.")
    package static let webPushWaiting = Metric("waku_push_web_push_waiting", help: "Notifications that wait for Web Push services.")
    package static let webPushPaused = Metric(
        "waku_push_web_push_paused_total", help: "How often a push service was paused because it refused too many subscriptions in a row.")
    package static let webPushSubscriptions = Metric(
        "waku_push_web_push_subscriptions", ProtocolLabel.self, WebPushKeyLabel.self,
        help:
            "Web Push subscriptions of the whole database, the same at each node, by protocol and by the VAPID key that they were made for."
    )
}

extension Counter {
    package static let webPushAccepted = Counter("Web Push accepted", .webPushPosts, WebPushAnswerLabel.accepted)
    package static let webPushGone = Counter("Web Push subscription gone", .webPushPosts, WebPushAnswerLabel.gone)
    package static let webPushRefused = Counter("Web Push refused", .webPushPosts, WebPushAnswerLabel.refused)
    package static let webPushKeyRefused = Counter("Web Push refused the VAPID key", .webPushPosts, WebPushAnswerLabel.keyRefused)
    package static let webPushLater = Counter("Web Push to be tried later", .webPushPosts, WebPushAnswerLabel.later)
    package static let webPushUnanswered = Counter("Web Push without an answer", .webPushPosts, WebPushAnswerLabel.unanswered)
    package static let webPushOriginPaused = Counter("Web Push service paused", .webPushPaused)

    package static func webPush(_ label: WebPushAnswerLabel) -> Counter {
        switch label {
        case .accepted: .webPushAccepted
        case .gone: .webPushGone
        case .refused: .webPushRefused
        case .keyRefused: .webPushKeyRefused
        case .later: .webPushLater
        case .unanswered: .webPushUnanswered
        }
    }
}

package enum WebPushAnswerLabel: String, MetricLabel {
    package static let labelName = "outcome"
    case accepted, gone, refused, later, unanswered
    case keyRefused = "key_refused"
}

package enum WebPushOriginLabel: String, MetricLabel {
    package static let labelName = "state"
    /// With posts in flight.
    case posting
    /// With notifications that wait, and a circuit breaker that is not closed, or a pause.
    case unavailable
    case waiting
}

package enum WebPushPlaceLabel: String, MetricLabel {
    package static let labelName = "services"
    /// Accepted a message within 24 hours, and answered the last one within 10 s.
    case answering
    case others
}

package enum WebPushKeyLabel: String, MetricLabel {
    package static let labelName = "key"
    case current, former
    /// Of no key that the node has.
    case foreign
    /// The subscription does not tell.
    case unnamed
}
