/// The parameters of gossipsub. The defaults are those of Waku's nodes: RFC 29, nwaku and go-waku.
public struct GossipConfiguration: Hashable, Sendable {
    /// The target size of a mesh (D). Below `meshLow` peers are grafted, above `meshHigh` pruned.
    public var meshSize = 6
    public var meshLow = 4
    public var meshHigh = 8
    /// The number of peers with the best scores that are kept when a mesh is pruned (D_score).
    public var meshBest = 4
    /// The minimum number of outbound peers in a mesh (D_out), so that an attacker can't surround this node by dialing it. Below `meshLow`, at most
    /// half of `meshSize`.
    public var meshOutbound = 2

    public var heartbeat = Duration.seconds(1)
    /// The number of heartbeats for which a message can be requested, and for which it is announced.
    public var historyLength = 6
    public var historyGossip = 3
    /// The maximum size of the message cache, in bytes.
    public var cacheByteCount = 32 << 20
    /// The number of peers outside of the mesh that gossip is sent to (D_lazy), or the fraction of them if that is more.
    public var gossipPeerCount = 6
    public var gossipFactor = 0.25

    public var seenPeriod = Duration.seconds(120)
    /// The maximum number of remembered ids: beyond it the oldest are dropped early.
    public var seenCapacity = 1_000_000

    /// Flood publishing: whether this node's own messages are sent to all peers of the topic, not only to the mesh.
    public var floodsOwn = true
    public var fanoutPeriod = Duration.seconds(60)

    public var pruneBackoff = Duration.seconds(60)
    public var unsubscribeBackoff = Duration.seconds(5)
    /// A graft this soon after a prune counts as double misbehaviour.
    public var graftFloodPeriod = Duration.seconds(10)
    /// The longest backoff that is accepted from a peer.
    public var longestBackoff = Duration.seconds(3600)

    /// The maximum size of a message's data in bytes: 1 MiB, as on Status' nodes; 150 KiB on Waku's own network. Larger messages are dropped
    /// without blame, since nodes with another limit forward them in good faith.
    public var maximumDataByteCount = 1 << 20
    /// The maximum size of messages pending validation, in bytes.
    public var pendingByteCount = 16 << 20
    /// Whether messages with an author or signature are refused (StrictNoSign). Otherwise author and signature are removed.
    public var refusesAuthors = true

    /// The maximum number of IHAVE messages processed, and of ids requested, from one peer between two heartbeats.
    public var ihaveLimit = 10
    public var idLimit = 5000
    /// How long a peer has to send a message that it announced and was asked for.
    public var promisePeriod = Duration.seconds(3)
    /// How often a peer may request the same message.
    public var replyLimit: UInt8 = 3
    /// For messages of at least this size, IDONTWANT is sent to the other peers of the mesh that support it.
    public var idontwantByteCount = 1024
    /// The number of heartbeats for which an IDONTWANT of a peer is honored.
    public var idontwantHeartbeats = 3

    /// The maximum number of subscriptions stored for a peer.
    public var topicLimit = 200
    public var score = ScoreConfiguration()

    public init() {}
}

/// The parameters of peer scoring: the specification's score without components that Waku leaves unset.
///
///     min(first deliveries, cap) − invalidWeight · invalid² − behaviourWeight · max(0, behaviour − threshold)²
///
/// The counters decay. Behaviour counts grafts within the backoff and broken promises.
public struct ScoreConfiguration: Hashable, Sendable {
    public var firstDeliveryCap = 10.0
    public var firstDeliveryDecay = 0.5
    public var invalidWeight = 100.0
    public var invalidDecay = 0.5
    public var behaviourWeight = 10.0
    public var behaviourThreshold = 6.0
    public var behaviourDecay = 0.9
    public var decayPeriod = Duration.seconds(12)
    /// Counters below this are set to 0.
    public var zero = 0.01

    /// No gossip (IHAVE, IWANT) is exchanged with peers below this score.
    public var gossipThreshold = -100.0
    /// Own messages are not sent to peers below this score.
    public var publishThreshold = -1000.0
    /// Peers below this score are disconnected.
    public var graylistThreshold = -10_000.0
    /// Opportunistic grafting starts when the median score of a mesh is below this.
    public var opportunisticThreshold = 1.0
    public var opportunisticHeartbeats = 60
    /// How long a bad score is kept after the connection ended, and for how many peers.
    public var retention = Duration.seconds(600)
    public var retainedCount = 10_000

    public init() {}
}
