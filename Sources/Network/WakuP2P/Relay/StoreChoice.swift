import LibP2P
import Waku

/// Chooses the peers whose stores are asked for missed messages on a pubsub topic: each configured one, and two others if there are lists of
/// nodes. Each has a place, by which ``StoreCatchUp`` names its walk.
///
/// A store that has just been started, or was not connected to others, lacks messages that another one has.
struct StoreChoice {
    /// The number of found peers that are asked.
    static let foundCount = 2

    /// The configured peer of each place; nil for a found one.
    private let places: [PeerID?]
    private let configured: Set<PeerID>
    /// The found peer that was chosen for the walk at each place.
    private var chosen: [PeerID?]

    init(configured peers: [PeerID], findsPeers: Bool) {
        configured = Set(peers)
        let found = findsPeers || peers.isEmpty ? Self.foundCount : 0
        places = configured.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) } + Array(repeating: nil, count: found)
        chosen = Array(repeating: nil, count: places.count)
    }

    var count: Int { places.count }

    /// The peers to ask for one page, one after the other until one answers: another one may have to continue a walk.
    ///
    /// - Parameter stores: The connected peers with a store, in random order.
    mutating func candidates(at place: Int, among stores: [PeerID]) -> [PeerID] {
        if let peer = places[place] { return stores.contains(peer) ? [peer] : [] }
        let current = chosen[place]
        let free = stores.filter { !configured.contains($0) && ($0 == current || !chosen.contains($0)) }
        let candidates = free.filter { $0 == current } + free.filter { $0 != current }
        chosen[place] = candidates.first
        return candidates
    }

    /// A peer answered. The walk continues there.
    mutating func answered(_ peer: PeerID, at place: Int) {
        if places[place] == nil { chosen[place] = peer }
    }

    /// The walk is complete: the next one may choose another peer.
    mutating func ended(at place: Int) { chosen[place] = nil }

    /// Whether a peer's store may have messages on a pubsub topic. Nodes store the messages of their shards.
    ///
    /// - Parameters:
    ///   - metadata: The peer's answer; nil if it is not known.
    ///   - subscriptions: The topics that the peer gossips on.
    static func mayStore(_ topic: PubsubTopic, _ metadata: WakuMetadata?, subscriptions: [String]) -> Bool {
        guard let metadata, let own = topic.relayShard, metadata.clusterID == UInt32(own.cluster), !metadata.shards.isEmpty
        else { return true }
        return metadata.shards.contains(UInt32(own.shard)) || subscriptions.contains(topic.rawValue)
    }

    /// Whether a configured peer may still turn out to have a store.
    ///
    /// - Parameter identified: The connected peers whose protocols are known.
    func isExpected(at place: Int, identified: Set<PeerID>) -> Bool {
        places[place].map { !identified.contains($0) } ?? false
    }
}
