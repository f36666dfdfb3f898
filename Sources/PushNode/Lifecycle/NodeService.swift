import AdminProtocol
import ClusterPostgreSQL
package import Delivery
import Foundation
import HealthChecks
import Hummingbird
package import Logging
package import NodeMetrics
import Primitives
import ServiceLifecycle
package import Storage
import StoreSQLite
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
    /// Limits during shutdown: for answering requests, for posts to gorush, for publishing answers. Together below 10 s.
    private static let answerLimit = Duration.milliseconds(2500)
    private static let postLimit = Duration.milliseconds(5200)
    private static let publishLimit = Duration.milliseconds(1500)
    /// After the beginning of the shutdown: until when other nodes' taking this one's devices over is waited for.
    private static let handoverEnd = Duration.seconds(8)

    let configuration: NodeConfiguration
    let relay: any Relay
    let store: any Store
    private let folder: DataFolder
    let protocols: [any NodeProtocol]
    let services: [any ProtocolService]
    let delivery: DeliveryService
    package let cluster: ClusterNode?
    private let publisher: Publisher
    private let sorter: MessageSorter
    private let maintenance: Maintenance
    private let gauges: NodeGauges
    let watch: NodeWatch
    private let statusSource: StatusSource
    let logger: Logger
    package let counters: Counters
    /// The time at which the next waiting notification expires.
    let firstExpiryReading: ThrottledReading<Timestamp?>
    let drain = Drain()
    let probe: SelfProbe
    let started = Date()
    private let boundPort = Mutex<Int?>(nil)
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
    ///   - makeRelay: creates the relay.
    /// - Throws: `StoreError`, and errors of `makeRelay`.
    package init(
        _ configuration: NodeConfiguration, protocols: [any NodeProtocol], knownParts: [StorePart] = [], gorush: [GorushEndpoint],
        logger: Logger, now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        self.configuration = configuration
        self.protocols = protocols
        self.logger = logger
        let counters = Counters(Self.metrics(of: protocols), protocols: Set(protocols.map(\.label)))
        self.counters = counters
        folder = try DataFolder(locking: configuration.dataPath)
        let parts = protocols.map(\.part)
        let store = try configuration.store.open(
            in: configuration.dataPath, storageKey: Sealer.storageKey(of: configuration.identity),
            parts: Self.parts + parts + knownParts.filter { known in !parts.contains { $0.name == known.name } },
            isShared: configuration.cluster != nil)
        self.store = store
        let cluster = try Self.cluster(configuration, protocols, gorush, counters, logger)
        self.cluster = cluster
        firstExpiryReading = ThrottledReading(pause: .zero, restFactor: 0) { try await store.fetch(DeliveryStorage.firstExpiry()) }
        let topics = protocols.map(\.topics)
        let ownTopics = topics.flatMap(\.own)
        probe = SelfProbe(topic: ownTopics.first ?? ContentTopic(TopicTag(rawValue: 0)))
        let alarms = Alarms(registry: counters.registry, now: now)

        let handled = HandledMessages { [cluster] in cluster?.finished($0) }
        let seen = SeenMessages()
        for hash in try store.read(NodeStorage.handledMessages()) { _ = seen.insert(hash) }
        var deliveryConfiguration = DeliveryService.Configuration()
        deliveryConfiguration.awaitLimit = configuration.answerDeadline
        deliveryConfiguration.outboxLimit = configuration.outboxLimit
        delivery = DeliveryService(
            deliveryConfiguration, store: store, share: cluster,
            sources: DeliverySources(protocols.map { $0.makeDeliverySource(store.sealer) }),
            gorush: gorush, counters: counters, alarms: alarms, logger: logger, now: now)

        // Services need the publisher, which needs the relay, which needs the services' topics.
        let replies = DeferredReplyPublisher()
        let nodeServices = NodeServices(
            store: store, delivery: delivery, replies: replies, handled: handled, drain: drain, cluster: cluster, counters: counters,
            logger: logger, now: now, workLimit: configuration.workLimit)
        let services = try protocols.map { try $0.makeService(nodeServices) }
        self.services = services
        // One of several takes up what its devices have once it knows which these are.
        if cluster == nil { try delivery.load() }
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
        replies.set(publisher)
        sorter = MessageSorter(
            zip(protocols, services).map { ($0.label, $0.topics, $1.receiver) }, seen: seen, handled: handled, cluster: cluster,
            counters: counters, now: now)
        cluster?.attach(
            ClusterNode.Hooks(
                deliver: { [sorter] in await sorter.deliver($0) },
                registered: { notice in
                    for (index, spoken) in protocols.enumerated() where spoken.number == notice.protocol {
                        services[index].registeredElsewhere(notice.name)
                    }
                },
                taken: { number, name, cost in
                    for (index, spoken) in protocols.enumerated() where spoken.number == number {
                        services[index].takenElsewhere(name, cost: cost)
                    }
                },
                shared: { count in
                    for service in services { service.shared(by: count) }
                },
                sharedAccounts: { share in
                    for service in services { service.shared(as: share) }
                },
                reload: {
                    do throws(StoreError) {
                        for service in services { try await service.reload() }
                        return true
                    } catch {
                        logger.error("changes of other nodes not read", metadata: ["reason": "\(error.message)"])
                        return false
                    }
                }), store: store, delivery: delivery)
        maintenance = Maintenance(
            interval: configuration.maintenanceInterval, handledInterval: configuration.handledInterval,
            retention: configuration.retention, relay: relay, store: store, delivery: delivery,
            handled: handled, protocols: services, cluster: cluster, counters: counters,
            topicCount: { topics.reduce(0) { $0 + $1.otherCount } },
            logger: logger, now: now)
        gauges = NodeGauges(
            counters: counters, relay: relay, store: store, delivery: delivery, publisher: publisher,
            services: zip(protocols, services).map { ($0.label, $1) }, cluster: cluster, alarms: alarms,
            maximumRequestAge: configuration.maximumRequestAge, now: now)
        watch = NodeWatch(
            alarms: alarms, relay: relay, store: store, counters: counters, delivery: delivery,
            silenceAlarm: configuration.silenceAlarm, logger: logger, now: now)
        statusSource = StatusSource(
            counters: counters, gauges: gauges, watch: watch, relay: relay, store: store, delivery: delivery, protocols: protocols,
            services: services, cluster: cluster, now: now, started: .now)
    }

    /// - Throws: `StoreError`, and ``NodeError`` when the store can't be shared.
    private static func cluster(
        _ configuration: NodeConfiguration, _ protocols: [any NodeProtocol], _ gorush: [GorushEndpoint], _ counters: Counters,
        _ logger: Logger
    ) throws -> ClusterNode? {
        guard let settings = configuration.cluster else {
            // Nothing is left of the time when it was one of several.
            if case .postgreSQL(let address) = configuration.store { try ClusterDatabase.withdrawNotices(at: address) }
            return nil
        }
        guard case .postgreSQL(let address) = configuration.store else {
            throw NodeError(message: "several nodes need a PostgreSQL database: give --store, or leave out --cluster")
        }
        let registrants = protocols.compactMap { spoken in spoken.registrants.map { (spoken.number, $0) } }
        return try ClusterNode(
            settings, address, gorushTimeout: gorush.map(\.timeout).max() ?? .seconds(60), waitingLimit: configuration.workLimit,
            registrants: Dictionary(uniqueKeysWithValues: registrants), counters: counters, logger: logger)
    }

    /// Number of topics besides the node's own.
    var topicCount: Int { protocols.reduce(0) { $0 + $1.topics.otherCount } }

    /// Runs until graceful shutdown; then stops accepting messages, finishes its work in progress, and returns.
    ///
    /// - Throws: ``NodeError`` when an address can't be listened on, the HTTP address or a protocol's.
    package func run() async throws {
        logger.info(
            "node started",
            metadata: [
                "key": "\(configuration.identity.publicKey.hex)", "topics": "\(topicCount)",
                "waiting": "\(delivery.waitingCount)", "http": "\(configuration.httpAddress?.description ?? "off")",
                "silence-alarm": "\(configuration.silenceAlarm?.inWords ?? "off")",
            ])
        try await withThrowingTaskGroup(of: Part.self) { group in
            group.addTask {
                try await self.serveHealth()
                return .health
            }
            group.addTask {
                await self.serveAdmin()
                return .admin
            }
            group.addTask {
                await self.watch.run()
                return .watch
            }
            group.addTask {
                await self.maintenance.run()
                return .maintenance
            }
            group.addTask {
                await self.maintenance.saveHandledMessages()
                return .maintenance
            }
            for service in services {
                group.addTask {
                    try await service.run()
                    return .service
                }
            }
            if let cluster {
                group.addTask {
                    await cluster.run()
                    return .cluster
                }
            }
            group.addTask {
                await self.work()
                return .work
            }
            for try await part in group where part == .work { break }
            group.cancelAll()
        }
        await cluster?.leave()
        await relay.close()
        await maintenance.saveCursors()
        do {
            try store.close()
        } catch {
            // SQLite's write-ahead log remains, and is applied at the next start.
            logger.warning("store not closed")
        }
        folder.unlock()
        logger.info("node stopped")
    }

    private enum Part {
        case work, publishing, posting, health, admin, maintenance, watch, service, cluster
    }

    // MARK: Work

    private func work() async {
        await withTaskGroup(of: Part.self) { group in
            group.addTask {
                await self.publisher.run()
                return .publishing
            }
            group.addTask {
                await self.delivery.run()
                return .posting
            }
            group.addTask {
                await self.relayUntilShutdown()
                let stopping = ContinuousClock.now
                self.logger.info("stopping")
                self.cluster?.beginLeaving()
                await self.wait(Self.answerLimit) { self.isIdle && self.delivery.awaitingCount == 0 }
                self.delivery.stopPosting()
                await self.wait(Self.postLimit) { !self.delivery.isPosting }
                if self.delivery.isPosting {
                    self.logger.warning(
                        "posts to gorush are unanswered at the stop: their notifications are posted again after the start",
                        metadata: ["count": "\(self.delivery.unansweredCount)"])
                }
                if let cluster = self.cluster {
                    await self.wait(max(.zero, Self.handoverEnd - (.now - stopping))) { cluster.hasLeft }
                }
                self.store.stopWaiting()
                self.publisher.finish()
                // Held replies are published when they are due. The group returns earlier if the publisher ends.
                let end = max(.now, stopping + self.configuration.replyDelay) + Self.publishLimit
                try? await Task.sleep(until: end, clock: .continuous)
                return .work
            }
            for await part in group where part != .posting { break }
            group.cancelAll()
        }
    }

    private func relayUntilShutdown() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.relay.run { await self.sorter.take(self.probe.take($0)) } }
            group.addTask { try? await gracefulShutdown() }
            await group.next()
            group.cancelAll()
        }
    }

    /// Whether no message is on its way to the store.
    var isIdle: Bool { services.allSatisfy { $0.receiver.isIdle } }

    private func wait(_ limit: Duration, until condition: () -> Bool) async {
        let deadline = ContinuousClock.now + limit
        while !condition(), ContinuousClock.now < deadline, (try? await Task.sleep(for: .milliseconds(10))) != nil {}
    }

    // MARK: Health

    private func serveHealth() async throws {
        guard let address = configuration.httpAddress else { return }
        let endpoint = configuration.feedbackSecret.map { FeedbackEndpoint(secret: $0, feedback: delivery.feedback, counters: counters) }
        let server = HealthServer(
            address: address, hostNames: configuration.httpHosts, feedback: endpoint, obstacles: { self.obstacles },
            metrics: { await self.gauges.exposition(as: $0, isReady: self.obstacles.isEmpty) },
            status: { await self.statusSource.status(obstacles: self.obstacles) },
            bound: { port in self.boundPort.withLock { $0 = port } }, logger: logger)
        do {
            try await server.run()
        } catch {
            throw NodeError(message: "\(address) can't be listened on: is another program using it? Choose another with --http")
        }
    }

    /// Why the node is not ready; empty if it is.
    package var obstacles: [String] {
        findings.filter { $0.verdict == .fail }.map { "\($0.check): \($0.text)" }
    }

    /// Serves the admin socket. The node runs without it if that fails.
    private func serveAdmin() async {
        guard configuration.servesAdmin else { return }
        guard let socket = AdminSocket(in: configuration.dataPath) else {
            return logger.error("admin socket not served", metadata: ["reason": "the data folder can't be opened"])
        }
        do {
            try await AdminServer(node: self, socket: socket, logger: logger).run()
        } catch {
            logger.error("admin socket not served", metadata: ["reason": "it can't be made in the data folder"])
        }
    }

    /// Checks liveness: returns once an empty batch of commands went through the store's writer and the delivery table's lock was free. A store
    /// that reports errors is alive, since the node continues without it. If the store or delivery hangs, this does not return.
    package func checkLiveness() async {
        await store.settle()
        _ = delivery.waitingCount
    }
}

/// Why a node can't run. The message says how to fix it.
package struct NodeError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(message: String) {
        self.message = message
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
