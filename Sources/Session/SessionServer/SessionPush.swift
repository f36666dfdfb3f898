package import NodeAPI
package import Delivery
package import NodeMetrics
package import Core
package import SessionProtocol
package import RateLimits
package import Storage

/// Answers a body with JSON, and whether the status would be 503.
package typealias AnswerSession = @Sendable (_ body: [UInt8], SessionEndpoint) async throws -> (json: String, isUnavailable: Bool)

/// Passes the bodies of clients to `answer` until it is cancelled. Simulations have no sockets, and so no HTTP.
package typealias ServeSessionClients = @Sendable (_ answer: @escaping AnswerSession) async throws -> Void

/// Session's push server, as a protocol of the node. It uses no Waku topics: it serves HTTP and connects to storage servers.
package struct SessionPush: NodeProtocol, ReloadsLimits {
    package struct Configuration: Sendable {
        /// `--session-http`
        package var httpAddress: SocketAddress
        package var onionKey: OnionKey
        package var sodium: Sodium
        package var makeMonitor: MakeSubscriptionMonitor
        /// The APNs topic of notifications. Empty: APNs devices are refused.
        package var apnsTopic = ""
        /// A notification expires if gorush has not accepted it within this time after its message arrived.
        package var ageLimit = Duration.seconds(600)
        package var limits = Limits.none
        /// Reverse proxies whose `X-Forwarded-For` names the client.
        package var proxies: [AddressRange] = []
        /// Memory for all bodies of more than 16 KiB together, in bytes: see ``BodyRoom``. Half of it has room for the largest onion request.
        package var largeBodyByteCount = 24 << 20
        /// Memory for all bodies waiting for the store, in bytes.
        package var pendingByteLimit = 32 << 20
        /// Maximum time that a request waits for the store.
        package var storeTimeout = Duration.seconds(10)
        /// How long a node continues to monitor accounts that have moved to another node, which has to connect to storage servers first.
        package var handoverTime = Duration.seconds(15)
        /// Serves clients in place of HTTP; nil: HTTP is served at ``httpAddress``.
        package var serve: ServeSessionClients?

        package init(httpAddress: SocketAddress, onionKey: OnionKey, sodium: Sodium, makeMonitor: @escaping MakeSubscriptionMonitor) {
            self.httpAddress = httpAddress
            self.onionKey = onionKey
            self.sodium = sodium
            self.makeMonitor = makeMonitor
        }
    }

    private let configuration: Configuration
    private let limits: SessionLimits

    package init(_ configuration: Configuration) {
        self.configuration = configuration
        limits = SessionLimits(configuration.limits)
    }

    static let protocolName = "session"
    package static let description = ProtocolDescription.session
    package var label: ProtocolLabel { .session }
    package var registrants: (table: Table, column: Column)? { (SessionStorage.subscription, SessionStorage.name) }
    package var losses: [Counter] {
        [.sessionDropped(.tooOld), .sessionDropped(.notStored)]
            + LimitCounters.session.counters(of: .newRegistrations) + LimitCounters.session.notifications
    }

    package func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource {
        SessionDeliverySource(sealer, apnsTopic: configuration.apnsTopic)
    }

    package func makeService(_ node: NodeServices) throws -> any ProtocolService {
        SessionService(configuration, limits: limits, node: node)
    }

    package func replaceLimits(_ limits: Limits) {
        self.limits.replace(limits)
    }
}
