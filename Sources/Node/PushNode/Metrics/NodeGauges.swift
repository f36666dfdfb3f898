import NodeAPI
import Delivery
import NodeMetrics
import Storage
import Core
import Waku

/// The gauges of a node's parts: read when they are scraped, not while messages are processed.
struct NodeGauges: Sendable {
    private let base: NodeFoundation
    private let path: MessagePath

    init(_ base: NodeFoundation, _ path: MessagePath) {
        self.base = base
        self.path = path
    }

    /// The metrics in Prometheus' text format, with gauges updated.
    func exposition(isReady: Bool) async -> String {
        await update(isReady: isReady)
        return base.counters.registry.exposition()
    }

    private func update(isReady: Bool) async {
        let registry = base.counters.registry
        registry.set(.ready, to: isReady ? 1 : 0)
        if let version = VersionLabel(rawValue: base.configuration.version) { registry.set(.buildInfo, version, to: 1) }
        registry.set(.clockAhead, to: base.clock.ahead?.seconds)
        registry.set(.storeWorks, to: base.store.failure == nil ? 1 : 0)
        if base.cluster.isShared {
            registry.set(.clusterLease, to: base.cluster.failure == nil ? 1 : 0)
            registry.set(.clusterNodes, to: Double(base.cluster.nodeCount))
            registry.set(.clusterPartitions, to: Double(base.cluster.share))
            registry.set(.clusterMaintenance, to: base.cluster.isMaintainer ? 1 : 0)
            let status = base.cluster.status
            registry.set(.clusterUnowned, to: status.map { Double($0.unownedPartitions) })
            registry.set(.clusterStandbys, to: status?.standbys.map { Double($0.count(where: \.isConnected)) })
            registry.set(.clusterStandbyLag, to: status?.standbys?.compactMap(\.lagBytes).max().map(Double.init))
            registry.set(.clusterLastFailover, to: status?.lastFailover?.time)
        }
        registry.set(.databaseSize, to: Double(base.store.byteCount))
        registry.set(.relayAttached, to: path.relay.state == .attached ? 1 : 0)
        registry.set(.relaysDetached, to: Double(path.relay.detachedRelays.count))
        registry.set(.relaysDemoted, to: Double(path.relay.demotedRelays.count))
        registry.set(.relayLastMessage, to: (base.now() - base.counters.silence).seconds)
        registry.set(.relaySeenUntil, to: path.relay.seenUntil.values.min()?.seconds)
        for (endpoint, state) in zip(EndpointLabel.allCases, path.delivery.endpoints) {
            let breaker = BreakerLabel(state.breaker.state)
            for label in BreakerLabel.allCases { registry.set(.breaker, endpoint, label, to: label == breaker ? 1 : 0) }
            registry.set(.slow, endpoint, to: state.slowness == nil ? 0 : 1)
            registry.set(.postsUnanswered, endpoint, to: Double(state.unanswered.count))
            registry.set(.postsUnansweredAge, endpoint, to: state.unanswered.age.seconds)
            registry.set(.batchLimit, endpoint, to: Double(state.batchLimit))
            registry.set(.certificateEnd, endpoint, to: state.certificateEnd.map(Double.init))
        }
        if let figures = path.delivery.webPushFigures {
            registry.set(.webPushOrigins, WebPushOriginLabel.posting, to: Double(figures.postingCount))
            registry.set(.webPushOrigins, WebPushOriginLabel.unavailable, to: Double(figures.unavailableCount))
            registry.set(.webPushOrigins, WebPushOriginLabel.waiting, to: Double(figures.otherCount))
            registry.set(.webPushPlaceWait, WebPushPlaceLabel.answering, to: figures.responsiveWait.seconds)
            registry.set(.webPushPlaceWait, WebPushPlaceLabel.others, to: figures.othersWait.seconds)
            registry.set(.webPushWaiting, to: Double(figures.waitingCount))
        }
        registry.set(.outbox, to: Double(path.delivery.waitingCount))
        registry.set(.outboxAge, to: (path.delivery.oldestAge ?? .zero).seconds)
        for kind in AlarmKind.allCases { registry.set(.alarmActive, kind, to: base.alarms.isActive(kind) ? 1 : 0) }
        for (label, queue, depth, limit) in queues {
            registry.set(.queueDepth, label, queue, to: Double(depth))
            registry.set(.queueLimit, label, queue, to: limit.map(Double.init))
        }
        update(registry, peers: path.relay.peers, traffic: path.relay.traffic)
        for service in path.services { await service.updateGauges(base.counters) }
        update(registry, ProcessFigures.now())
    }

    private func update(_ registry: MetricRegistry, peers: [RelayPeer], traffic: RelayTraffic) {
        registry.set(.relayPeers, DirectionLabel.inbound, to: Double(peers.count(where: \.isInbound)))
        registry.set(.relayPeers, DirectionLabel.outbound, to: Double(peers.count { !$0.isInbound }))
        registry.set(.relayMeshPeers, to: Double(peers.count(where: \.isWorking)))
        registry.set(.relayBytes, FlowLabel.received, to: Double(traffic.bytesReceived))
        registry.set(.relayBytes, FlowLabel.sent, to: Double(traffic.bytesSent))
        for (label, count) in [
            (GossipLabel.accepted, traffic.accepted), (.ignored, traffic.ignored), (.rejected, traffic.rejected),
            (.duplicate, traffic.duplicates), (.foreign, traffic.foreign), (.overloaded, traffic.overloaded),
            (.published, traffic.published), (.forwarded, traffic.forwarded),
        ] { registry.set(.relayGossip, label, to: Double(count)) }
        for (label, count) in [
            (MisbehaviourLabel.brokenPromise, traffic.brokenPromises), (.graftFlood, traffic.graftFloods),
            (.graylisted, traffic.graylisted),
        ] { registry.set(.relayMisbehaviour, label, to: Double(count)) }
    }

    private func update(_ registry: MetricRegistry, _ figures: ProcessFigures) {
        registry.set(.processorTime, to: figures.processorSeconds)
        registry.set(.residentMemory, to: figures.residentBytes)
        registry.set(.virtualMemory, to: figures.virtualBytes)
        registry.set(.openFiles, to: figures.openFiles)
        registry.set(.openFileLimit, to: figures.openFileLimit)
        registry.set(.startTime, to: figures.startTime)
    }

    /// The queues with their limits; nil for those without a limit of their own.
    private var queues: [(label: ProtocolLabel, queue: QueueLabel, depth: Int, limit: Int?)] {
        zip(base.protocols, path.services).flatMap { spoken, service in service.queues.map { (spoken.label, $0.queue, $0.depth, $0.limit) }
        } + [
            (.shared, .requests, path.delivery.awaitingCount, nil), (.shared, .answers, path.publisher.waitingCount, Publisher.capacity),
            (.shared, .confirmations, path.publisher.unconfirmedCount, path.publisher.confirmationLimit),
            (.shared, .feedback, path.delivery.feedback.waitingCount, Feedback.capacity),
        ]
    }
}

extension BreakerLabel {
    init(_ state: CircuitBreaker.State) {
        switch state {
        case .closed: self = .closed
        case .open: self = .open
        case .halfOpen: self = .halfOpen
        }
    }
}
