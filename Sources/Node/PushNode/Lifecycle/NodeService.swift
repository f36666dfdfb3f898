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
import WakuCrypto

/// The messages that a node needs from its relay.
package struct RelayNeeds: Sendable {
    package let pubsubTopics: [PubsubTopic]
    /// The node's own topics, on which missed messages are caught up.
    package let ownTopics: [ContentTopic]
    /// Until when earlier runs missed nothing, for the pubsub topics that they listened on.
    package let seenUntil: [PubsubTopic: Timestamp]
    /// Whether the node needs messages on this topic.
    package let wants: @Sendable (TopicTag) -> Bool
    /// The current topics, for a relay that must subscribe to each: the node's own, and those of registrants up to the limit.
    package internal(set) var contentTopics: @Sendable (_ limit: Int) -> [ContentTopic] = { _ in [] }
    /// Receives the relay's events.
    package let report: @Sendable (RelayEvent) -> Void
}

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
    let drain = Drain()
    let probe: SelfProbe
    let started = Date()
    let boundPort = Mutex<Int?>(nil)
    /// The HTTP port once the server listens; it differs from the configured one if that is 0.
    package var httpPort: Int? { boundPort.withLock(\.self) }

    /// The tables of the node itself, without those of its protocols.
    package static let parts = [DeliveryStorage.part, NodeStorage.part]
    private static let metrics: [MetricGroup] = [.messages, .answers, .delivery, .feedback, .devices, .relay, .node, .cluster, .process]

    /// Every metric of a node with these protocols.
    package static func metrics(of protocols: [any NodeProtocol]) -> [MetricGroup] {
        metrics + protocols.flatMap(\.metrics)
    }

    /// Opens the data folder and creates the parts. Nothing runs yet.
    ///
    /// - Parameters:
    ///   - configuration: the node's configuration, without that of its protocols.
    ///   - protocols: at least one, with distinct numbers and names.
    ///   - knownParts: tables of protocols that the node does not speak now. They are created too, so that commands can read them.
    ///   - gorush: the endpoints, at least one.
    ///   - logger: the node's logger.
    ///   - now: the system's clock.
    ///   - openStore: opens the store, with these tables. The data folder is locked by then.
    ///   - makeCluster: creates the membership in a cluster of nodes with the same identity; by default the node works alone.
    ///   - makeRelay: creates the relay.
    /// - Throws: `StoreError`, and errors of the closures.
    package init(
        _ configuration: NodeConfiguration, protocols: [any NodeProtocol], knownParts: [StorePart] = [], gorush: [GorushEndpoint],
        logger: Logger, now: @escaping @Sendable () -> Timestamp = Timestamp.now, openStore: ([StorePart]) throws -> any Store,
        makeCluster: (ClusterNeeds) throws -> any ClusterMembership = { _ in SoleMembership() },
        makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        self.configuration = configuration
        self.protocols = protocols
        self.logger = logger
        let counters = Counters(Self.metrics(of: protocols), protocols: Set(protocols.map(\.label)))
        self.counters = counters
        folder = try DataFolder(locking: configuration.dataPath)
        let parts = protocols.map(\.part)
        let store = try openStore(Self.parts + parts + knownParts.filter { known in !parts.contains { $0.name == known.name } })
        self.store = store
        let alarms = Alarms(registry: counters.registry, now: now)
        let clock = ClockMonitor(alarms: alarms, logger: logger)
        self.clock = clock
        let registrants = protocols.compactMap { spoken in spoken.registrants.map { (spoken.number, $0) } }
        let cluster = try makeCluster(
            ClusterNeeds(
                gorushTimeout: gorush.map(\.timeout).max() ?? .seconds(60), waitingLimit: configuration.workLimit,
                registrants: Dictionary(uniqueKeysWithValues: registrants), counters: counters, logger: logger, now: now,
                clockCompared: { clock.compared(ahead: $0, of: "the database's") }))
        self.cluster = cluster
        firstExpiryReading = ThrottledReading(pause: .zero, restFactor: 0) { try await store.fetch(DeliveryStorage.firstExpiry()) }
        let topics = protocols.map(\.topics)
        let ownTopics = topics.flatMap(\.own)
        probe = SelfProbe(topic: ownTopics.first ?? ContentTopic(TopicTag(rawValue: 0)))

        let handled = HandledMessages { [cluster] in cluster.finished($0) }
        let seen = SeenMessages()
        for hash in try store.read(NodeStorage.handledMessages()) { _ = seen.insert(hash) }
        var deliveryConfiguration = DeliveryService.Configuration()
        deliveryConfiguration.awaitLimit = configuration.answerDeadline
        deliveryConfiguration.answerLimit = configuration.answerLimit
        deliveryConfiguration.outboxLimit = configuration.outboxLimit
        deliveryConfiguration.unknownHold = configuration.unknownHold
        delivery = DeliveryService(
            deliveryConfiguration, store: store, share: cluster.outboxShare,
            sources: DeliverySources(protocols.map { $0.makeDeliverySource(store.sealer) }),
            gorush: gorush, counters: counters, alarms: alarms, logger: logger, now: now)

        relay = try makeRelay(
            RelayNeeds(
                pubsubTopics: configuration.pubsubTopics, ownTopics: ownTopics,
                seenUntil: try store.read(RelayCursors.read(of: configuration.pubsubTopics)),
                wants: { tag in topics.contains { $0.contains(tag) } },
                contentTopics: { limit in
                    topics.reduce(into: []) { $0 += $1.contentTopics(limit: max(0, limit - $0.count)) }
                },
                report: { event in
                    counters.add(event)
                    if case .gap = event { alarms.raise(.gap, "missed messages are looked up in the relay's store") }
                }))
        publisher = Publisher(
            relay: relay, seen: seen, handled: handled, counters: counters, logger: logger, replyDelay: configuration.replyDelay)

        let nodeServices = NodeServices(
            store: store, delivery: delivery, replies: publisher, handled: handled, drain: drain, cluster: cluster,
            receivers: IntakeMaker(),
            counters: counters, logger: logger, errors: RepeatedErrors(logger), now: now, workLimit: configuration.workLimit,
            answerLimit: configuration.answerLimit)
        let services = try protocols.map { try $0.makeService(nodeServices) }
        self.services = services
        // In a cluster, a node loads the deliveries of its devices once it knows its partitions.
        if !cluster.isShared { try delivery.load() }
        sorter = MessageSorter(
            zip(protocols, services).map { ($0.label, $0.topics, $1.receiver) }, seen: seen, handled: handled, cluster: cluster,
            counters: counters, now: now)
        cluster.attach(
            Self.duties(zip(protocols, services).map { (spoken: $0, service: $1) }, sorter, logger), store: store, delivery: delivery)
        maintenance = Maintenance(
            interval: configuration.maintenanceInterval, handledInterval: configuration.handledInterval,
            retention: configuration.retention, relay: relay, store: store, delivery: delivery,
            handled: handled, protocols: services, cluster: cluster, counters: counters, alarms: alarms,
            topicCount: { topics.reduce(0) { $0 + $1.otherCount } },
            logger: logger, errors: nodeServices.errors, now: now)
        gauges = NodeGauges(
            counters: counters, relay: relay, store: store, delivery: delivery, publisher: publisher,
            services: zip(protocols, services).map { ($0.label, $1) }, cluster: cluster, alarms: alarms, clock: clock,
            maximumRequestAge: configuration.maximumRequestAge, now: now)
        watch = NodeWatch(
            alarms: alarms, relay: relay, clock: cluster.isShared ? nil : clock, store: store, counters: counters, delivery: delivery,
            silenceAlarm: configuration.silenceAlarm, logger: logger, now: now)
        statusSource = StatusSource(
            counters: counters, gauges: gauges, watch: watch, relay: configuration.hasRelay ? relay : nil, store: store, delivery: delivery,
            protocols: protocols,
            services: services, cluster: cluster, now: now, started: .now)
    }
}

extension Counters {
    fileprivate func add(_ event: RelayEvent) {
        switch event {
        case .foreign(let count):
            received(count)
            add(.foreign, count)
        case .gap: add(.gapFound)
        case .recovered(let count): add(.messageRecovered, count)
        }
    }
}
