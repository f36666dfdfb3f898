package import Delivery
import Foundation
package import Logging
package import NodeAPI
package import NodeMetrics
package import Core
import ServiceLifecycle
package import Storage
import Synchronization
package import Waku

/// A push notification node. Runs as a service until graceful shutdown.
package final class NodeService: Service {
    let base: NodeFoundation
    let path: MessagePath
    let observation: NodeObservation
    let maintenance: Maintenance
    /// The time at which the next waiting notification expires.
    let firstExpiryReading: ThrottledReading<Timestamp?>
    let probe: SelfProbe
    private let startInstant = ContinuousClock.now
    /// By the present clock, which may have been set since.
    var started: Date { Date(timeIntervalSinceNow: ContinuousClock.now.duration(to: startInstant) / .seconds(1)) }
    let boundPort = Mutex<Int?>(nil)
    let feedbackSecret: Mutex<FeedbackSecret?>
    var configuration: NodeConfiguration { base.configuration }
    var store: any Store { base.store }
    package var counters: Counters { base.counters }
    package var cluster: any ClusterMembership { base.cluster }
    var topicCount: Int { base.topicCount }
    var delivery: DeliveryService { path.delivery }
    var services: [any ProtocolService] { path.services }

    /// The HTTP port once the server listens; it differs from the configured one if that is 0.
    package var httpPort: Int? { boundPort.withLock(\.self) }

    /// The port of a protocol's own HTTP server once that listens; nil if the node does not speak the protocol, or it has no server.
    package func httpPort(of number: ProtocolNumber) -> Int? {
        zip(base.protocols, services).first { $0.0.number == number }?.1.httpPort
    }

    /// The number of notifications in the outbox that this node delivers.
    package var waitingCount: Int { delivery.waitingCount }

    /// Reads the files that options of protocols name again.
    package func reloadFiles() {
        for service in services { service.reloadFiles() }
    }

    /// Raises the alarm about a failed reload, or clears it.
    ///
    /// - Parameter failure: the reason, as logged; nil when the configuration was reloaded.
    package func reloadEnded(_ failure: String?) {
        base.alarms.set(.reloadFailed, failure)
    }

    /// Replaces the operator's settings for Web Push messages.
    package func replaceWebPushSettings(_ settings: NotificationSettings) {
        delivery.replaceWebPushSettings(settings)
    }

    /// Replaces the secret that posts to `/feedback` must carry. Without one at the start, the endpoint stays disabled.
    package func replaceFeedbackSecret(_ secret: FeedbackSecret) {
        feedbackSecret.withLock { $0 = secret }
    }

    package func replaceGorushTimeouts(_ timeouts: [Duration]) {
        delivery.replaceTimeouts(timeouts)
    }

    /// The tables of the node itself, without those of its protocols.
    package static let parts = [DeliveryStorage.part, NodeStorage.part]
    private static let metrics: [MetricGroup] = [
        .messages, .answers, .delivery, .webPush, .feedback, .devices, .relay, .node, .cluster, .process,
    ]

    /// Every metric of a node with these protocols.
    package static func metrics(of protocols: [any NodeProtocol]) -> [MetricGroup] {
        metrics + protocols.flatMap(\.metrics)
    }

    /// Opens the data folder and creates the parts. Nothing runs yet.
    ///
    /// - Parameters:
    ///   - configuration: the node's configuration, without that of its protocols.
    ///   - protocols: at least one, with distinct numbers and names.
    ///   - limits: those of protocols that leave them to the node: see `RegistrationLimits`.
    ///   - knownParts: tables of protocols that the node does not speak now. They are created too, so that commands can read them.
    ///   - gorush: the endpoints, at least one.
    ///   - openStore: opens the store, with these tables. The data folder is locked by then.
    ///   - makeCluster: creates the membership in a cluster of nodes with the same identity; by default the node works alone.
    /// - Throws: `StoreError`, and errors of the closures.
    package init(
        _ configuration: NodeConfiguration, protocols: [any NodeProtocol], limits: [ProtocolNumber: RegistrationLimits] = [:],
        knownParts: [StorePart] = [], gorush: [GorushEndpoint], logger: Logger, now: @escaping @Sendable () -> Timestamp = Timestamp.now,
        openStore: ([StorePart]) throws -> any Store,
        makeCluster: (ClusterNeeds) throws -> any ClusterMembership = { _ in SoleMembership() },
        makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        base = try NodeFoundation(
            configuration, protocols: protocols, knownParts: knownParts, gorush: gorush, logger: logger, now: now, openStore: openStore,
            makeCluster: makeCluster)
        feedbackSecret = Mutex(configuration.feedbackSecret)
        path = try MessagePath(base, limits: limits, gorush: gorush, makeRelay: makeRelay)
        observation = NodeObservation(base, path)
        maintenance = Maintenance(base: base, path: path)
        firstExpiryReading = ThrottledReading(pause: .zero, restFactor: 0) { [store = base.store] in
            try await store.fetch(DeliveryStorage.firstExpiry())
        }
        probe = SelfProbe(topic: base.ownTopics.first ?? ContentTopic(TopicTag(rawValue: 0)))
    }
}
