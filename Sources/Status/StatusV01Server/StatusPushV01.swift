package import NodeAPI
package import Delivery
package import NodeMetrics
import StatusProtocol
package import RateLimits
package import Storage
import Waku
package import WakuCrypto

/// Version 0.1 of Status' push notifications, as a protocol of the node.
package struct StatusPushV01: NodeProtocol, ReloadsLimits {
    package struct Configuration: Sendable {
        /// The APNs topic of notifications, because a Register contains none. Empty: notifications have no topic.
        package var apnsTopic = ""
        /// Requests older than this are dropped. A notification that gorush has not accepted by then expires.
        package var requestAgeLimit = Duration.seconds(600)
        package var limits = Limits.none
        /// As of ``StatusServer/StatusPush/Configuration/otherIdentities``.
        package var otherIdentities: [PrivateKey] = []
        /// Records that are not renewed within this time are removed; nil disables removal.
        package var registrationLifetime: Duration?

        package init() {}
    }

    private struct ServerTopic: WakuTopics {
        let own: [ContentTopic]
    }

    private let identity: PrivateKey
    private let configuration: Configuration
    private let limits: V01Limits
    package let topics: any WakuTopics

    package init(identity: PrivateKey, _ configuration: Configuration = Configuration()) {
        self.identity = identity
        self.configuration = configuration
        limits = V01Limits(configuration.limits, payers: PayerHasher(key: identity.derivedKey(purpose: "waku-push payers 1")))
        let keys = [identity] + configuration.otherIdentities
        topics = ServerTopic(own: Set(keys.map { TopicTag(of: V01.serverTopic($0.publicKey)) }).map(ContentTopic.init))
    }

    static let protocolName = "status-v0.1"
    package static let description = ProtocolDescription.statusV01
    package var label: ProtocolLabel { .statusV01 }
    package var losses: [Counter] { [.v01OverLimit] + LimitCounters.statusV01.notifications }

    package func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource {
        V01DeliverySource(sealer, apnsTopic: configuration.apnsTopic)
    }

    package func makeService(_ node: NodeServices) throws -> any ProtocolService {
        try V01Service(identity, configuration: configuration, limits: limits, node: node)
    }

    package func replaceLimits(_ limits: Limits) {
        self.limits.replace(limits)
    }
}
