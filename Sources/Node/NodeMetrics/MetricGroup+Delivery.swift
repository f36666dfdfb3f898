extension MetricGroup {
    /// Notifications from the outbox to gorush.
    package static let delivery = MetricGroup(
        metrics: [
            .notificationsQueued, .notificationsEnded, .notificationsRetried, .notificationsUncounted, .posts, .postTime, .breaker,
            .breakerOpened, .slow, .slowed, .postsUnanswered, .postsUnansweredAge, .batchLimit, .certificateEnd, .outbox,
            .outboxAge,
        ],
        counters: [
            .notificationQueued, .notificationAccepted, .notificationRefused, .notificationExpired, .notificationUnroutable,
            .notificationUnreadable, .notificationUnregistered, .notificationRetried, .notificationDropped, .notificationEvicted,
            .notificationNotWebPushed, .notificationMessageEnded, .postFailed, .gorushOpened, .gorushSlowed, .notificationUncounted,
        ])
}

extension Metric {
    package static let notificationsQueued = Metric(
        "waku_push_notifications_queued_total", help: "Notifications that were put into the outbox.")
    package static let notificationsEnded = Metric(
        "waku_push_notifications_ended_total", NotificationEndLabel.self, help: "Notifications that left the outbox, and how.")
    package static let notificationsRetried = Metric(
        "waku_push_notifications_retried_total", help: "Posts of notifications that will be retried.")
    package static let notificationsUncounted = Metric(
        "waku_push_notifications_uncounted_total",
        help: "Notifications in accepted posts that gorush did not count, because a platform is disabled there.")
    package static let posts = Metric(
        "waku_push_gorush_posts_total", PostClassLabel.self, StatusLabel.self,
        help: "Posts to gorush, by outcome and HTTP status; none without a response.")
    package static let postTime = Metric(
        "waku_push_gorush_post_seconds", buckets: fineBuckets + [30, 60], help: "Duration of posts to gorush, whatever their outcome.")
    package static let breaker = Metric(
        "waku_push_gorush_breaker", EndpointLabel.self, BreakerLabel.self,
        help: "1 for the current state of the circuit breaker of a gorush.")
    package static let breakerOpened = Metric("waku_push_gorush_breaker_opened_total", help: "How often a circuit breaker opened.")
    package static let slow = Metric(
        "waku_push_gorush_slow", EndpointLabel.self,
        help: "1 while a post to a gorush is overdue, or was overdue without a response since.")
    package static let slowed = Metric("waku_push_gorush_slowed_total", help: "How often a gorush became slow.")
    package static let postsUnanswered = Metric(
        "waku_push_gorush_posts_unanswered", EndpointLabel.self, help: "Posts without a response yet.")
    package static let postsUnansweredAge = Metric(
        "waku_push_gorush_oldest_unanswered_seconds", EndpointLabel.self, help: "Age of the oldest unanswered post.")
    package static let batchLimit = Metric(
        "waku_push_gorush_batch_limit", EndpointLabel.self,
        help: "Maximum size of the next post to a gorush, adapted to its speed.")
    package static let certificateEnd = Metric(
        "waku_push_gorush_certificate_expiry_timestamp_seconds", EndpointLabel.self,
        help: "When the certificate of a gorush, or of the proxy before it, expires, as of its latest connection; absent without TLS.")
    package static let outbox = Metric("waku_push_outbox_notifications", help: "Notifications that wait for gorush or a Web Push service.")
    package static let outboxAge = Metric(
        "waku_push_outbox_oldest_age_seconds",
        help: "Time since the oldest notification that this node has to post to gorush was put into the outbox; 0 if there is none.")
}

extension Counter {
    package static let notificationQueued = Counter("notification queued", .notificationsQueued)
    package static let notificationAccepted = Counter("notification accepted", .notificationsEnded, NotificationEndLabel.accepted)
    package static let notificationRefused = Counter("notification refused by gorush", .notificationsEnded, NotificationEndLabel.refused)
    package static let notificationExpired = Counter("notification expired", .notificationsEnded, NotificationEndLabel.expired)
    package static let notificationMessageEnded = Counter(
        "notification expired by the end of its message or the age limit", .notificationsEnded, NotificationEndLabel.messageEnded)
    package static let notificationNotWebPushed = Counter(
        "notification refused by a Web Push service, expired or evicted", .notificationsEnded, NotificationEndLabel.webPush)
    package static let notificationUnroutable = Counter(
        "notification for an app without gorush", .notificationsEnded, NotificationEndLabel.unroutable)
    package static let notificationUnreadable = Counter(
        "notification unreadable in the outbox", .notificationsEnded, NotificationEndLabel.unreadable)
    package static let notificationUnregistered = Counter(
        "notification for a device that is no longer registered", .notificationsEnded, NotificationEndLabel.unregistered)
    package static let notificationRetried = Counter("notification to be tried again", .notificationsRetried)
    package static let notificationDropped = Counter(
        "notification dropped by the operator", .notificationsEnded, NotificationEndLabel.dropped)
    package static let notificationEvicted = Counter("notification dropped: outbox full", .notificationsEnded, NotificationEndLabel.evicted)
    /// Only in the log and on the status page: ``Metric/posts`` has class and status.
    package static let postFailed = Counter("post to gorush failed")
    package static let gorushOpened = Counter("gorush given up for a while", .breakerOpened)
    package static let gorushSlowed = Counter("gorush found slow", .slowed)
    package static let notificationUncounted = Counter("notification that gorush did not count", .notificationsUncounted)
}

package enum NotificationEndLabel: String, MetricLabel {
    package static let labelName = "outcome"
    case accepted, refused, expired, evicted, unreadable, unroutable, dropped
    /// The device unregistered, or its registration ended, while the notification waited.
    case unregistered
    /// Expired, of a protocol in which others choose the end of a message: a storage server of Session may report any.
    case messageEnded = "message_ended"
    /// Refused by a Web Push service, or expired or evicted while it waited for one: anybody may register a service that does not work.
    case webPush = "web_push"
}

/// A gorush, by its position in the configuration.
package enum EndpointLabel: String, MetricLabel {
    package static let labelName = "endpoint"
    case first = "1"
    case second = "2"
    case third = "3"
    case fourth = "4"
    case fifth = "5"
    case sixth = "6"
    case seventh = "7"
    case eighth = "8"
}

package enum PostClassLabel: String, MetricLabel {
    package static let labelName = "class"
    case accepted, refused, failed, misconfigured
}

/// An HTTP status that gorush or a proxy may answer with.
package struct StatusLabel: MetricLabel, RawRepresentable, Hashable {
    package static let labelName = "status"
    package static let allCases =
        ("none 200 201 202 204 301 302 307 308 400 401 403 404 405 407 408 410 413 422 425 429 451 "
        + "500 501 502 503 504 511 other").split(separator: " ").map { StatusLabel(known: String($0)) }
    private static let known = Set(allCases.map(\.rawValue))

    package let rawValue: String

    private init(known value: String) { rawValue = value }

    package init?(rawValue: String) {
        guard Self.known.contains(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    /// - Parameter status: nil when there was no response.
    package init(_ status: Int?) {
        self = StatusLabel(rawValue: status.map(String.init) ?? "none") ?? StatusLabel(known: "other")
    }
}

package enum BreakerLabel: String, MetricLabel {
    package static let labelName = "state"
    case closed, open
    case halfOpen = "half_open"
}
