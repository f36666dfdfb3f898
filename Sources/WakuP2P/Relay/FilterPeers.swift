import LibP2P
import Waku

/// The filter nodes that are asked for messages, which topics each was told, and when it may be told more.
struct FilterPeers {
    /// So many pairs of pubsub topic and content topic nodes keep for one client.
    private static let criteriaLimit = 1000
    /// Between two requests on average: nwaku takes 30 a minute of a peer, pings among them, and as many at once.
    private static let pace = Duration.milliseconds(2500)
    /// After a node said that it is asked too often.
    private static let rest = Duration.seconds(15)

    private struct Peer {
        /// The connection over which it was told.
        let life: ObjectIdentifier
        var topics: Set<ContentTopic> = []
        var hasAccepted = false
        var mayBeToldAt: Duration
    }

    private let pubsubTopicCount: Int
    /// For each pubsub topic.
    let topicLimit: Int
    private var peers: [PeerID: Peer] = [:]

    init(pubsubTopicCount: Int) {
        self.pubsubTopicCount = pubsubTopicCount
        topicLimit = Self.criteriaLimit / max(1, pubsubTopicCount)
    }

    /// Those that took what they were told.
    var accepted: Set<PeerID> { Set(peers.filter(\.value.hasAccepted).keys) }

    func isAsked(_ peer: PeerID) -> Bool { peers[peer]?.topics.isEmpty == false }

    /// - Returns: false when it is being told over this connection already.
    mutating func begin(_ peer: PeerID, over life: ObjectIdentifier, at now: Duration) -> Bool {
        guard peers[peer]?.life != life else { return false }
        peers[peer] = Peer(life: life, mayBeToldAt: now)
        return true
    }

    /// Of the wanted topics those that it was not told yet, as many as it has room for, in parts of a request each; none before its time. From
    /// now on they count as told: what it sends for them may come before its answer.
    mutating func tell(_ peer: PeerID, over life: ObjectIdentifier, wanted: [ContentTopic], at now: Duration) -> [[ContentTopic]] {
        guard let known = peers[peer], known.life == life, known.mayBeToldAt <= now else { return [] }
        let new = wanted.filter { !known.topics.contains($0) }.prefix(topicLimit - known.topics.count)
        let size = FilterSubscribeRequest.maximumContentTopicCount
        let parts = stride(from: 0, to: new.count, by: size).map { Array(new[$0..<min($0 + size, new.count)]) }
        peers[peer]?.topics.formUnion(new)
        peers[peer]?.mayBeToldAt = now + Self.pace * (parts.count * pubsubTopicCount)
        return parts
    }

    mutating func accepted(_ peer: PeerID, over life: ObjectIdentifier) {
        guard peers[peer]?.life == life else { return }
        peers[peer]?.hasAccepted = true
    }

    /// It would not be told these for now.
    mutating func postpone(_ parts: some Sequence<[ContentTopic]>, _ peer: PeerID, over life: ObjectIdentifier, at now: Duration) {
        guard peers[peer]?.life == life else { return }
        for part in parts { peers[peer]?.topics.subtract(part) }
        peers[peer]?.mayBeToldAt = now + Self.rest
    }

    /// What ended over a connection says nothing of the next one.
    mutating func end(_ peer: PeerID, over life: ObjectIdentifier) {
        if peers[peer]?.life == life { peers[peer] = nil }
    }
}
