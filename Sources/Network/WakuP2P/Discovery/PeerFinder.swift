import Core
import LibP2P
import Waku

/// Decides when to read node lists and which nodes to dial to reach the target number of peers. Nodes, results and time come in.
struct PeerFinder {
    struct Limits: Hashable, Sendable {
        /// The target number of peers.
        var target = 8
        /// The maximum number of known nodes. Beyond it, a further one replaces one whose last dial failed.
        var candidateCount = 500
        /// How often the lists are read while there are too few peers, and while there are enough.
        var eagerPeriod = Duration.seconds(60)
        var calmPeriod = Duration.seconds(3600)
        /// The maximum number of concurrent dials.
        var dialCount = 4
    }

    let limits: Limits
    private let own: PeerID
    /// The addresses of each node, the next one to dial first.
    private var candidates: [PeerID: [Multiaddr]] = [:]
    private var dialing: Set<PeerID> = []
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
    var listedPeers: Set<PeerID> { Set(candidates.keys) }
    var isDialing: Bool { !dialing.isEmpty }

    /// Whether to read the lists now. If so, the next reading is due one period later.
    mutating func wantsReading(peerCount: Int, at now: Instant) -> Bool {
        let period = peerCount < limits.target ? limits.eagerPeriod : limits.calmPeriod
        guard lastReading.map({ now - $0 >= period }) ?? true else { return false }
        lastReading = now
        return true
    }

    /// Adds the nodes of the lists that relay one of these shards or do not report their shards.
    ///
    /// - Parameter isComplete: Whether these are all nodes of the lists: others are no longer dialed.
    mutating func found(_ records: [NodeRecord], isComplete: Bool = false, clusterID: UInt32, shards: [UInt32]) {
        var listed: [PeerID: [Multiaddr]] = [:]
        for record in records where record.mayRelay(shards, of: clusterID) {
            let addresses = record.dialAddresses
            if let peer = addresses.first?.peerID, peer != own { listed[peer] = addresses }
        }
        if isComplete { candidates = candidates.filter { listed[$0.key] != nil } }
        for (peer, addresses) in listed {
            let known = candidates[peer]
            if known == nil, candidates.count >= limits.candidateCount {
                // A list that is too long is never read completely, so nodes that left it stay known.
                guard let failed = candidates.keys.first(where: { listed[$0] == nil && backoff.hasFailed($0) }) else { continue }
                candidates[failed] = nil
            }
            // A known node may have new addresses.
            if Set(known ?? []) != Set(addresses) { candidates[peer] = addresses }
        }
    }

    /// The nodes to dial now, in random order.
    mutating func toDial(connected: Set<PeerID>, peerCount: Int, at now: Instant) -> [Multiaddr] {
        let room = min(limits.target - peerCount, limits.dialCount) - dialing.count
        guard room > 0 else { return [] }
        let free = candidates.filter { !connected.contains($0.key) && !dialing.contains($0.key) && backoff.mayDial($0.key, at: now) }
        let chosen = free.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }.shuffled(using: &generator).prefix(room)
        for (peer, _) in chosen { dialing.insert(peer) }
        return chosen.compactMap(\.value.first)
    }

    /// A dial ended.
    ///
    /// - Parameters:
    ///   - isGood: Whether the node was reachable and is useful.
    ///   - jitter: A random number from 0 to 1.
    mutating func dialed(_ peer: PeerID, isGood: Bool, at now: Instant, jitter: Double) {
        dialing.remove(peer)
        guard !isGood else { return backoff.succeeded(peer) }
        backoff.failed(peer, at: now, jitter: jitter)
        // Another of its addresses may work.
        if let addresses = candidates[peer] { candidates[peer] = Array(addresses.dropFirst() + addresses.prefix(1)) }
    }
}

extension NodeRecord {
    /// Whether it relays one of these shards, any when there are none, or does not report its shards.
    fileprivate func mayRelay(_ shards: [UInt32], of clusterID: UInt32) -> Bool {
        guard let known = self.shards else { return true }
        return known.clusterID == clusterID && (shards.isEmpty || known.shards.contains { shards.contains(UInt32($0)) })
    }

    /// The TCP addresses, with the peer id: IPv4, then multiaddrs, then IPv6.
    var dialAddresses: [Multiaddr] {
        let peer = PeerID(.secp256k1(publicKey))
        var addresses: [Multiaddr] = []
        if let ip4, let tcp, tcp > 0, let address = try? Multiaddr([.ip4(ip4), .tcp(tcp)]) { addresses.append(address.with(peer)) }
        for bytes in multiaddrs {
            if let address = try? Multiaddr(parsing: bytes), address.endpoint != nil { addresses.append(address.withoutPeerID.with(peer)) }
        }
        if let ip6, let tcp = tcp6 ?? tcp, tcp > 0, let address = try? Multiaddr([.ip6(ip6), .tcp(tcp)]) {
            addresses.append(address.with(peer))
        }
        var seen: Set<Multiaddr> = []
        return addresses.filter { seen.insert($0).inserted }
    }
}
