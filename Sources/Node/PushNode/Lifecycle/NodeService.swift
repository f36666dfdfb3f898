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
    let configuration: NodeConfiguration
    let relay: any Relay
    let store: any Store
    let folder: DataFolder
    let protocols: [any NodeProtocol]
    let services: [any ProtocolService]
    let delivery: DeliveryService
    package let cluster: any ClusterMembership
    let clock: ClockMonitor
    let publisher: Publisher
    let sorter: MessageSorter
    let maintenance: Maintenance
    let gauges: NodeGauges
    let watch: NodeWatch
    let statusSource: StatusSource
    let logger: Logger
    package let counters: Counters
    /// The time at which the next waiting notification expires.
    let firstExpiryReading: ThrottledReading<Timestamp?>
    let drain: Drain
    let refusedPeers: RefusedPeers
    let probe: SelfProbe
    let started = Date()
    let boundPort = Mutex<Int?>(nil)
    /// The HTTP port once the server listens; it differs from the configured one if that is 0.
    package var httpPort: Int? { boundPort.withLock(\.self) }

    /// The port of a protocol's own HTTP server once that listens; nil if the node does not speak the protocol, or it has no server.
    package func httpPort(of number: ProtocolNumber) -> Int? {
        zip(protocols, services).first { $0.0.number == number }?.1.httpPort
    }

    /// The number of notifications in the outbox that this node delivers.
    package var waitingCount: Int { delivery.waitingCount }

    /// Reads the files that options of protocols name again.
    package func reloadFiles() {
        for service in services { service.reloadFiles() }
    }

    /// Replaces the operator's settings for Web Push messages.
    package func replaceWebPushSettings(_ settings: NotificationSettings) {
        delivery.replaceWebPushSettings(settings)
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
        let base = try NodeFoundation(
            configuration, protocols: protocols, knownParts: knownParts, gorush: gorush, logger: logger, now: now, openStore: openStore,
            makeCluster: makeCluster)
        let path = try MessagePath(base, limits: limits, gorush: gorush, makeRelay: makeRelay)
        let observation = NodeObservation(base, path)
        self.configuration = configuration
        self.protocols = protocols
        self.logger = logger
        (folder, store, counters, cluster, clock, drain) = (base.folder, base.store, base.counters, base.cluster, base.clock, base.drain)
        refusedPeers = base.refusedPeers
        (relay, delivery, publisher) = (path.relay, path.delivery, path.publisher)
        (services, sorter, maintenance) = (path.services, path.sorter, path.maintenance(base))
        (gauges, watch, statusSource) = (observation.gauges, observation.watch, observation.statusSource)
        firstExpiryReading = ThrottledReading(pause: .zero, restFactor: 0) { [store] in try await store.fetch(DeliveryStorage.firstExpiry())
        }
        probe = SelfProbe(topic: base.ownTopics.first ?? ContentTopic(TopicTag(rawValue: 0)))
    }
}
