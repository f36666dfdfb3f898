package import AdminProtocol
public import PushServer
public import StatusProtocol
public import Waku
public import WakuCrypto

/// What a node needs to know beside its relay and gorush.
public struct NodeConfiguration: Sendable {
    public var identity: PrivateKey
    /// Where the database is, and the lock that keeps a second daemon off it.
    public var dataPath: String
    public var pubsubTopics: [PubsubTopic] = [.statusDefault]
    /// Older requests are dropped; a notification that gorush did not take by then is given up.
    public var maximumRequestAge = Duration.seconds(600)
    /// A repeated registration of exactly what is stored succeeds, instead of VERSION_MISMATCH.
    public var idempotentRegistrations = false
    /// How long a request's answer waits for gorush. Clients wait 3 s.
    public var answerDeadline = Duration.seconds(2)
    /// A reply to a query or request leaves at the later of "its result is known" and this long after the message came in: light clients
    /// subscribe to the topic of the key that they made for it only some 300 ms after they asked. Registrations are answered at once.
    public var replyDelay = Duration.milliseconds(500)
    /// The longest ``replyDelay``: clients wait 3 s.
    public static let replyDelayLimit = Duration.seconds(2)
    /// Registrants whose topic key waits to be derived ahead of the first query, at most; nil: none is derived ahead.
    public var deriveAheadLimit: Int? = 10_000
    /// Keys are derived ahead only while nothing else wants a core; false where somebody waits for them, as tests do.
    public var derivesAheadWhenIdle = true
    /// For how long it is known what was delivered and answered.
    public var memory = Duration.seconds(24 * 3600)
    /// At most so many notifications wait for gorush; beyond, the oldest are dropped.
    public var outboxLimit = 100_000
    /// What is taken and not yet stored, in units of 4 KiB, a unit for each message at least. When half is taken queries are shed, when three
    /// quarters are taken requests; whoever brings registrations waits.
    public var workLimit = 16_384
    public var limits = Limits.none
    /// Registrations that were not renewed for so long end; nil: never.
    public var registrationLifetime: Duration?
    /// How often the store is looked after: how soon it shows that it can be written or read again.
    public var upkeepInterval = Duration.seconds(5)
    /// So long without a message on the pubsub topics, of anybody's, is an alarm; nil: it is none.
    public var silenceAlarm: Duration?
    /// Where `/`, `/metrics`, `/healthz`, `/readyz` and `/feedback` are served; nil: nowhere.
    public var httpAddress: SocketAddress?
    /// Names under which the HTTP address is asked, beside loopback's and its own: other names get 421.
    public var httpHosts: [String] = []
    /// What gorush shows when it posts to `/feedback`; nil: it is not served.
    public var feedbackSecret: FeedbackSecret?
    /// Whether there is an admin socket in the data folder.
    public var servesAdmin = false
    /// What can be changed of the log while the node runs; nil: nothing.
    public var logLevel: LogLevel?
    /// Of the program, as it is shown.
    public var version = ""
    /// What `doctor` is told of the configuration at present. It must not hold secrets.
    package var setup: @Sendable () -> AdminAPI.Setup = { AdminAPI.Setup() }
    /// Looks at each gorush server with the credentials that notifications are posted with.
    package var inspectGorush: @Sendable () async -> [AdminAPI.InspectedGorush] = { [] }

    public init(identity: PrivateKey, dataPath: String) {
        self.identity = identity
        self.dataPath = dataPath
    }
}

/// By which gorush's feedback hook is known. Prints as `<redacted>`.
public struct FeedbackSecret: SecretText {
    public let bytes: [UInt8]
    public init(bytes: [UInt8]) { self.bytes = bytes }
}

/// A host and a port, `127.0.0.1:9090` or `[::1]:9090`.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    public let host: String
    public let port: Int

    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// nil unless it is `host:port`.
    public init?(parsing text: String) {
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

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
