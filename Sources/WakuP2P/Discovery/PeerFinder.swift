import Primitives
import LibP2P
import Waku

/// Decides when lists of nodes are read, and whom to dial, so that there are as many peers as are wanted. Nodes, results and time come in.
struct PeerFinder {
    struct Limits: Hashable, Sendable {
        /// So many peers are wanted: below, others are dialled.
        var target = 8
        var candidateCount = 500
        /// From one reading of the lists to the next, with too few peers and with enough.
        var eagerPeriod = Duration.seconds(60)
        var calmPeriod = Duration.seconds(3600)
        /// At a time.
        var dialCount = 4

        init() {}
    }

    let limits: Limits
    private let own: PeerID
    private var candidates: [PeerID: Multiaddr] = [:]
    private var dialling: Set<PeerID> = []
    private var backoff = DialBackoff()
    private var lastReading: Instant?
    private var generator: any RandomNumberGenerator & Sendable

    init(
        own: PeerID, limits: Limits = Limits(), generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.own = own
        self.limits = limits
        self.generator = generator
    }

    var candidateCount: Int { candidates.count }
    var isDialling: Bool { !dialling.isEmpty }

    /// Whether the lists are to be read now.
    mutating func wantsReading(peerCount: Int, at now: Instant) -> Bool {
        let period = peerCount < limits.target ? limits.eagerPeriod : limits.calmPeriod
        guard lastReading.map({ now - $0 >= period }) ?? true else { return false }
        lastReading = now
        return true
    }

    /// What the lists hold: those that say nothing of shards, or relay one of these.
    mutating func found(_ records: [NodeRecord], clusterID: UInt32, shards: [UInt32]) {
        for record in records {
            if let known = record.shards {
                guard known.clusterID == clusterID, shards.isEmpty || known.shards.contains(where: { shards.contains(UInt32($0)) }) else {
                    continue
                }
            }
            guard let address = record.dialAddress, let peer = address.peerID, peer != own else { continue }
            // One that is known may have moved.
            guard candidates[peer] != nil || candidates.count < limits.candidateCount else { continue }
            candidates[peer] = address
        }
    }

    /// Whom to dial now, in random order.
    mutating func toDial(connected: Set<PeerID>, peerCount: Int, at now: Instant) -> [Multiaddr] {
        let room = min(limits.target - peerCount, limits.dialCount) - dialling.count
        guard room > 0 else { return [] }
        let free = candidates.filter { !connected.contains($0.key) && !dialling.contains($0.key) && backoff.mayDial($0.key, at: now) }
        let chosen = free.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }.shuffled(using: &generator).prefix(room)
        for (peer, _) in chosen { dialling.insert(peer) }
        return chosen.map(\.value)
    }

    /// - Parameter isGood: Whether it was there, and is of use.
    mutating func dialled(_ peer: PeerID, isGood: Bool, at now: Instant, jitter: Double) {
        dialling.remove(peer)
        if isGood { backoff.succeeded(peer) } else { backoff.failed(peer, at: now, jitter: jitter) }
    }
}

extension NodeRecord {
    /// The first of its addresses that TCP reaches, with its peer id; nil when there is none.
    var dialAddress: Multiaddr? {
        let peer = PeerID(.secp256k1(publicKey))
        if let ip4, let tcp, tcp > 0, let address = try? Multiaddr([.ip4(ip4), .tcp(tcp)]) { return address.with(peer) }
        for bytes in multiaddrs {
            if let address = try? Multiaddr(parsing: bytes), address.endpoint != nil { return address.withoutPeerID.with(peer) }
        }
        if let ip6, let tcp = tcp6 ?? tcp, tcp > 0, let address = try? Multiaddr([.ip6(ip6), .tcp(tcp)]) { return address.with(peer) }
        return nil
    }
}
