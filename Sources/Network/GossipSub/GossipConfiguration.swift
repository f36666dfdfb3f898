/// The parameters of gossipsub, named in parentheses as in the specification. The defaults are those of Waku's nodes: RFC 29, nwaku and go-waku.
///
/// A router replaces values out of range with the nearest in range: counts below 0, a ``meshLow`` above ``meshSize``, a ``gossipFactor`` that is no
/// fraction.
public struct GossipConfiguration: Hashable, Sendable {
    /// The target number of peers in a mesh (D).
    public var meshSize = 6
    /// Peers are grafted when a mesh has fewer peers than this (D_low).
    public var meshLow = 4
    /// Peers are pruned when a mesh has more peers than this (D_high).
    public var meshHigh = 8
    /// When a mesh is pruned, this many peers with the best scores are kept; the others are chosen at random (D_score).
    public var meshBest = 4
    /// The minimum number of peers in a mesh that this node dialed or chose otherwise (D_out), so that an attacker cannot surround it by dialing it.
    /// Less than ``meshLow``, at most half of ``meshSize``.
    public var meshOutbound = 2

    /// The interval at which the driver calls ``GossipSubRouter/heartbeat(at:)``.
    public var heartbeat = Duration.seconds(1)
    /// The number of heartbeats for which a message is cached, and can be requested (mcache_len).
    public var historyLength = 6
    /// The number of heartbeats for which a message is announced (mcache_gossip).
    public var historyGossip = 3
    /// The maximum size of the message cache, in bytes.
    public var cacheByteCount = 32 << 20
    /// The number of peers outside of the mesh to which messages are announced (D_lazy), unless ``gossipFactor`` gives more.
    public var gossipPeerCount = 6
    /// The fraction of the peers outside of the mesh to which messages are announced, from 0 to 1.
    public var gossipFactor = 0.25

    /// How long a message id is remembered at least, to recognize duplicates (seen_ttl).
    public var seenPeriod = Duration.seconds(120)
    /// The maximum number of remembered message ids: beyond it the oldest are dropped early.
    public var seenCapacity = 1_000_000

    /// Flood publishing: whether this node's own messages of at most 32 KiB are sent to all peers of the topic, not only to the mesh.
    public var floodsOwn = true
    /// How long the peers chosen for a topic are kept after the last own message on it, while it is not subscribed (fanout_ttl). Used without
    /// ``floodsOwn``.
    public var fanoutPeriod = Duration.seconds(60)

    /// How long neither side may graft after a prune, and the backoff assumed for a prune that has none.
    public var pruneBackoff = Duration.seconds(60)
    /// The backoff in the prunes that this node sends when it unsubscribes.
    public var unsubscribeBackoff = Duration.seconds(5)
    /// A graft this soon after a prune counts as double misbehaviour.
    public var graftFloodPeriod = Duration.seconds(10)
    /// The longest backoff that is accepted from a peer; longer ones are shortened to it.
    public var longestBackoff = Duration.seconds(3600)

    /// The maximum size of a message's data in bytes: 1 MiB, as on Status' nodes; Waku's own network has 150 KiB. Larger messages are dropped without
    /// lowering the score of their senders, since nodes with another limit forward them in good faith.
    public var maximumDataByteCount = 1 << 20
    /// The maximum size of all messages pending validation, in bytes. Messages beyond it are dropped.
    public var pendingByteCount = 16 << 20
    /// Whether messages with an author or signature are refused (StrictNoSign). Otherwise author and signature are removed.
    public var refusesAuthors = true

    /// The maximum number of IHAVE announcements processed from one peer between two heartbeats.
    public var ihaveLimit = 10
    /// The maximum number of message ids requested from one peer between two heartbeats, and announced to one peer per topic and heartbeat.
    public var idLimit = 5000
    /// How long a peer has to send a message that it announced and that was requested from it.
    public var promisePeriod = Duration.seconds(3)
    /// How often a peer may request the same message while it is cached.
    public var replyLimit: UInt8 = 3
    /// The size of a message's data, in bytes, from which IDONTWANT is sent to the other peers of the mesh that support it.
    public var idontwantByteCount = 1024
    /// The number of heartbeats for which an IDONTWANT of a peer is honored.
    public var idontwantHeartbeats = 3

    /// The maximum number of subscriptions stored for a peer; further ones are ignored.
    public var topicLimit = 200
    /// The parameters of peer scoring.
    public var score = ScoreConfiguration()

    /// The parameters of Waku's nodes.
    public init() {}

    /// With all values in range.
    var inRange: GossipConfiguration {
        var result = self
        for count in [\.meshSize, \.meshLow, \.meshBest, \.historyGossip, \.gossipPeerCount, \.idLimit] as [WritableKeyPath<Self, Int>] {
            result[keyPath: count] = max(0, self[keyPath: count])
        }
        result.meshLow = min(result.meshLow, result.meshSize)
        // In this order, NaN becomes 0.
        result.gossipFactor = min(1, max(0, gossipFactor))
        return result
    }
}

/// The parameters of peer scoring: the specification's score without the components that Waku leaves unset.
///
///     min(first deliveries, cap) − invalidWeight · invalid² − behaviourWeight · max(0, behaviour − threshold)²
///
/// The three counters of a peer are multiplied by their decay factors once per ``decayPeriod``. Behaviour counts grafts within the backoff and broken
/// promises.
public struct ScoreConfiguration: Hashable, Sendable {
    /// The maximum counter of first deliveries, and so the highest score.
    public var firstDeliveryCap = 10.0
    /// The factor by which the first deliveries decay, from 0 to 1.
    public var firstDeliveryDecay = 0.5
    /// The weight of the square of the number of invalid messages.
    public var invalidWeight = 100.0
    /// The factor by which the number of invalid messages decays, from 0 to 1.
    public var invalidDecay = 0.5
    /// The weight of the square of the misbehaviour above ``behaviourThreshold``.
    public var behaviourWeight = 10.0
    /// The misbehaviour that is tolerated.
    public var behaviourThreshold = 6.0
    /// The factor by which misbehaviour decays, from 0 to 1.
    public var behaviourDecay = 0.9
    /// The interval at which the counters decay.
    public var decayPeriod = Duration.seconds(12)
    /// Counters that decay below this are set to 0.
    public var zero = 0.01

    /// No gossip (IHAVE, IWANT) is exchanged with peers below this score.
    public var gossipThreshold = -100.0
    /// Own messages are not sent to peers below this score.
    public var publishThreshold = -1000.0
    /// Peers below this score are disconnected.
    public var graylistThreshold = -10_000.0
    /// Opportunistic grafting starts when the median score of a mesh is below this.
    public var opportunisticThreshold = 1.0
    /// The number of heartbeats between two attempts at opportunistic grafting.
    public var opportunisticHeartbeats = 60
    /// How long the score of a misbehaving peer is kept after it disconnected.
    public var retention = Duration.seconds(600)
    /// The maximum number of disconnected peers whose score is kept.
    public var retainedCount = 10_000

    /// The score parameters of Waku's nodes.
    public init() {}
}
