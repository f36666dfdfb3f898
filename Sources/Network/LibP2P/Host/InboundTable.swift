import Core
import NIOCore

/// Decides which inbound connections are admitted and which are evicted. Pure: the host carries the decisions out.
///
///     admitted ──(secured)──▶ counted ──(another connection, this one is the least useful)──▶ evicted
///        │
///        └──(too many handshakes, another one is from a smaller block)──▶ displaced
///
/// Addresses are grouped into blocks, /24 and /64. A handshake can only displace one of a block that has more handshakes than its own, so that
/// half-open connections from a few networks do not keep others out. A connection evicts another one only once it is secured.
struct InboundTable<ID: Hashable> {
    /// How long a peer must have been idle to be evicted by another connection from its own block.
    private static var idlePeriod: TimeAmount { .seconds(60) }
    /// How long the delivery of a new message protects a peer.
    private static var creditPeriod: TimeAmount { .minutes(5) }

    enum Admission {
        case refused
        /// - Parameter displacing: A handshake to close.
        case admitted(displacing: ID?)
    }

    enum Decision {
        case refused
        /// - Parameter evicting: A connection to close.
        case kept(evicting: ID?)
    }

    private enum Phase: Equatable {
        case handshake
        case secured(PeerID)
        /// It is being closed and no longer counts.
        case leaving
    }

    private struct Entry {
        /// nil for a transport without addresses.
        let block: AddressRange?
        let isExempt: Bool
        var phase = Phase.handshake
        var standing = PeerStanding()
        /// When it was admitted, last needed, or last delivered a new message.
        var usefulAt: NIODeadline
        /// When it last delivered a new message.
        var creditedAt: NIODeadline?
        let order: Int
    }

    private let configuration: HostConfiguration
    private var entries: [ID: Entry] = [:]
    private var nextOrder = 0

    init(_ configuration: HostConfiguration) {
        self.configuration = configuration
    }

    /// nil for a connection that left.
    func block(of id: ID) -> AddressRange? { entries[id]?.block }

    /// Connections being closed included.
    var count: Int { entries.count }
    var neededCount: Int { entries.values.count { $0.standing.isNeeded } }
    var handshakeCount: Int { entries.values.count { $0.phase == .handshake } }

    // MARK: Connections

    /// A connection was accepted; nothing was read from it yet.
    mutating func admit(_ id: ID, from address: IPAddress?, at now: NIODeadline) -> Admission {
        let isExempt = address.map { address in configuration.exemptAddresses.contains { $0.contains(address) } } ?? false
        let entry = Entry(block: address?.block, isExempt: isExempt, usefulAt: now, order: nextOrder)
        let handshakes = handshakesByBlock()
        let ownCount = handshakes[entry.block, default: []].count
        if !isExempt {
            let isBlockFull = entries.values.count { $0.block == entry.block && $0.phase != .leaving } >= configuration.inboundLimitPerBlock
            guard ownCount < configuration.handshakeLimitPerBlock, !isBlockFull || leastUseful(in: entry.block, at: now) != nil else {
                return .refused
            }
        }
        var displaced: ID?
        if handshakeCount >= configuration.handshakeLimit {
            let largestBlock = handshakes.filter { $0.value.count > ownCount }.map(\.value)
                .max { ($0.count, $1[0].order) < ($1.count, $0[0].order) }
            guard let oldest = largestBlock?.first?.id else { return .refused }
            displaced = oldest
            entries[oldest]?.phase = .leaving
        }
        entries[id] = entry
        nextOrder += 1
        return .admitted(displacing: displaced)
    }

    /// Handshakes in progress by block, the oldest first, without those from exempt addresses.
    private func handshakesByBlock() -> [AddressRange?: [(id: ID, order: Int)]] {
        var blocks: [AddressRange?: [(id: ID, order: Int)]] = [:]
        for (id, entry) in entries where entry.phase == .handshake && !entry.isExempt {
            blocks[entry.block, default: []].append((id, entry.order))
        }
        return blocks.mapValues { $0.sorted { $0.order < $1.order } }
    }

    /// The handshake of a connection succeeded.
    mutating func secured(_ id: ID, as peer: PeerID, at now: NIODeadline) -> Decision {
        guard let entry = entries[id], entry.phase == .handshake else { return .refused }
        entries[id]?.usefulAt = now
        // Only one connection per peer is kept: an older one is replaced.
        let replaced = entries.filter { $0.value.phase == .secured(peer) }.keys
        for id in replaced { entries[id]?.phase = .leaving }
        let others = entries.values.filter { if case .secured = $0.phase { true } else { false } }
        var evicted: ID?
        if !entry.isExempt, others.count(where: { $0.block == entry.block && !$0.isExempt }) >= configuration.inboundLimitPerBlock {
            evicted = leastUseful(in: entry.block, at: now)
        } else if others.count >= configuration.inboundLimit {
            evicted = leastUseful(at: now)
        } else {
            entries[id]?.phase = .secured(peer)
            return .kept(evicting: nil)
        }
        guard let evicted else {
            entries[id]?.phase = .leaving
            // Its old connection stays open.
            for id in replaced { entries[id]?.phase = .secured(peer) }
            return .refused
        }
        entries[evicted]?.phase = .leaving
        entries[id]?.phase = .secured(peer)
        return .kept(evicting: evicted)
    }

    mutating func left(_ id: ID) {
        entries[id] = nil
    }

    /// Updates the usefulness of peers. Peers without an entry have none.
    mutating func rate(_ standings: [PeerID: PeerStanding], at now: NIODeadline) {
        for (id, entry) in entries {
            guard case .secured(let peer) = entry.phase else { continue }
            let standing = standings[peer] ?? PeerStanding()
            if standing.messageCount > entry.standing.messageCount {
                entries[id]?.creditedAt = now
                entries[id]?.usefulAt = now
            }
            if standing.isNeeded { entries[id]?.usefulAt = now }
            entries[id]?.standing = standing
        }
    }

    // MARK: Eviction

    private func hasCredit(_ entry: Entry, at now: NIODeadline) -> Bool {
        entry.creditedAt.map { now - $0 < Self.creditPeriod } ?? false
    }

    /// The peer of a block that has been idle for longest, if that is long enough.
    private func leastUseful(in block: AddressRange?, at now: NIODeadline) -> ID? {
        candidates(at: now).filter {
            $0.value.block == block && now - $0.value.usefulAt >= Self.idlePeriod && !hasCredit($0.value, at: now)
        }
        .min { ($0.value.usefulAt, $0.value.order) < ($1.value.usefulAt, $1.value.order) }?.key
    }

    /// The least useful peer: peers without recent messages first, then those of the block with the most connections, then the longest idle.
    private func leastUseful(at now: NIODeadline) -> ID? {
        let candidates = candidates(at: now)
        var blockSizes: [AddressRange?: Int] = [:]
        for entry in entries.values { if case .secured = entry.phase { blockSizes[entry.block, default: 0] += 1 } }
        func rank(_ entry: Entry) -> (Int, Int, NIODeadline, Int) {
            (hasCredit(entry, at: now) ? 1 : 0, -blockSizes[entry.block, default: 0], entry.usefulAt, entry.order)
        }
        return candidates.min { rank($0.value) < rank($1.value) }?.key
    }

    /// The peers that may be evicted: neither exempt, nor needed, nor among the quarter with the most new messages. Limiting that protection to a
    /// quarter keeps peers from securing all places by publishing.
    private func candidates(at now: NIODeadline) -> [ID: Entry] {
        let idle = entries.filter { _, entry in
            guard case .secured = entry.phase else { return false }
            return !entry.isExempt && !entry.standing.isNeeded
        }
        let credited = idle.filter { hasCredit($0.value, at: now) }
        let best = credited.sorted {
            ($0.value.standing.messageCount, -$0.value.order) > ($1.value.standing.messageCount, -$1.value.order)
        }.prefix(max(1, configuration.inboundLimit / 4))
        let protected = Set(best.map(\.key))
        return idle.filter { !protected.contains($0.key) }
    }

    /// The connections to close so that all peers together use at most `limit` bytes: the least useful first, among these the largest users.
    ///
    /// - Parameters:
    ///   - shared: The memory of data that waits for several peers.
    ///   - waiting: How much of it waits for each peer.
    ///   - held: The other memory that a peer uses, in bytes. Peers that use little are kept, since closing them frees nothing.
    mutating func exceeding(
        _ limit: Int, shared: Int, waiting: [PeerID: Int], at now: NIODeadline, held: (PeerID) -> Int
    ) -> [ID] {
        typealias Holder = (id: ID, worth: Int, byteCount: Int)
        var holders: [Holder] = []
        var total = shared
        for (id, entry) in entries {
            guard case .secured(let peer) = entry.phase else { continue }
            let own = held(peer)
            total += own
            let byteCount = own + waiting[peer, default: 0]
            let worth = entry.isExempt ? 3 : entry.standing.isNeeded ? 2 : hasCredit(entry, at: now) ? 1 : 0
            if byteCount >= Self.negligibleByteCount { holders.append((id, worth, byteCount)) }
        }
        var victims: [ID] = []
        for holder in holders.sorted(by: { ($0.worth, -$0.byteCount) < ($1.worth, -$1.byteCount) }) where total > limit {
            victims.append(holder.id)
            entries[holder.id]?.phase = .leaving
            total -= holder.byteCount
        }
        return victims
    }

    private static var negligibleByteCount: Int { 16 * 1024 }
}
