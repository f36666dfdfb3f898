public import GossipSub
public import LibP2P
public import Logging
import NIOCore
import Primitives
import Synchronization
public import Waku

/// A node of the Waku network: gossips with its peers, asks their stores for what it missed, and publishes.
///
/// It dials the peers that it is told, for ever, and may be dialled. Gossip brings messages once; what the store brings comes beside it, so
/// that `deliver` may run twice at once, and the same message may come more than once. What it publishes itself does not come back.
public final class P2PRelay: Relay {
    public struct Configuration: Sendable {
        public var key: NodeKey
        /// Dialled, and dialled again: each with its peer id.
        public var peers: [Multiaddr]
        /// Lists of nodes in the DNS, of which some are dialled as well, until as many peers as are wanted bring messages.
        public var nodeLists: [NodeTreeURL] = []
        public var peerTarget = 8
        /// So long after it was dialled, one of the lists' nodes is left when it brings no messages.
        var peerTrial = Duration.seconds(10)
        public var dns = DNSClient(servers: [])
        public var listenAddresses: [Multiaddr]
        public var pubsubTopics: [PubsubTopic]
        /// Peers of another one are left.
        public var clusterID: UInt32
        /// Whether peers that tell no cluster are left, as Waku's nodes do. Others than these know nothing of it.
        public var requiresMetadata = true
        public var gossip = GossipConfiguration()
        public var host = HostConfiguration()
        /// When peers are asked whether they are there.
        public var silence = SilenceLimits()
        /// How far a sender's clock may be off for its messages to be sent on to others.
        public var forwardingWindow = Duration.seconds(1200)
        /// What is looked up in a store after messages may have been lost: the node's own topics.
        public var catchUpTopics: [ContentTopic]
        /// Until when all was seen on each pubsub topic, in an earlier life (``P2PRelay/seenUntil``); on the others nothing can have been
        /// missed.
        public var lastSeen: [PubsubTopic: Timestamp]
        /// As a client of filter nodes, instead of relaying: the content topics that are wanted, up to a number, asked for each second; nil: a
        /// relay.
        public var contentTopics: (@Sendable (_ limit: Int) -> [ContentTopic])?
        /// How often filter nodes are asked.
        var filter = FilterTiming()
        /// From a gap to the walk through a store that ends it, and from the start of one walk to the next.
        var catchUpSettling = Duration.seconds(1)
        var catchUpPeriod = Duration.seconds(5)
        /// Which topics of the form of `ContentTopic` are worth handing over; nil: all messages are, whatever their topic.
        public var wants: (@Sendable (TopicTag) -> Bool)?
        /// Told what is to be counted.
        public var report: @Sendable (RelayEvent) -> Void

        public init(
            key: NodeKey, peers: [Multiaddr] = [], listenAddresses: [Multiaddr] = [], pubsubTopics: [PubsubTopic] = [.statusDefault],
            clusterID: UInt32 = 16, catchUpTopics: [ContentTopic] = [], lastSeen: [PubsubTopic: Timestamp] = [:],
            wants: (@Sendable (TopicTag) -> Bool)? = nil, report: @escaping @Sendable (RelayEvent) -> Void = { _ in }
        ) {
            self.key = key
            self.peers = peers
            self.listenAddresses = listenAddresses
            self.pubsubTopics = pubsubTopics
            self.clusterID = clusterID
            self.catchUpTopics = catchUpTopics
            self.lastSeen = lastSeen
            self.wants = wants
            self.report = report
        }
    }

    public let host: Host
    let configuration: Configuration
    let logger: Logger
    let router: GossipRouter
    let inbox = Inbox(limit: 8 << 20)
    let progress: Mutex<P2PProgress>
    /// Of each pubsub topic, that there is a gap.
    let gaps: [WakeUpSignal]
    let life = Mutex(Life())
    let finder: Mutex<PeerFinder>
    let filterPeers: Mutex<FilterPeers>
    let lookBack: Mutex<QueryLookBack>
    /// That there is something to look back for.
    let lookBackAdded = WakeUpSignal()
    let hasWarnedOfTopics = Atomic(false)

    struct Life {
        var task: Task<Void, Never>?
        var isListening = false
        var isClosed = false
    }

    /// Why there is nobody, as far as that is known.
    let reason = Mutex("no peer was reached yet")

    public init(configuration: Configuration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        host = Host(key: configuration.key, configuration: configuration.host, logger: logger)
        router = GossipRouter(
            configuration: configuration.gossip, topics: configuration.pubsubTopics,
            validator: MessageValidator(window: configuration.forwardingWindow, wants: configuration.wants),
            seed: .random(in: .min ... .max))
        gaps = configuration.pubsubTopics.map { _ in WakeUpSignal() }
        var finding = PeerFinder.Limits()
        finding.target = configuration.peerTarget
        finder = Mutex(PeerFinder(own: host.peerID, limits: finding))
        filterPeers = Mutex(
            FilterPeers(
                pubsubTopicCount: configuration.pubsubTopics.count, ownTopics: configuration.catchUpTopics, timing: configuration.filter))
        lookBack = Mutex(QueryLookBack(pubsubTopics: configuration.pubsubTopics))
        progress = Mutex(
            P2PProgress(
                pubsubTopics: configuration.pubsubTopics,
                catchUp: .init(
                    contentTopics: configuration.catchUpTopics, settling: configuration.catchUpSettling,
                    shortestPeriod: configuration.catchUpPeriod),
                lastSeen: configuration.lastSeen, at: .now()))
        serve()
    }

    /// Where it listens, with the ports that were chosen, once it does.
    public var listenAddresses: [Multiaddr] { host.listenAddresses }

    public var name: String { "libp2p" }

    public var state: RelayState {
        progress.withLock { $0.isAttached } ? .attached : .detached(reason.withLock { $0 })
    }

    public var seenUntil: [PubsubTopic: Timestamp] {
        progress.withLock { $0.seenUntil(at: .now()) }
    }

    public var counters: GossipCounters { router.counters }

    /// Those it gossips with, with what is thought of them.
    public var gossipPeers: [PeerGossip] { router.statuses }

    var isFilterClient: Bool { configuration.contentTopics != nil }

    /// Those that messages may come by: filter nodes that took this node's topics, or all it gossips with.
    var workingPeers: Set<PeerID> {
        isFilterClient ? filterPeers.withLock(\.accepted) : Set(router.statuses.map(\.peer))
    }

    public var peers: [RelayPeer] {
        let filterNodes = filterPeers.withLock(\.accepted)
        let gossip = Dictionary(uniqueKeysWithValues: router.statuses.map { ($0.peer, $0) })
        return host.peers.map { known in
            let gossip = gossip[known.connection.peer]
            return RelayPeer(
                id: "\(known.connection.peer)", address: known.connection.remoteAddress?.description,
                isInbound: known.connection.isInbound, agent: known.info?.agentVersion, protocols: known.info?.protocols.sorted() ?? [],
                pubsubTopics: gossip?.status.topics ?? [], meshes: gossip?.status.meshes ?? [],
                isFilterNode: filterNodes.contains(known.connection.peer), score: gossip?.status.score,
                bytesReceived: known.connection.bytesReceived, bytesSent: known.connection.bytesSent,
                messagesReceived: gossip?.receivedCount ?? 0, messagesSent: gossip?.sentCount ?? 0)
        }.sorted { $0.id < $1.id }
    }

    /// What waits for the peer that has most waiting, in bytes, beside what its stream holds: messages are dropped at 4 MiB.
    public var queuedByteCount: Int { router.queuedByteCount }

    public var ownAddresses: [String] { listenAddresses.map(\.description) }

    public var traffic: RelayTraffic {
        var traffic = RelayTraffic()
        (traffic.bytesReceived, traffic.bytesSent) = (host.bytesReceived, host.bytesSent)
        let counters = router.counters
        traffic.accepted = counters.accepted
        traffic.ignored = counters.ignored
        traffic.rejected = counters.rejected
        traffic.duplicates = counters.duplicates
        traffic.foreign = counters.foreign
        traffic.overloaded = counters.overloaded
        traffic.published = counters.published
        traffic.forwarded = counters.forwarded
        traffic.brokenPromises = counters.brokenPromises
        traffic.graftFloods = counters.graftFloods
        traffic.graylisted = counters.graylisted
        return traffic
    }

    func finish(_ outcome: GossipRouter.Outcome) async {
        for peer in outcome.peersToLeave { host.disconnect(peer) }
        if outcome.unwantedCount > 0 { configuration.report(.foreign(outcome.unwantedCount)) }
        guard !outcome.messages.isEmpty else { return }
        await inbox.append(outcome.messages)
    }
}
