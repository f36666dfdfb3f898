public import Primitives

/// What is to be done; the order counts.
public enum GossipAction: Sendable {
    case send(Outgoing, to: PeerNumber)
    case forward(GossipMessage, to: [PeerNumber])
    /// Decide about it, and tell by ``GossipSub/judged(_:as:at:)``: nothing goes on before.
    case validate(GossipMessage, from: PeerNumber)
    /// Its score is beyond hope. ``GossipSub/disconnected(_:at:)`` is to follow.
    case disconnect(PeerNumber)
}

/// What a validator finds.
public enum GossipVerdict: Hashable, Sendable {
    /// To be sent on.
    case accept
    /// Not to be sent on, but nobody's fault.
    case ignore
    /// Whoever sent it is to blame.
    case reject
}

/// What became of a message that this node publishes.
public enum GossipPublication: Hashable, Sendable {
    case sent(peerCount: Int)
    /// It was published, or came in, before.
    case duplicate
    /// Nothing was kept of it.
    case noPeers
    case tooLarge
}

/// A gossipsub 1.1 router without signatures: events and time come in, actions go out. Whoever holds it has the connections, a queue for
/// each of them (``OutboundQueue``), a clock that ticks each heartbeat, and the validator.
///
///     frame ─▶ GossipRPC ─▶ received ─▶ seen? ─▶ .validate ─▶ judged ─▶ .forward to the mesh
///                             │ control                         │ reject
///                             ▼                                 ▼
///                   mesh, promises, backoffs ─────────▶ score ─▶ .disconnect
///
/// Times are durations since some start that never goes back. The same events with the same seed make the same actions. All that is kept
/// is bounded, by the configuration and the number of peers, whatever they send.
///
/// Of the specification it leaves out: peer exchange, which Waku's nodes do by other means, and of the scores time in mesh, delivery rates in
/// the mesh (both unset or nearly so in Waku) and address co-location.
public struct GossipSub: Sendable {
    public let configuration: GossipConfiguration
    public private(set) var actions: [GossipAction] = []
    public internal(set) var counters = GossipCounters()

    struct Pending {
        let message: GossipMessage
        /// The first sent it first.
        var senders: [PeerNumber]
    }

    struct Retained {
        var score: PeerScore
        let until: Instant
    }

    var random: SplitMix64
    var peers: [PeerNumber: GossipPeer] = [:]
    /// Of peers that left with something on their account.
    var retained: [PeerNumber: Retained] = [:]
    var topics: [String: GossipTopic] = [:]
    /// Those subscribed or published on, in the order in which that began.
    var ownTopics: [String] = []
    var seen: SeenCache
    var cache: MessageCache
    var pending: [MessageID: Pending] = [:]
    var pendingByteCount = 0
    var promises = Promises()
    /// How many peers were asked for a message since the last heartbeat.
    var asked: [MessageID: Int] = [:]
    var heartbeatCount = 0
    var nextDecay: Instant?

    public init(configuration: GossipConfiguration = GossipConfiguration(), seed: UInt64) {
        self.configuration = configuration
        random = SplitMix64(seed: seed)
        seen = SeenCache(period: configuration.seenPeriod, capacity: configuration.seenCapacity)
        cache = MessageCache(
            length: configuration.historyLength, gossip: configuration.historyGossip, capacity: configuration.cacheByteCount)
    }

    /// What is to be done since this was asked last.
    public mutating func takeActions() -> [GossipAction] {
        defer { actions.removeAll(keepingCapacity: actions.count < 1024) }
        return actions
    }

    mutating func act(_ action: GossipAction) {
        actions.append(action)
    }

    // MARK: Peers

    /// A stream to a peer is open.
    public mutating func connected(_ peer: PeerNumber, version: GossipVersion, isOutbound: Bool) {
        guard peers[peer] == nil else { return }
        let score = retained.removeValue(forKey: peer)?.score ?? PeerScore()
        peers[peer] = GossipPeer(version: version, isOutbound: isOutbound, score: score)
        guard !graylistIfNeeded(peer) else { return }
        for topic in ownTopics where topics[topic]?.isSubscribed == true {
            act(.send(.subscription(topic: topic, isOn: true), to: peer))
        }
    }

    /// A second stream shows what the peer understands besides.
    public mutating func speaks(_ peer: PeerNumber, _ version: GossipVersion) {
        guard let known = peers[peer]?.version else { return }
        peers[peer]?.version = max(known, version)
    }

    public mutating func disconnected(_ peer: PeerNumber, at now: Instant) {
        guard var gone = peers.removeValue(forKey: peer) else { return }
        for topic in gone.topics {
            topics[topic]?.leaves(peer)
            forgetIfEmpty(topic)
        }
        // Those that grafted without a subscription.
        for topic in ownTopics { topics[topic]?.leaves(peer) }
        gone.score.disconnected()
        if !gone.score.isSpotless, retained.count < configuration.score.retainedCount {
            retained[peer] = Retained(score: gone.score, until: now + configuration.score.retention)
        }
    }

    /// Whether its number still means something: numbers of others may be given anew.
    public func remembers(_ peer: PeerNumber) -> Bool {
        peers[peer] != nil || retained[peer] != nil || ownTopics.contains { topics[$0]?.backoff[peer] != nil }
    }

    func score(_ peer: PeerNumber) -> Double {
        peers[peer]?.score.value(configuration.score) ?? 0
    }

    /// - Returns: Whether it has to go, or had to before.
    @discardableResult
    mutating func graylistIfNeeded(_ peer: PeerNumber) -> Bool {
        guard peers[peer]?.isLeaving == false else { return true }
        guard score(peer) < configuration.score.graylistThreshold else { return false }
        peers[peer]?.isLeaving = true
        counters.graylisted += 1
        act(.disconnect(peer))
        return true
    }

    public var peerStatuses: [GossipPeerStatus] {
        peers.keys.sorted().map { number in
            GossipPeerStatus(
                peer: number, score: score(number), isOutbound: peers[number]?.isOutbound ?? false,
                topics: (peers[number]?.topics ?? []).sorted(),
                meshes: ownTopics.filter { topics[$0]?.mesh.contains(number) ?? false }.sorted(),
                deliveredCount: peers[number]?.deliveredCount ?? 0)
        }
    }

    public func mesh(of topic: String) -> [PeerNumber] {
        topics[topic]?.mesh ?? []
    }

    public func subscribers(of topic: String) -> [PeerNumber] {
        topics[topic]?.subscribers ?? []
    }

    // MARK: Own subscriptions

    public mutating func subscribe(to topic: String, at now: Instant) {
        guard topics[topic]?.isSubscribed != true else { return }
        topics[topic, default: GossipTopic()].isSubscribed = true
        if !ownTopics.contains(topic) { ownTopics.append(topic) }
        topics[topic]?.fanout = []
        for peer in peers.keys.sorted() { act(.send(.subscription(topic: topic, isOn: true), to: peer)) }
        maintainMesh(of: topic, at: now)
    }

    public mutating func unsubscribe(from topic: String, at now: Instant) {
        guard topics[topic]?.isSubscribed == true else { return }
        topics[topic]?.isSubscribed = false
        for peer in mesh(of: topic) { prune(peer, from: topic, backoff: configuration.unsubscribeBackoff, at: now) }
        for peer in peers.keys.sorted() { act(.send(.subscription(topic: topic, isOn: false), to: peer)) }
        ownTopics.removeAll { $0 == topic }
        forgetIfEmpty(topic)
    }

    func isSubscribed(to topic: String) -> Bool {
        topics[topic]?.isSubscribed ?? false
    }

    mutating func forgetIfEmpty(_ topic: String) {
        if topics[topic]?.isForgotten == true { topics[topic] = nil }
    }

    // MARK: The mesh

    mutating func graft(_ peer: PeerNumber, into topic: String) {
        topics[topic]?.mesh.append(peer)
        act(.send(.graft(topic: topic), to: peer))
    }

    /// Also tells a peer that it can't be in the mesh.
    mutating func prune(_ peer: PeerNumber, from topic: String, backoff: Duration, at now: Instant) {
        topics[topic]?.mesh.removeAll { $0 == peer }
        topics[topic]?.keepAway(peer, until: now + backoff)
        act(.send(.prune(topic: topic, backoff: backoff), to: peer))
    }
}
