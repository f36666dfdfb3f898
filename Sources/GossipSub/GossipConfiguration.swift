/// How a node gossips. What is set is what Waku's nodes have: RFC 29, and nwaku's and go-waku's own.
public struct GossipConfiguration: Hashable, Sendable {
    /// How many peers a mesh should have; below `meshLow` more are sought, above `meshHigh` some are let go.
    public var meshSize = 6
    public var meshLow = 4
    public var meshHigh = 8
    /// Of a mesh that is too large the best scores are kept, so many.
    public var meshBest = 4
    /// So many of a mesh's peers are those that this node dialled: nobody surrounds it by dialling alone. Below `meshLow`, at most half of
    /// `meshSize`.
    public var meshOutbound = 2

    public var heartbeat = Duration.seconds(1)
    /// For how many heartbeats a message can be asked for, and is told of.
    public var historyLength = 6
    public var historyGossip = 3
    /// All cached messages, in bytes.
    public var cacheByteCount = 32 << 20
    /// To how many peers outside of the mesh gossip goes: this many, or this part of them when that is more.
    public var gossipPeerCount = 6
    public var gossipFactor = 0.25

    public var seenPeriod = Duration.seconds(120)
    /// More ids are not remembered: the oldest go before their time.
    public var seenCapacity = 1_000_000

    /// Whether what this node publishes goes to all peers of the topic, not the mesh alone.
    public var floodsOwn = true
    public var fanoutPeriod = Duration.seconds(60)

    public var pruneBackoff = Duration.seconds(60)
    public var unsubscribeBackoff = Duration.seconds(5)
    /// A graft that comes so soon after a prune counts twice.
    public var graftFloodPeriod = Duration.seconds(10)
    /// No peer keeps this node away for longer.
    public var longestBackoff = Duration.seconds(3600)

    /// Data of a message, in bytes: 1 MiB, as Status' nodes have it; 150 KiB on Waku's own network. Larger ones are dropped, and held against
    /// nobody, as far as a frame holds them: a node with another limit hands them on in good faith.
    public var maximumDataByteCount = 1 << 20
    /// Messages that wait for their verdict, in bytes.
    public var pendingByteCount = 16 << 20
    /// Whether messages that tell their sender, or are signed, are refused: StrictNoSign. Otherwise that is taken off them.
    public var refusesAuthors = true

    /// Announcements of one peer between two heartbeats that are looked at, and ids that it is asked for.
    public var ihaveLimit = 10
    public var idLimit = 5000
    /// After which a peer must have sent what it announced and was asked for.
    public var promisePeriod = Duration.seconds(3)
    /// How often one peer gets one message that it asks for.
    public var replyLimit: UInt8 = 3
    /// Messages of so many bytes are declined at the other peers of the mesh, where these understand that.
    public var idontwantByteCount = 1024
    /// For how many heartbeats a peer's word not to want a message holds.
    public var idontwantHeartbeats = 3

    /// Topics that are remembered of a peer, and announced to it.
    public var topicLimit = 200
    public var score = ScoreConfiguration()

    public init() {}
}

/// What peers are thought of: the specification's score, but for what Waku leaves unset or what a few long connections don't need.
///
///     min(first deliveries, cap) − invalidWeight · invalid² − behaviourWeight · max(0, behaviour − threshold)²
///
/// The counters decay. Behaviour counts grafts within the backoff and promises that were broken.
public struct ScoreConfiguration: Hashable, Sendable {
    public var firstDeliveryCap = 10.0
    public var firstDeliveryDecay = 0.5
    public var invalidWeight = 100.0
    public var invalidDecay = 0.5
    public var behaviourWeight = 10.0
    public var behaviourThreshold = 6.0
    public var behaviourDecay = 0.9
    public var decayPeriod = Duration.seconds(12)
    /// Below which a counter is 0.
    public var zero = 0.01

    /// Below it no gossip is exchanged.
    public var gossipThreshold = -100.0
    /// Below it own messages are not sent there.
    public var publishThreshold = -1000.0
    /// Below it nothing is heard, and the connection ends.
    public var graylistThreshold = -10_000.0
    /// When half of a mesh is below it, better peers are grafted.
    public var opportunisticThreshold = 1.0
    public var opportunisticHeartbeats = 60
    /// For how long a bad score outlives the connection, and of how many peers.
    public var retention = Duration.seconds(600)
    public var retainedCount = 10_000

    public init() {}
}
