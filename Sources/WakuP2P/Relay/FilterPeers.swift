import Primitives
import LibP2P
import Waku

/// The filter nodes that are asked for messages, and since when messages may be lost because one of them stopped sending them.
struct FilterPeers {
    /// So many pairs of pubsub topic and content topic nodes keep for one client.
    private static let criteriaLimit = 1000

    /// How far the filter nodes were listened to.
    struct Standing: Hashable {
        /// Whether a node has taken this node's own topics.
        var isAccepted = false
        /// The latest proof that a subscription works.
        var provenUntil: Moment?
        /// A subscription ended, or a node has forgotten it: messages since its last proof may be lost.
        var gapFrom: Moment?
        /// Subscriptions were added to, and may have been forgotten right before: nothing points to that, but it would not show.
        var uncertainFrom: Moment?
    }

    private struct Peer {
        /// The connection over which it was told.
        let life: ObjectIdentifier
        var subscription: FilterSubscription
    }

    private let ownTopics: [ContentTopic]
    private let pubsubTopicCount: Int
    private let timing: FilterTiming
    /// For each pubsub topic.
    let topicLimit: Int
    private var peers: [PeerID: Peer] = [:]
    private var gapFrom: Moment?
    private var uncertainFrom: Moment?

    /// - Parameter ownTopics: Those of registrations and requests: named in every subscription.
    init(pubsubTopicCount: Int, ownTopics: [ContentTopic] = [], timing: FilterTiming = FilterTiming()) {
        self.pubsubTopicCount = pubsubTopicCount
        // Beyond what a request takes there would be no room for others.
        self.ownTopics = Array(ownTopics.prefix(FilterSubscribeRequest.maximumContentTopicCount / 2))
        self.timing = timing
        topicLimit = Self.criteriaLimit / max(1, pubsubTopicCount)
    }

    /// Those that took what they were told.
    var accepted: Set<PeerID> { Set(peers.filter { $0.value.subscription.proven != nil }.keys) }

    func isAsked(_ peer: PeerID) -> Bool { peers[peer]?.subscription.topics.isEmpty == false }

    /// - Returns: false when it is being told over this connection already.
    mutating func begin(_ peer: PeerID, over life: ObjectIdentifier, at now: Instant) -> Bool {
        guard peers[peer]?.life != life else { return false }
        noteGap(of: peer)
        peers[peer] = Peer(
            life: life,
            subscription: FilterSubscription(
                ownTopics: ownTopics, pubsubTopicCount: pubsubTopicCount, topicLimit: topicLimit, timing: timing, at: now))
        return true
    }

    /// What to ask it next; nil when it is told over another connection.
    mutating func next(
        _ peer: PeerID, over life: ObjectIdentifier, wanted: [ContentTopic], at now: Instant
    ) -> FilterSubscription.Action? {
        guard peers[peer]?.life == life else { return nil }
        return peers[peer]?.subscription.next(wanted: wanted, at: now)
    }

    /// The node took the request.
    /// - Returns: The topics that no node was subscribed to before, without the own ones: what came on them a moment ago was not heard.
    mutating func succeeded(
        _ request: FilterSubscription.Request, _ peer: PeerID, over life: ObjectIdentifier, sent: Moment, at now: Instant
    ) -> [ContentTopic] {
        guard peers[peer]?.life == life else { return [] }
        switch request {
        case .ping:
            peers[peer]?.subscription.pinged(sent: sent, at: now)
            return []
        case .subscribe(let part):
            if let uncertain = peers[peer]?.subscription.subscribed(sent: sent) { Self.note(uncertain, in: &uncertainFrom) }
            let others = peers.lazy.filter { $0.key != peer && $0.value.subscription.proven != nil }.map(\.value.subscription)
            return part.filter { topic in !ownTopics.contains(topic) && !others.contains { $0.topics.contains(topic) } }
        }
    }

    /// It would not be asked this now.
    mutating func askedTooOften(
        _ request: FilterSubscription.Request, _ peer: PeerID, over life: ObjectIdentifier, sent: Moment, at now: Instant
    ) {
        guard peers[peer]?.life == life else { return }
        peers[peer]?.subscription.askedTooOften(request, sent: sent.instant, at: now)
    }

    /// It knows no subscription of this client.
    mutating func forgotten(_ peer: PeerID, over life: ObjectIdentifier, at now: Instant) {
        guard peers[peer]?.life == life else { return }
        noteGap(of: peer)
        peers[peer]?.subscription.forgotten(at: now)
    }

    /// It sent a message.
    mutating func pushed(by peer: PeerID, on topic: ContentTopic, at moment: Moment) {
        peers[peer]?.subscription.pushed(on: topic, at: moment)
    }

    /// What ended over a connection says nothing of the next one.
    mutating func end(_ peer: PeerID, over life: ObjectIdentifier) {
        guard peers[peer]?.life == life else { return }
        noteGap(of: peer)
        peers[peer] = nil
    }

    // MARK: Gaps

    private mutating func noteGap(of peer: PeerID) {
        if let proven = peers[peer]?.subscription.proven { Self.note(proven, in: &gapFrom) }
    }

    private static func note(_ moment: Moment, in earliest: inout Moment?) {
        earliest = earliest.map { .earliest($0, moment) } ?? moment
    }

    /// Each gap is told once, when a node has this node's topics again: from then on messages come, so that what a store has by then is all
    /// there is to be caught up.
    mutating func takeStanding() -> Standing {
        let proofs = peers.values.compactMap(\.subscription.proven)
        guard let latest = proofs.max(by: { $0.instant < $1.instant }) else { return Standing() }
        defer { (gapFrom, uncertainFrom) = (nil, nil) }
        return Standing(isAccepted: true, provenUntil: latest, gapFrom: gapFrom, uncertainFrom: uncertainFrom)
    }
}
