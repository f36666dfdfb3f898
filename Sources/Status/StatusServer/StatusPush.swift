package import NodeAPI
import Delivery
package import NodeMetrics
import Core
import StatusProtocol
package import RateLimits
import StatusRules
package import Storage
import Waku
package import WakuCrypto

/// The Status push notification protocol, as deployed.
package struct StatusPush: NodeProtocol, ReloadsLimits {
    package struct Configuration: Sendable {
        /// Requests older than this are dropped. A notification that gorush has not accepted by then expires.
        package var requestAgeLimit = Duration.seconds(600)
        /// Whether a repeated, identical registration is answered with success instead of VERSION_MISMATCH.
        package var idempotentRegistrations = false
        /// Maximum number of registrants queued in memory to have their topic key derived ahead of the first query; nil disables this.
        package var deriveAheadLimit: Int? = 10_000
        /// Whether keys are derived ahead only on idle cores; false for tests, which wait for the keys.
        package var derivesAheadWhenIdle = true
        package var limits = Limits.none
        /// Further identities, each with its own registrations, while clients move from one to another.
        package var otherIdentities: [PrivateKey] = []
        /// Registrations that are not renewed within this time are removed; nil disables removal.
        package var registrationLifetime: Duration?

        package init() {}
    }

    package var registrants: (table: Table, column: Column)? { (StatusStorage.registration, StatusStorage.keyHash) }

    private let identity: PrivateKey
    private let configuration: Configuration
    private let table: TopicTable
    private let limits: StatusLimits

    package init(identity: PrivateKey, _ configuration: Configuration = Configuration()) {
        self.identity = identity
        self.configuration = configuration
        table = TopicTable(servers: ([identity] + configuration.otherIdentities).map(\.publicKey))
        limits = StatusLimits(configuration.limits, payers: PayerHasher(key: identity.derivedKey(purpose: "waku-push payers 1")))
    }

    static let protocolName = "status"
    package static let description = ProtocolDescription.status
    package var label: ProtocolLabel { .status }
    package var losses: [Counter] { [.registrationLimited] + LimitCounters.status.notifications }
    package var topics: any WakuTopics { table }

    package func makeService(_ node: NodeServices) throws -> any ProtocolService {
        try StatusService(identity, configuration: configuration, topics: table, limits: limits, node: node)
    }

    package func replaceLimits(_ limits: Limits) {
        self.limits.replace(limits)
    }
}
