package import Delivery
package import NodeAPI
package import NodeMetrics
import Core
package import Waku
package import WakuCrypto

/// The configuration of a node, except for its relay and gorush.
package struct NodeConfiguration: Sendable {
    package var identity: PrivateKey
    /// The data folder, with the lock that excludes a second daemon, the admin socket, and the database unless that is elsewhere.
    package var dataPath: String
    package var hasDatabaseInDataFolder = true
    package var pubsubTopics: [PubsubTopic] = [.statusDefault]
    /// Requests older than this are dropped. A notification that gorush has not accepted by then expires.
    package var maximumRequestAge = Duration.seconds(600) { didSet { retention = max(retention, maximumRequestAge) } }
    /// How long a request's answer waits for gorush. Clients wait 3 s.
    package var awaitLimit = Duration.seconds(2)
    /// The minimum time between a message and its reply: light clients subscribe to the reply's topic only some 300 ms after they asked, and status-go
    /// ignores an answer to a registration that comes before it has noted the registration as sent.
    package var replyDelay = Duration.milliseconds(500)
    /// The maximum of ``replyDelay``: clients wait 3 s.
    package static let replyDelayLimit = Duration.seconds(2)
    /// How long deliveries and answers are remembered: at least for ``maximumRequestAge``, since a request of that age may come again.
    package var retention = Duration.seconds(24 * 3600)
    /// Maximum number of notifications in the outbox. Above it, the devices with most waiting notifications lose their oldest.
    package var outboxLimit = 100_000
    /// How long a notification whose post has an unknown outcome, after a kill or an unplanned hand-over, is held from its first mark. A
    /// notification that the device shows once is not held.
    package var unknownHold = Duration.seconds(5)
    /// The maximum of ``unknownHold``.
    package static let unknownHoldLimit = Duration.seconds(60)
    /// Limit of messages that are accepted and not yet stored, in units of 4 KiB, at least one for each message. Queries are shed when half of it
    /// is used, requests when three quarters are used; for registrations the relay waits.
    package var workLimit = 16_384
    /// The interval of maintenance, within which the node notices that the store can be written or read again.
    package var maintenanceInterval = Duration.seconds(5)
    /// The time from the first handled message to the commit that stores its hash. Messages that are handled meanwhile share the commit. A node that
    /// is killed before the commit handles them again. With several nodes the time is multiplied by their number.
    package var handledInterval = Duration.milliseconds(50)
    /// The maximum duration of a stop. Below the 10 s after which the process is to have exited.
    package var stopLimit = Duration.seconds(9)
    /// Whether the node is attached to a Waku network. Protocols that serve HTTP need none.
    package var hasRelay = true
    /// Time without any message on the pubsub topics after which an alarm is raised; nil disables it.
    package var silenceAlarm: Duration?
    /// Address of the paths of `HealthServer`; nil disables HTTP.
    package var httpAddress: SocketAddress?
    /// Host names allowed besides loopback names and the HTTP address's own. Requests with other names get 421.
    package var httpHosts: [String] = []
    /// The secret that posts to `/feedback` must carry; nil disables it.
    package var feedbackSecret: FeedbackSecret?
    /// nil: the node does not post to Web Push services.
    package var webPush: WebPushEndpoint?
    /// Traces messages; nil traces none.
    package var tracer: MessageTracer?
    /// Whether there is an admin socket in the data folder.
    package var servesAdmin = false
    /// The log level that `admin log-level` changes; nil if it can't be changed.
    package var logLevel: LogLevel?
    /// The warnings and errors that the node's logger counts, for the status page.
    package var recentErrors = RecentErrors()
    /// Base URL of the documentation, for links on the status page; nil: the page names the article without a link.
    package var documentation: String?
    /// The version of the program, for display.
    package var version = ""
    /// The current configuration for `doctor`. It must not contain secrets.
    package var setup: @Sendable () -> AdminAPI.Setup = { AdminAPI.Setup() }
    /// Posts a test notification as the node would.
    package var testPush: @Sendable (AdminAPI.TestPush) async -> AdminAPI.TestedPush = { _ in AdminAPI.TestedPush() }
    /// Inspects each gorush server with the credentials for posts.
    package var inspectGorush: @Sendable () async -> [AdminAPI.InspectedGorush] = { [] }

    package init(identity: PrivateKey, dataPath: String) {
        self.identity = identity
        self.dataPath = dataPath
    }
}

/// The shared secret of gorush's feedback hook. Prints as `<redacted>`.
package struct FeedbackSecret: SecretText {
    package let bytes: [UInt8]
    package init(bytes: [UInt8]) { self.bytes = bytes }
}
