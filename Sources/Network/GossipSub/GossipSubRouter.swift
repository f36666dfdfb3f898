public import Core

/// An action for the driver to carry out. The order of the actions matters.
public enum GossipAction: Sendable {
    /// Append the item to the ``OutboundQueue`` of the peer.
    case send(Outgoing, to: PeerNumber)
    /// Append the message to the ``OutboundQueue`` of each peer.
    case forward(GossipMessage, to: [PeerNumber])
    /// Validate the message and call ``GossipSubRouter/judged(_:as:at:)``. Until then it is not forwarded.
    case validate(GossipMessage, from: PeerNumber)
    /// Disconnect a peer whose score fell below the graylist threshold, then call ``GossipSubRouter/disconnected(_:at:)``.
    case disconnect(PeerNumber)
}

/// The result of validating a message.
public enum GossipVerdict: Hashable, Sendable {
    /// Valid: forward it.
    case accept
    /// Do not forward it; the scores of the peers that sent it do not change.
    case ignore
    /// Invalid: lowers the score of the peers that sent it.
    case reject
}

/// The result of publishing a message.
public enum GossipPublication: Hashable, Sendable {
    /// The message was queued for this many peers.
    case sent(peerCount: Int)
    /// The message was published or received before.
    case duplicate
    /// There are no peers to send it to. The message is not stored, so that it can be published again later.
    case noPeers
    /// The data is longer than ``GossipConfiguration/maximumDataByteCount``.
    case tooLarge
}

/// A gossipsub 1.1 router for unsigned messages (StrictNoSign), as a state machine: events and time come in, actions go out. Its driver
/// has the connections with an ``OutboundQueue`` each, calls ``heartbeat(at:)`` regularly, validates messages, and calls ``takeActions()`` after
/// each event.
///
///     frame ─▶ GossipRPC ─▶ received ─▶ seen? ─▶ .validate ─▶ judged ─▶ .forward to the mesh
///                             │ control                         │ reject
///                             ▼                                 ▼
///                   mesh, promises, backoffs ─────────▶ score ─▶ .disconnect
///
/// It is deterministic: the same events with the same seed result in the same actions. Memory is bounded by the configuration and the number
/// of peers, independent of their messages.
///
/// Not implemented: peer exchange, instead of which Waku's nodes use other protocols; the score components for time in mesh and mesh delivery rates,
/// which Waku's nodes set to zero or nearly so; the score component for address co-location.
public struct GossipSubRouter: Sendable {
    /// The parameters, in range; they cannot be changed later.
    public let configuration: GossipConfiguration
    /// The actions that were not taken yet, in order.
    public private(set) var actions: [GossipAction] = []
    /// Totals since the router was created.
    public internal(set) var counters = GossipCounters()

    struct Pending {
        let message: GossipMessage
        /// The peers that sent the message, in order of arrival.
        var senders: [PeerNumber]
    }

    struct Retained {
        var score: PeerScore
        let until: Instant
    }

    var random: SplitMix64
    var peers: [PeerNumber: GossipPeer] = [:]
    /// Scores of disconnected peers that misbehaved.
    var retained: [PeerNumber: Retained] = [:]
    var topics: [String: GossipTopic] = [:]
    /// Topics that this node subscribes to or publishes on, in order of first use.
    var ownTopics: [String] = []
    var seen: SeenCache
    var cache: MessageCache
    var pending: [MessageID: Pending] = [:]
    var pendingByteCount = 0
    let memory = MessageMemory()
    var promises = GossipPromises()
    /// For each message, the number of peers that it was requested from since the last heartbeat.
    var asked: [MessageID: Int] = [:]
    var heartbeatCount = 0
    var nextDecay: Instant?

    /// - Parameter seed: Seeds the random choices of peers. Use a random number outside of tests: peers must not be able to predict the choices.
    public init(configuration: GossipConfiguration = GossipConfiguration(), seed: UInt64) {
        let configuration = configuration.inRange
        self.configuration = configuration
        random = SplitMix64(seed: seed)
        seen = SeenCache(period: configuration.seenPeriod, capacity: configuration.seenCapacity)
        cache = MessageCache(
            length: configuration.historyLength, gossip: configuration.historyGossip, capacity: configuration.cacheByteCount)
    }

    /// Removes and returns the actions since the last call.
    public mutating func takeActions() -> [GossipAction] {
        defer { actions.removeAll(keepingCapacity: actions.count < 1024) }
        return actions
    }

    /// The memory of the messages that are not in the cache, in bytes: they wait in queues or are pending. A message in several queues counts once.
    package var uncachedByteCount: Int {
        max(0, memory.byteCount - cache.byteCount - MessageMemory.overhead * cache.count)
    }

    mutating func act(_ action: GossipAction) {
        actions.append(action)
    }

    // MARK: Peers

    /// A gossip stream to a peer was opened: sends it this node's subscriptions. Ignored for a connected peer.
    ///
    /// - Parameter isOutbound: Whether this node dialed the peer, or chose it otherwise. Meshes keep places for such peers, which strangers can't take.
    public mutating func connected(_ peer: PeerNumber, version: GossipVersion, isOutbound: Bool) {
        guard peers[peer] == nil else { return }
        let score = retained.removeValue(forKey: peer)?.score ?? PeerScore()
        peers[peer] = GossipPeer(version: version, isOutbound: isOutbound, score: score)
        guard !graylistIfNeeded(peer) else { return }
        for topic in ownTopics where topics[topic]?.isSubscribed == true {
            act(.send(.subscription(topic: topic, isOn: true), to: peer))
        }
    }

    /// This node now chooses a connected peer, or no longer does: see ``connected(_:version:isOutbound:)``.
    package mutating func count(_ peer: PeerNumber, asOutbound isOutbound: Bool) {
        peers[peer]?.isOutbound = isOutbound
    }

    /// A further stream of a connected peer negotiated another protocol version: the higher one is used from then on.
    public mutating func speaks(_ peer: PeerNumber, _ version: GossipVersion) {
        guard let known = peers[peer]?.version else { return }
        peers[peer]?.version = max(known, version)
    }

    /// The connection to a peer ended. Its counters of misbehaviour are kept for ``ScoreConfiguration/retention``.
    public mutating func disconnected(_ peer: PeerNumber, at now: Instant) {
        guard var gone = peers.removeValue(forKey: peer) else { return }
        for topic in gone.topics {
            topics[topic]?.leaves(peer)
            forgetIfEmpty(topic)
        }
        // A peer may have grafted without being subscribed.
        for topic in ownTopics { topics[topic]?.leaves(peer) }
        gone.score.disconnected()
        if !gone.score.isSpotless, retained.count < configuration.score.retainedCount {
            retained[peer] = Retained(score: gone.score, until: now + configuration.score.retention)
        }
    }

    /// Whether anything is stored under a peer's number: a connection, a score or a backoff. Otherwise the number may be reused for another peer.
    public func remembers(_ peer: PeerNumber) -> Bool {
        peers[peer] != nil || retained[peer] != nil || ownTopics.contains { topics[$0]?.backoff[peer] != nil }
    }

    package func score(_ peer: PeerNumber) -> Double {
        peers[peer]?.score.value(configuration.score) ?? 0
    }

    /// Disconnects a peer whose score is below the graylist threshold.
    ///
    /// - Returns: Whether the peer is being disconnected.
    @discardableResult
    mutating func graylistIfNeeded(_ peer: PeerNumber) -> Bool {
        guard peers[peer]?.isLeaving == false else { return true }
        guard score(peer) < configuration.score.graylistThreshold else { return false }
        peers[peer]?.isLeaving = true
        counters.graylisted += 1
        act(.disconnect(peer))
        return true
    }

    /// The connected peers, ordered by number.
    public var peerStatuses: [GossipPeerStatus] {
        peers.keys.sorted().map { number in
            GossipPeerStatus(
                peer: number, score: score(number), isOutbound: peers[number]?.isOutbound ?? false,
                topics: (peers[number]?.topics ?? []).sorted(),
                meshes: ownTopics.filter { topics[$0]?.mesh.contains(number) ?? false }.sorted(),
                deliveredCount: peers[number]?.deliveredCount ?? 0)
        }
    }

    /// The peers that messages on a topic are exchanged with; empty for a topic that is not subscribed.
    public func mesh(of topic: String) -> [PeerNumber] {
        topics[topic]?.mesh ?? []
    }

    /// The connected peers that subscribed to a topic, in order of their subscriptions.
    public func subscribers(of topic: String) -> [PeerNumber] {
        topics[topic]?.subscribers ?? []
    }

    // MARK: Own subscriptions

    /// Subscribes to a topic: announces it to all peers and grafts up to ``GossipConfiguration/meshSize`` of them. No effect if it is subscribed.
    public mutating func subscribe(to topic: String, at now: Instant) {
        guard topics[topic]?.isSubscribed != true else { return }
        topics[topic, default: GossipTopic()].isSubscribed = true
        if !ownTopics.contains(topic) { ownTopics.append(topic) }
        topics[topic]?.fanout = []
        for peer in peers.keys.sorted() { act(.send(.subscription(topic: topic, isOn: true), to: peer)) }
        maintainMesh(of: topic, at: now)
    }

    /// Unsubscribes from a topic: prunes the mesh and announces it to all peers. No effect if it is not subscribed.
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
        if topics[topic]?.isEmpty == true { topics[topic] = nil }
    }

    // MARK: The mesh

    mutating func graft(_ peer: PeerNumber, into topic: String) {
        topics[topic]?.mesh.append(peer)
        act(.send(.graft(topic: topic), to: peer))
    }

    /// Removes a peer from the mesh, or refuses its graft.
    mutating func prune(_ peer: PeerNumber, from topic: String, backoff: Duration, at now: Instant) {
        topics[topic]?.mesh.removeAll { $0 == peer }
        topics[topic]?.setBackoff(of: peer, until: now + backoff)
        act(.send(.prune(topic: topic, backoff: backoff), to: peer))
    }
}
