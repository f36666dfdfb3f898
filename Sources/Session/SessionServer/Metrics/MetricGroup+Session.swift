package import NodeAPI
package import NodeMetrics
import Core
import RateLimits
package import SessionProtocol

extension MetricGroup {
    package static let session = MetricGroup(
        metrics: [
            .sessionRequests, .sessionOnionRequests, .sessionMessages, .sessionDropped, .sessionNotifications, .sessionDuplicates,
            .sessionAsked, .sessionRefused, .sessionEndings, .sessionConnections, .sessionReplacements, .sessionSubscriptions,
            .sessionAccounts, .sessionServers,
            .sessionSwarms, .sessionMonitored, .sessionMapAge,
        ],
        counters: [
            .sessionMessage, .sessionNotification, .sessionDuplicate, .sessionMonitorEnded, .sessionReplaced,
        ] + LimitCounters.session.all + SessionDropReason.allCases.map(Counter.sessionDropped))
}

extension Metric {
    package static let sessionRequests = Metric(
        "waku_push_session_requests_total", SessionEndpointLabel.self, SessionAnswerLabel.self,
        help: "Subscriptions and unsubscriptions of Session, by answer. An array counts each of its entries.")
    package static let sessionOnionRequests = Metric(
        "waku_push_session_onion_requests_total", SessionOnionLabel.self, help: "Onion requests, by result.")
    package static let sessionMessages = Metric(
        "waku_push_session_messages_total", help: "Messages that storage servers reported, for accounts that they were asked to monitor.")
    package static let sessionDropped = Metric(
        "waku_push_session_dropped_total", SessionDropReason.self, help: "Messages of storage servers that were dropped, by reason.")
    package static let sessionNotifications = Metric(
        "waku_push_session_notifications_total", help: "Notifications that were put into the outbox.")
    package static let sessionDuplicates = Metric(
        "waku_push_session_duplicates_total", help: "Reports of a message whose notification had been made before, by device.")
    package static let sessionReplacements = Metric(
        "waku_push_session_replaced_total",
        help: "Subscriptions that ended because their account had the maximum of devices and another device has a better claim.")
    package static let sessionAsked = Metric(
        "waku_push_session_monitor_requests_total", help: "Subscriptions that storage servers were asked to monitor, renewals included.")
    package static let sessionRefused = Metric(
        "waku_push_session_monitor_refusals_total", MonitorRefusal.self,
        help: "Subscriptions that a storage server refused to monitor, by its error code.")
    package static let sessionEndings = Metric(
        "waku_push_session_monitor_endings_total",
        help: "Accounts that a storage server does not monitor any more, since they left its swarm.")
    package static let sessionConnections = Metric(
        "waku_push_session_connections_total", SessionConnectionLabel.self,
        help: "Connections to storage servers: made, and ended. Attempts that failed count as ended alone.")
    package static let sessionSubscriptions = Metric(
        "waku_push_session_subscriptions", PushService.self, help: "Subscriptions of the whole database, the same at each node, by service."
    )
    package static let sessionAccounts = Metric(
        "waku_push_session_accounts", help: "Accounts of the whole database, the same at each node, with a subscription.")
    package static let sessionServers = Metric(
        "waku_push_session_storage_servers", SessionReachLabel.self, help: "Storage servers: known, and connected to this node.")
    package static let sessionSwarms = Metric(
        "waku_push_session_swarms", SessionReachLabel.self, help: "Swarms: known, and with a server that is connected to this node.")
    package static let sessionMonitored = Metric(
        "waku_push_session_monitored_subscriptions",
        help: "Subscriptions that this node has to monitor and whose swarm has a server that is connected to it.")
    package static let sessionMapAge = Metric(
        "waku_push_session_map_age_seconds", help: "Time since the list of storage servers was read.")
}

extension Counter {
    package static let sessionMessage = Counter("session: message reported", .sessionMessages)
    package static let sessionNotification = Counter("session: notification queued", .sessionNotifications)
    package static let sessionMonitorEnded = Counter("session: monitoring ended by a storage server", .sessionEndings)
    package static let sessionDuplicate = Counter("session: message reported again", .sessionDuplicates)
    package static let sessionReplaced = Counter("session: subscription replaced by another device", .sessionReplacements)

    private static let dropped = Dictionary(
        uniqueKeysWithValues: SessionDropReason.allCases.map { ($0, Counter("session dropped: \($0.inWords)", .sessionDropped, $0)) })

    package static func sessionDropped(_ reason: SessionDropReason) -> Counter {
        guard let counter = dropped[reason] else { preconditionFailure("a counter was made for each case") }
        return counter
    }
}

extension LimitCounters {
    package static let session = LimitCounters(
        "session limit", .session,
        [.registrationCount, .webPushDevicesByOrigin, .storeMiB, .newRegistrations, .notificationsByTarget, .notifications],
        words: [.registrationCount: "subscriptions", .newRegistrations: "new subscriptions"])
}
