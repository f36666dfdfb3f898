import Core
import Delivery
import Logging
import NodeAPI
import NodeMetrics
import Storage
import Waku

/// The parts that a message passes: the relay, the sorter, the protocols' services, delivery, and the publisher of replies.
struct MessagePath: Sendable {
    let relay: any Relay
    let sorter: MessageSorter
    let services: [any ProtocolService]
    let delivery: DeliveryService
    let publisher: Publisher
    let handled: HandledMessages
    let heard: HeardMessages

    /// - Parameters:
    ///   - limits: of protocols of other packages that leave their limits to the node.
    ///   - gorush: the endpoints, at least one.
    /// - Throws: `StoreError`, and errors of `makeRelay`.
    init(
        _ base: NodeFoundation, limits: [ProtocolNumber: RegistrationLimits], gorush: [GorushEndpoint],
        makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        handled = HandledMessages { [cluster = base.cluster] in cluster.finished($0) }
        let seen = SeenMessages()
        for hash in try base.store.read(NodeStorage.handledMessages()) { _ = seen.insert(hash) }
        delivery = Self.delivery(base, gorush: gorush)
        let cursors = try base.store.read(RelayCursors.read(of: base.configuration.pubsubTopics))
        heard = HeardMessages(after: cursors, startedAt: base.now())
        relay = try makeRelay(Self.relayNeeds(base, from: cursors, heard))
        publisher = Publisher(
            relay: relay, seen: seen, handled: handled, counters: base.counters, logger: base.logger,
            replyDelay: base.configuration.replyDelay, isClockWrong: { [clock = base.clock] in clock.isWrong })
        let node = NodeServices(
            store: base.store, delivery: delivery, replies: publisher, handled: handled, drain: base.drain, cluster: base.cluster,
            receivers: IntakeMaker(), counters: base.counters, logger: base.logger, errors: base.errors, now: base.now,
            workLimit: base.configuration.workLimit, answerLimit: delivery.configuration.answerLimit)
        services = try base.protocols.map { spoken in
            guard let registrations = spoken.registrations, let limits = limits[spoken.number] else { return try spoken.makeService(node) }
            return try RegistrationTableService(spoken, registrations, limits: limits, node: node)
        }
        // In a cluster, a node loads the deliveries of its devices once it knows its partitions.
        if !base.cluster.isShared { try delivery.load() }
        sorter = MessageSorter(
            zip(base.protocols, services).map { ($0.label, $0.topics, $1.receiver) }, seen: seen, handled: handled,
            cluster: base.cluster, counters: base.counters, now: base.now)
    }

    /// Takes a batch of the relay.
    func take(_ batch: [ReceivedMessage], at now: Timestamp) async {
        heard.note(batch, at: now)
        await sorter.take(batch)
    }

    private static func delivery(_ base: NodeFoundation, gorush: [GorushEndpoint]) -> DeliveryService {
        var configuration = DeliveryService.Configuration()
        configuration.awaitLimit = base.configuration.awaitLimit
        configuration.outboxLimit = base.configuration.outboxLimit
        configuration.unknownHold = base.configuration.unknownHold
        configuration.webPush = base.configuration.webPush
        configuration.ids = NotificationIDCipher(identity: base.configuration.identity)
        return DeliveryService(
            configuration, store: base.store, share: base.cluster.outboxShare,
            sources: DeliverySources(base.protocols.map { $0.makeDeliverySource(base.store.sealer) }),
            gorush: gorush, counters: base.counters, alarms: base.alarms, logger: base.logger, now: base.now)
    }

    private static func relayNeeds(
        _ base: NodeFoundation, from cursors: [PubsubTopic: Timestamp], _ heard: HeardMessages
    ) -> RelayNeeds {
        let topics = base.protocols.map(\.topics)
        return RelayNeeds(
            pubsubTopics: base.configuration.pubsubTopics, ownTopics: base.ownTopics, seenUntil: cursors,
            wants: { tag in topics.contains { $0.contains(tag) } },
            contentTopics: { limit in
                topics.reduce(into: []) { $0 += $1.contentTopics(limit: max(0, limit - $0.count)) }
            },
            learnedTopics: LearnedTopicsOfAll(topics.compactMap(\.learned)),
            report: { [counters = base.counters, catchUp = base.catchUp, refusedPeers = base.refusedPeers, now = base.now] event in
                counters.add(event)
                switch event {
                case .gap: catchUp.gapFound()
                case .catchUpFailed(let reason): catchUp.failed(reason)
                case .catchUpCutShort(let reason): catchUp.cutShort(reason)
                case .caughtUp: catchUp.caughtUp()
                case .connectionRefused(let block): refusedPeers.refused(block)
                case .foreign: heard.note(until: now())
                case .recovered: break
                }
            })
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
        case .connectionRefused: add(.connectionRefused)
        case .catchUpFailed, .catchUpCutShort, .caughtUp: break
        }
    }
}
