package import AdminProtocol
import PushTypes
package import Waku
package import WakuCrypto

/// What a node needs to know beside its relay and gorush.
package struct NodeConfiguration: Sendable {
    package var identity: PrivateKey
    /// Where the database is, and the lock that keeps a second daemon off it.
    package var dataPath: String
    package var pubsubTopics: [PubsubTopic] = [.statusDefault]
    /// Older requests are dropped; a notification that gorush did not take by then is given up.
    package var maximumRequestAge = Duration.seconds(600)
    /// How long a request's answer waits for gorush. Clients wait 3 s.
    package var answerDeadline = Duration.seconds(2)
    /// A reply to a query or request leaves at the later of "its result is known" and this long after the message came in: light clients
    /// subscribe to the topic of the key that they made for it only some 300 ms after they asked. Registrations are answered at once.
    package var replyDelay = Duration.milliseconds(500)
    /// The longest ``replyDelay``: clients wait 3 s.
    package static let replyDelayLimit = Duration.seconds(2)
    /// For how long it is known what was delivered and answered.
    package var memory = Duration.seconds(24 * 3600)
    /// At most so many notifications wait for gorush; beyond, the oldest are dropped.
    package var outboxLimit = 100_000
    /// What is taken and not yet stored, in units of 4 KiB, a unit for each message at least. When half is taken queries are shed, when three
    /// quarters are taken requests; whoever brings registrations waits.
    package var workLimit = 16_384
    /// How often the store is looked after: how soon it shows that it can be written or read again.
    package var upkeepInterval = Duration.seconds(5)
    /// Between a handled message and when that is written down: what is handled meanwhile shares the commit. A node that is killed looks at these
    /// again.
    package var handledInterval = Duration.milliseconds(250)
    /// So long without a message on the pubsub topics, of anybody's, is an alarm; nil: it is none.
    package var silenceAlarm: Duration?
    /// Where `/`, `/metrics`, `/healthz`, `/readyz` and `/feedback` are served; nil: nowhere.
    package var httpAddress: SocketAddress?
    /// Names under which the HTTP address is asked, beside loopback's and its own: other names get 421.
    package var httpHosts: [String] = []
    /// What gorush shows when it posts to `/feedback`; nil: it is not served.
    package var feedbackSecret: FeedbackSecret?
    /// Whether there is an admin socket in the data folder.
    package var servesAdmin = false
    /// What can be changed of the log while the node runs; nil: nothing.
    package var logLevel: LogLevel?
    /// Of the program, as it is shown.
    package var version = ""
    /// What `doctor` is told of the configuration at present. It must not hold secrets.
    package var setup: @Sendable () -> AdminAPI.Setup = { AdminAPI.Setup() }
    /// Looks at each gorush server with the credentials that notifications are posted with.
    package var inspectGorush: @Sendable () async -> [AdminAPI.InspectedGorush] = { [] }

    package init(identity: PrivateKey, dataPath: String) {
        self.identity = identity
        self.dataPath = dataPath
    }
}

/// By which gorush's feedback hook is known. Prints as `<redacted>`.
package struct FeedbackSecret: SecretText {
    package let bytes: [UInt8]
    package init(bytes: [UInt8]) { self.bytes = bytes }
}

/// A host and a port, `127.0.0.1:9090` or `[::1]:9090`.
package struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// nil unless it is `host:port`.
    package init?(parsing text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty else { return nil }
        self.init(host: String(host), port: Int(port))
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
