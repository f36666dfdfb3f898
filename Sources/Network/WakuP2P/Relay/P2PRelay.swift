public import GossipSub
public import LibP2P
public import Logging
import NIOCore
import NIOPosix
public import Core
import Synchronization
public import Waku

/// A relay as a node of the Waku network: it gossips with peers or subscribes at filter nodes, queries their stores for missed messages, and
/// publishes.
///
/// It keeps connections to the configured peers and may be dialed. Messages from peers and from stores are delivered concurrently, so that `deliver`
/// may run twice at the same time and the same message may arrive several times. The relay's own messages are not received.
///
/// Life cycle: ``run(deliver:)`` connects and delivers messages until its task is cancelled, and again when it is called again. Connections stay open
/// for publishing until ``close()``, and gossip goes on over them. A relay serves one caller at a time, such as a client of push servers. All methods may
/// be called from any thread.
///
/// Mutable state is in `P2PRelayState` behind one lock; `GossipDriver` and `Inbox` have locks of their own, which are taken inside of it, never
/// around it.
public final class P2PRelay: Relay {
    /// The settings of a relay, which cannot be changed once it is created.
    public struct Configuration: Sendable {
        /// The node's private key. Keep it across restarts, since peers keep scores by peer id.
        public var key: NodeKey
        /// Peers to keep connected, each with its peer id. They are dialed again after a connection ends.
        public var peers: [Multiaddr]
        /// DNS node lists (EIP-1459). Nodes on them are dialed until there are as many as ``peerTarget``.
        public var nodeLists: [NodeTreeURL] = []
        /// The number of peers that are to relay one of ``pubsubTopics``, or to accept this filter client's topics. Nodes on ``nodeLists`` are dialed
        /// while there are fewer.
        public var peerTarget = 8
        /// A node from a list is disconnected if it does neither by this long after it was dialed.
        var peerTrial = Duration.seconds(10)
        /// The resolver for ``nodeLists``. The default has no servers: use `DNSClient.system()` with lists.
        public var dns = DNSClient(servers: [])
        /// Addresses to listen on; without any, the node only dials.
        public var listenAddresses: [Multiaddr]
        /// The topics to subscribe to. Messages on others are not received, but can be published.
        public var pubsubTopics: [PubsubTopic]
        /// The cluster of the topics, 16 for Status. Peers of another cluster are disconnected.
        public var clusterID: UInt32
        /// Whether to disconnect peers that do not report their cluster, as Waku's nodes do. Other gossipsub implementations do not report it.
        public var requiresMetadata = true
        /// The parameters of gossipsub.
        public var gossip = GossipConfiguration()
        /// The limits and timeouts of connections.
        public var host = HostConfiguration()
        /// When silent peers are pinged and disconnected.
        public var silence = SilenceLimits()
        /// Messages whose timestamp differs by more from this node's clock are delivered, but not forwarded.
        public var forwardingWindow = Duration.seconds(1200)
        /// The content topics to query from a store after messages may have been lost. Without any, nothing is caught up with. A filter client
        /// includes the first 50 in each subscribe request.
        public var catchUpTopics: [ContentTopic]
        /// Further content topics to query, read each time before.
        public var learnedTopics: (any LearnedContentTopics)?
        /// ``P2PRelay/seenUntil`` of the previous run, to catch up from. Topics without an entry have nothing to catch up with.
        public var lastSeen: [PubsubTopic: Timestamp]
        /// Makes this node a client of filter nodes, which does not gossip: called every second for at most `limit` content topics to subscribe to,
        /// the most important first. nil: the node gossips.
        public var contentTopics: (@Sendable (_ limit: Int) -> [ContentTopic])?
        /// Intervals of requests to filter nodes.
        var filter = FilterTiming()
        /// A peer that ended its gossip stream is disconnected after this long unless it opens another one.
        var gossipMuteTimeout = Duration.seconds(10)
        /// How long ``P2PRelay/close()`` sends what was published. The stop of a node allows for it.
        var closeLimit = Duration.milliseconds(800)
        /// How far back the relay looks for queries on newly subscribed topics, or after a time without peers.
        var lookBackWindow = QueryLookBack.window
        /// ``StoreCatchUp/Configuration/settling`` and ``StoreCatchUp/Configuration/shortestPeriod``
        var catchUpSettling = Duration.seconds(1)
        var catchUpPeriod = Duration.seconds(5)
        /// Whether to deliver messages on the topic of a tag; messages on topics of other forms are dropped. nil delivers all messages.
        public var wants: (@Sendable (TopicTag) -> Bool)?
        /// Called with events to be counted, from several tasks at once. It must not block.
        public var report: @Sendable (RelayEvent) -> Void

        /// The defaults are a node that gossips on the Status app's shard; it needs ``peers``, ``nodeLists`` or ``listenAddresses`` to be useful.
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

        /// The peers that the operator chose to receive from; nil for all. Further ones are found on ``nodeLists``.
        var chosenPeers: Set<PeerID>? { peers.isEmpty && nodeLists.isEmpty ? nil : Set(peers.compactMap(\.peerID)) }

        /// The stores to catch up from.
        var stores: StoreChoice { StoreChoice(configured: peers.compactMap(\.peerID), findsPeers: !nodeLists.isEmpty) }
    }

    /// The libp2p node of the relay: to serve further protocols, or to inspect connections. The relay closes it.
    public let host: Host
    /// The loop of all connections. Peers of a mesh send each message within moments: on several loops, each would wake several threads, which contend
    /// for the gossip driver. A core is enough for thousands of messages a second.
    let eventLoop: any EventLoop
    let configuration: Configuration
    let logger: Logger
    let driver: GossipDriver
    let inbox = Inbox(limit: 8 << 20)
    let turn = ExclusiveTurn()
    let lockedState: Mutex<P2PRelayState>
    /// For each pubsub topic and store: a gap was noted, catching up has something to do.
    let gapNoted: [[WakeUpSignal]]
    /// Queries were added to ``P2PRelayState/lookBack``.
    let lookBackAdded = WakeUpSignal()

    /// Creates a node that neither listens nor dials until ``run(deliver:)`` or ``listen()``.
    public init(configuration: Configuration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        var hostConfiguration = configuration.host
        hostConfiguration.onRefusal = { [report = configuration.report] in report(.connectionRefused($0)) }
        eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        host = Host(key: configuration.key, configuration: hostConfiguration, logger: logger, group: eventLoop)
        driver = GossipDriver(
            configuration: configuration.gossip, topics: configuration.pubsubTopics, chosen: configuration.chosenPeers,
            validator: MessageValidator(window: configuration.forwardingWindow, wants: configuration.wants),
            seed: .random(in: .min ... .max), muteTimeout: configuration.gossipMuteTimeout,
            charge: { [weak host] in host?.charge($0) })
        host.freeMemory { [weak driver] byteCount, limit in driver?.free(byteCount, keeping: limit / 2) ?? [:] }
        let storeCount = configuration.stores.count
        gapNoted = configuration.pubsubTopics.map { _ in (0..<storeCount).map { _ in WakeUpSignal() } }
        lockedState = Mutex(P2PRelayState(configuration: configuration, own: host.peerID, at: .now()))
        serveProtocols()
    }

    // MARK: State

    /// Attached while a peer that subscribed to a pubsub topic is connected, or a filter node accepted this node's topics.
    public var state: RelayState { lockedState.withLock(\.relayState) }

    /// For each pubsub topic, the local time up to which all messages were delivered. Pass it to the next run as ``Configuration/lastSeen``.
    public var seenUntil: [PubsubTopic: Timestamp] {
        lockedState.withLock { $0.progress.seenUntil(at: .now()) }
    }

    /// The addresses that this node listens on, with actual ports and its peer id; empty until it listens.
    public var listenAddresses: [Multiaddr] { host.listenAddresses }

    var isFilterClient: Bool { configuration.contentTopics != nil }

    /// The peers that messages are received from: filter nodes that accepted this node's subscriptions, or gossip peers that subscribed to its topics.
    var workingPeers: Set<PeerID> {
        isFilterClient ? lockedState.withLock(\.filterPeers.accepted) : driver.relayingPeers
    }

    // MARK: Diagnostics

    /// `libp2p`
    public var name: String { "libp2p" }

    /// The configured peers that are not connected, by address, and of several pubsub topics those without peers.
    public var detachedRelays: [String] {
        let missing = configuration.peers.filter { $0.peerID.map { host.connection(to: $0) == nil } ?? false }
        let topics = configuration.pubsubTopics.count > 1 ? lockedState.withLock(\.progress.detachedTopics) : []
        return missing.map(\.description) + topics.map(\.rawValue)
    }

    /// The totals of gossipsub since the relay was created.
    public var counters: GossipCounters { driver.counters }

    /// The gossip peers, with their scores.
    public var gossipPeers: [PeerGossip] { driver.statuses }

    /// All connected peers, sorted by id.
    public var peers: [RelayPeer] {
        let filterNodes = lockedState.withLock(\.filterPeers.accepted)
        let gossip = Dictionary(uniqueKeysWithValues: driver.statuses.map { ($0.peer, $0) })
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

    /// The size in bytes of the longest outbound queue of any peer, without the buffer of its stream. Messages are dropped at 4 MiB.
    public var queuedByteCount: Int { driver.queuedByteCount }

    /// The text of ``listenAddresses``.
    public var ownAddresses: [String] { listenAddresses.map(\.description) }

    /// The bytes of all connections, and the totals of gossipsub.
    public var traffic: RelayTraffic {
        var traffic = RelayTraffic()
        (traffic.bytesReceived, traffic.bytesSent) = (host.bytesReceived, host.bytesSent)
        let counters = driver.counters
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
}
