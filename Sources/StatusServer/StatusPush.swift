package import Delivery
import Logging
package import NodeMetrics
import Primitives
package import PushNode
import StatusProtocol
package import StatusRules
package import Storage
import Waku
package import WakuCrypto

/// Status' push notifications as deployed, as a protocol of the node.
package struct StatusPush: NodeProtocol {
    package struct Configuration: Sendable {
        /// Older requests are dropped; a notification that gorush did not take by then is given up.
        package var requestAgeLimit = Duration.seconds(600)
        /// A repeated registration of exactly what is stored succeeds, instead of VERSION_MISMATCH.
        package var idempotentRegistrations = false
        /// Registrants whose topic key waits to be derived ahead of the first query, at most; nil: none is derived ahead.
        package var deriveAheadLimit: Int? = 10_000
        /// Keys are derived ahead only while nothing else wants a core; false where somebody waits for them, as tests do.
        package var derivesAheadWhenIdle = true
        package var limits = Limits.none
        /// Registrations that were not renewed for so long end; nil: never.
        package var registrationLifetime: Duration?

        package init() {}
    }

    private let identity: PrivateKey
    private let configuration: Configuration
    private let table: TopicTable
    private let gate: Gate

    package init(identity: PrivateKey, _ configuration: Configuration = Configuration()) {
        self.identity = identity
        self.configuration = configuration
        table = TopicTable(server: identity.publicKey)
        gate = Gate(configuration.limits)
    }

    package var name: String { "status" }
    package var number: ProtocolNumber { StatusStorage.protocolNumber }
    package var label: ProtocolLabel { .status }
    package var part: StorePart { StatusStorage.part }
    package var metrics: [MetricGroup] { [.status, .queryTopics] }
    package var losses: [Counter] { [.registrationLimited, .limitNotificationsByTarget] }
    package var topics: any WakuTopics { table }

    package func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource {
        StatusDeliverySource(sealer)
    }

    package func makeService(_ node: NodeServices) throws -> any ProtocolService {
        try StatusService(identity, configuration, table, gate, node)
    }

    /// Other limits from now on, and other keys that may register.
    package func replaceLimits(_ limits: Limits) {
        gate.replace(limits)
    }
}
