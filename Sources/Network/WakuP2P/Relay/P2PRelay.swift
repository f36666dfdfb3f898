public import GossipSub
public import LibP2P
public import Logging
import NIOCore
public import Core
import Synchronization
public import Waku

/// A relay as a node of the Waku network: it gossips with peers or subscribes at filter nodes, queries their stores for missed messages, and
/// publishes.
///
/// It keeps connections to the configured peers and may be dialed. Messages from peers and from stores are delivered concurrently, so that
/// `deliver` may run twice at the same time and the same message may arrive several times. The relay's own messages are not received.
///
/// Mutable state is in `P2PRelayState` behind one lock; `GossipDriver` and `Inbox` have locks of their own, which are taken inside of
/// it, never around it.
public final class P2PRelay: Relay {
    public struct Configuration: Sendable {
        public var key: NodeKey
        /// Peers to keep connected, each with its peer id.
        public var peers: [Multiaddr]
        /// DNS node lists (EIP-1459). Nodes on them are dialed until as many peers as ``peerTarget`` send messages.
        public var nodeLists: [NodeTreeURL] = []
        public var peerTarget = 8
        /// A node from a list is disconnected if it sends no messages for this long after it was dialed.
        var peerTrial = Duration.seconds(10)
        public var dns = DNSClient(servers: [])
        public var listenAddresses: [Multiaddr]
        public var pubsubTopics: [PubsubTopic]
        /// Peers of another cluster are disconnected.
        public var clusterID: UInt32
        /// Whether to disconnect peers that do not report their cluster, as Waku's nodes do. Other gossipsub implementations do not report it.
        public var requiresMetadata = true
        public var gossip = GossipConfiguration()
        public var host = HostConfiguration()
        /// When silent peers are pinged and disconnected.
        public var silence = SilenceLimits()
        /// Messages whose timestamp differs by more are not forwarded.
        public var forwardingWindow = Duration.seconds(1200)
        /// The content topics to query from a store after messages may have been lost.
        public var catchUpTopics: [ContentTopic]
        /// ``P2PRelay/seenUntil`` of the previous run, to catch up from. Topics without an entry have nothing to catch up with.
        public var lastSeen: [PubsubTopic: Timestamp]
        /// Makes this a client of filter nodes instead of a relay: called every second for the content topics to subscribe to, at most `limit`.
        /// nil: a relay.
        public var contentTopics: (@Sendable (_ limit: Int) -> [ContentTopic])?
        /// Intervals of requests to filter nodes.
        var filter = FilterTiming()
        /// How far back a filter client looks for queries on newly subscribed topics.
        var lookBackWindow = QueryLookBack.window
        /// ``StoreCatchUp/Configuration/settling`` and ``StoreCatchUp/Configuration/shortestPeriod``
        var catchUpSettling = Duration.seconds(1)
        var catchUpPeriod = Duration.seconds(5)
        /// Whether to deliver messages on a topic of the form of `ContentTopic`; others are dropped. nil delivers all messages.
        public var wants: (@Sendable (TopicTag) -> Bool)?
        /// Called with events to be counted.
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
    let driver: GossipDriver
    let inbox = Inbox(limit: 8 << 20)
    let lockedState: Mutex<P2PRelayState>
    /// For each pubsub topic: a gap was noted, catching up has something to do.
    let gapNoted: [WakeUpSignal]
    /// Queries were added to ``P2PRelayState/lookBack``.
    let lookBackAdded = WakeUpSignal()

    public init(configuration: Configuration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        host = Host(key: configuration.key, configuration: configuration.host, logger: logger)
        driver = GossipDriver(
            configuration: configuration.gossip, topics: configuration.pubsubTopics,
            validator: MessageValidator(window: configuration.forwardingWindow, wants: configuration.wants),
            seed: .random(in: .min ... .max))
        gapNoted = configuration.pubsubTopics.map { _ in WakeUpSignal() }
        lockedState = Mutex(P2PRelayState(configuration: configuration, own: host.peerID, at: .now()))
        serveProtocols()
    }

    // MARK: State

    public var state: RelayState { lockedState.withLock(\.relayState) }

    public var seenUntil: [PubsubTopic: Timestamp] {
        lockedState.withLock { $0.progress.seenUntil(at: .now()) }
    }

    /// The addresses it listens on, with actual ports, once it listens.
    public var listenAddresses: [Multiaddr] { host.listenAddresses }

    var isFilterClient: Bool { configuration.contentTopics != nil }

    /// The peers that messages are received from: filter nodes that accepted this node's subscriptions, or all gossip peers.
    var workingPeers: Set<PeerID> {
        isFilterClient ? lockedState.withLock(\.filterPeers.accepted) : Set(driver.statuses.map(\.peer))
    }

    // MARK: Diagnostics

    public var name: String { "libp2p" }

    public var counters: GossipCounters { driver.counters }

    /// The gossip peers, with their scores.
    public var gossipPeers: [PeerGossip] { driver.statuses }

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

    /// Bytes in the longest outbound queue of any peer, without those in its stream's buffer. Messages are dropped at 4 MiB.
    public var queuedByteCount: Int { driver.queuedByteCount }

    public var ownAddresses: [String] { listenAddresses.map(\.description) }

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
