package import NodeAPI
package import Delivery
package import NodeMetrics
import SessionSwarms
import Core
package import SessionProtocol
package import RateLimits
package import Storage
import Waku

/// Session's push server, as a protocol of the node: it listens on no Waku topic but on an HTTP port, and on storage servers.
package struct SessionPush: NodeProtocol {
    package struct Configuration: Sendable {
        /// `--session-http`
        package var httpAddress: SocketAddress
        package var onionKey: OnionKey
        package var sodium: Sodium
        package var makeMonitor: MakeSubscriptionMonitor
        /// The topic of notifications for APNs. Empty: there are none, and such devices are refused.
        package var apnsTopic = ""
        /// A notification that gorush did not accept so long after its message came is given up.
        package var ageLimit = Duration.seconds(600)
        package var limits = Limits.none
        /// Memory for bodies of more than 160 KiB, all together, in bytes.
        package var largeBodyBudget = 64 << 20
        /// Memory for bodies whose requests wait for the store, in bytes.
        package var pendingByteLimit = 32 << 20
        /// How long a request waits for the store.
        package var storeTimeout = Duration.seconds(10)
        /// How long one of several nodes goes on to monitor what is another's from now on, which has to connect and ask first.
        package var handoverTime = Duration.seconds(15)

        package init(httpAddress: SocketAddress, onionKey: OnionKey, sodium: Sodium, makeMonitor: @escaping MakeSubscriptionMonitor) {
            self.httpAddress = httpAddress
            self.onionKey = onionKey
            self.sodium = sodium
            self.makeMonitor = makeMonitor
        }
    }

    private let configuration: Configuration
    private let gate: SessionGate
    let running = RunningSession()

    package init(_ configuration: Configuration) {
        self.configuration = configuration
        gate = SessionGate(configuration.limits)
    }

    static let protocolName = "session"
    package var name: String { Self.protocolName }
    package var number: ProtocolNumber { SessionStorage.protocolNumber }
    package var label: ProtocolLabel { .session }
    package var part: StorePart { SessionStorage.part }
    package var registrants: (table: Table, column: Column)? { (SessionStorage.subscription, SessionStorage.name) }
    package var metrics: [MetricGroup] { [.session] }
    package var losses: [Counter] {
        [.sessionDropped(.tooOld), .sessionDropped(.notStored), .sessionLimitNewSubscriptions, .sessionLimitNotifications]
    }

    package func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource {
        SessionDeliverySource(sealer, apnsTopic: configuration.apnsTopic)
    }

    package func makeService(_ node: NodeServices) throws -> any ProtocolService {
        let service = SessionService(configuration, gate, node)
        running.service = service
        return service
    }

    /// Other limits from now on.
    package func replaceLimits(_ limits: Limits) {
        gate.replace(limits)
    }

    /// Reads the list of storage servers again.
    package func reloadServers() {
        running.service?.reloadServers()
    }

    /// The HTTP port once it is listened on.
    package var httpPort: Int? { running.service?.httpPort }
}
