import LibP2P
import Waku

/// The filter nodes that are asked for messages, and which topics each was told.
struct FilterPeers {
    /// So many nodes keep for one client.
    static let topicLimit = 1000

    private struct Peer {
        /// The connection over which it was told.
        let life: ObjectIdentifier
        var topics: Set<ContentTopic> = []
        var hasAccepted = false
    }

    private var peers: [PeerID: Peer] = [:]

    /// Those that took what they were told.
    var accepted: Set<PeerID> { Set(peers.filter(\.value.hasAccepted).keys) }

    func isAsked(_ peer: PeerID) -> Bool { peers[peer]?.topics.isEmpty == false }

    mutating func begin(_ peer: PeerID, over life: ObjectIdentifier) {
        peers[peer] = Peer(life: life)
    }

    /// Of the wanted topics those that it was not told yet, as many as it has room for. From now on they count as told: what it sends for
    /// them may come before its answer.
    mutating func tell(_ peer: PeerID, over life: ObjectIdentifier, wanted: [ContentTopic]) -> [ContentTopic] {
        guard let known = peers[peer], known.life == life else { return [] }
        let new = wanted.filter { !known.topics.contains($0) }.prefix(Self.topicLimit - known.topics.count)
        peers[peer]?.topics.formUnion(new)
        return Array(new)
    }

    mutating func accepted(_ peer: PeerID, over life: ObjectIdentifier) {
        guard peers[peer]?.life == life else { return }
        peers[peer]?.hasAccepted = true
    }

    /// What ended over a connection says nothing of the next one.
    mutating func end(_ peer: PeerID, over life: ObjectIdentifier) {
        if peers[peer]?.life == life { peers[peer] = nil }
    }
}
