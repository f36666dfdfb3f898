import Core
import LibP2P
import Waku

/// The filter nodes that this node subscribes at, and the time since which messages may be lost because one of them stopped sending.
struct FilterPeers {
    /// The number of pairs of pubsub topic and content topic that nodes accept from one client.
    private static let criteriaLimit = 1000

    /// The combined state of all subscriptions.
    struct Standing: Hashable {
        /// Whether a node accepted this node's own topics.
        var isAccepted = false
        /// The latest proof that a subscription works.
        var provenUntil: Moment?
        /// A subscription ended or was forgotten by its node: messages since its last proof may be lost.
        var gapFrom: Moment?
        /// Topics were added to a subscription that the node may have forgotten just before, which cannot be detected afterwards.
        var uncertainFrom: Moment?
    }

    private struct Peer {
        /// The connection over which the subscription was made.
        let connection: ObjectIdentifier
        var subscription: FilterSubscription
    }

    private let ownTopics: [ContentTopic]
    private let pubsubTopicCount: Int
    private let timing: FilterTiming
    /// The maximum number of content topics that a node accepts for each pubsub topic, the own ones included. Nodes count all topics of a request
    /// towards their limit, also those that are subscribed already: there must be room for the own topics that each request repeats.
    let topicLimit: Int
    /// The same without the places of this node's own topics.
    var watchedLimit: Int { max(0, topicLimit - ownTopics.count) }
    private var peers: [PeerID: Peer] = [:]
    private var gapFrom: Moment?
    private var uncertainFrom: Moment?

    /// - Parameter ownTopics: The topics of registrations and requests, part of every subscribe request.
    init(pubsubTopicCount: Int, ownTopics: [ContentTopic] = [], timing: FilterTiming = FilterTiming()) {
        self.pubsubTopicCount = pubsubTopicCount
        // At most half of a request, to leave room for other topics.
        self.ownTopics = Array(ownTopics.prefix(FilterSubscribeRequest.maximumContentTopicCount / 2))
        self.timing = timing
        topicLimit = (Self.criteriaLimit - self.ownTopics.count) / max(1, pubsubTopicCount)
    }

    /// The nodes that accepted a subscription.
    var accepted: Set<PeerID> { Set(peers.filter { $0.value.subscription.proven != nil }.keys) }

    /// Whether a node pushes messages on all of these.
    func areAccepted(_ topics: [ContentTopic]) -> Bool { peers.values.contains { $0.subscription.hasAccepted(topics) } }

    func isSubscribed(at peer: PeerID) -> Bool { peers[peer]?.subscription.topics.isEmpty == false }

    /// All topics that were sent to any node.
    var topics: Set<ContentTopic> { peers.values.reduce(into: []) { $0.formUnion($1.subscription.topics) } }

    /// Starts a subscription over a connection.
    ///
    /// - Returns: false when there is one over this connection already.
    mutating func begin(_ peer: PeerID, over connection: ObjectIdentifier, at now: Instant) -> Bool {
        guard peers[peer]?.connection != connection else { return false }
        noteGap(of: peer)
        peers[peer] = Peer(
            connection: connection,
            subscription: FilterSubscription(
                ownTopics: ownTopics, pubsubTopicCount: pubsubTopicCount, topicLimit: topicLimit, timing: timing, at: now))
        return true
    }

    /// The next action at a node; nil when its subscription is over another connection.
    mutating func next(
        _ peer: PeerID, over connection: ObjectIdentifier, wanted: [ContentTopic], dropped: Set<ContentTopic> = [], at now: Instant
    ) -> FilterSubscription.Action? {
        guard peers[peer]?.connection == connection else { return nil }
        return peers[peer]?.subscription.next(wanted: wanted, dropped: dropped, at: now)
    }

    /// The node accepted the request.
    ///
    /// - Returns: The topics that were not subscribed at any node before, without the own ones: earlier messages on them were not received.
    mutating func succeeded(
        _ request: FilterSubscription.Request, _ peer: PeerID, over connection: ObjectIdentifier, sent: Moment, at now: Instant
    ) -> [ContentTopic] {
        guard peers[peer]?.connection == connection else { return [] }
        switch request {
        case .ping:
            peers[peer]?.subscription.pinged(sent: sent, at: now)
            return []
        case .unsubscribe:
            peers[peer]?.subscription.unsubscribed(sent: sent)
            return []
        case .subscribe(let part):
            if let uncertain = peers[peer]?.subscription.subscribed(sent: sent) { Self.note(uncertain, in: &uncertainFrom) }
            let others = peers.lazy.filter { $0.key != peer && $0.value.subscription.proven != nil }.map(\.value.subscription)
            return part.filter { topic in !ownTopics.contains(topic) && !others.contains { $0.topics.contains(topic) } }
        }
    }

    /// The node refused the request because of its rate limit, or has no room for more.
    mutating func refusedForNow(
        _ request: FilterSubscription.Request, _ peer: PeerID, over connection: ObjectIdentifier, sent: Moment, at now: Instant
    ) {
        guard peers[peer]?.connection == connection else { return }
        peers[peer]?.subscription.refusedForNow(request, sent: sent.instant, at: now)
    }

    /// The node does not know the subscription.
    mutating func forgotten(_ peer: PeerID, over connection: ObjectIdentifier, at now: Instant) {
        guard peers[peer]?.connection == connection else { return }
        noteGap(of: peer)
        peers[peer]?.subscription.forgotten(at: now)
    }

    /// The node sent a message.
    mutating func pushed(by peer: PeerID, on topic: ContentTopic, at moment: Moment) {
        peers[peer]?.subscription.pushed(on: topic, at: moment)
    }

    /// Ends the subscription over a connection. Ignored when there is one over a newer connection.
    mutating func end(_ peer: PeerID, over connection: ObjectIdentifier) {
        guard peers[peer]?.connection == connection else { return }
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

    /// The current state. Each gap is reported once, when a node accepted this node's topics again: only then are all later messages received,
    /// so that a store query covers the whole gap.
    mutating func takeStanding() -> Standing {
        let proofs = peers.values.compactMap(\.subscription.proven)
        guard let latest = proofs.max(by: { $0.instant < $1.instant }) else { return Standing() }
        defer { (gapFrom, uncertainFrom) = (nil, nil) }
        return Standing(isAccepted: true, provenUntil: latest, gapFrom: gapFrom, uncertainFrom: uncertainFrom)
    }
}
