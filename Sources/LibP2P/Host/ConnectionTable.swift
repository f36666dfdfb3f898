import NIOCore

/// Which connections are kept: one a peer, and not too many. Pure: the host closes what it is told to.
struct ConnectionTable<Link> {
    struct Entry {
        let link: Link
        let isInbound: Bool
        let openedAt: NIODeadline
    }

    enum Decision {
        case keep(replacing: Link?)
        case refuse(ConnectionError)
    }

    /// Two connections that were opened within this time were dialled by both sides at once.
    static var simultaneity: TimeAmount { .seconds(10) }

    private let own: PeerID
    private let limit: Int
    private(set) var entries: [PeerID: Entry] = [:]

    init(own: PeerID, limit: Int) {
        self.own = own
        self.limit = limit
    }

    /// Of two connections that both sides dialled at once, both keep the one that the peer with the lower id dialled. Otherwise the newer one is kept:
    /// whoever dials again has lost the older one.
    mutating func add(_ link: Link, to peer: PeerID, isInbound: Bool, at now: NIODeadline) -> Decision {
        guard peer != own else { return .refuse(.refused) }
        guard let existing = entries[peer] else {
            guard entries.count < limit else { return .refuse(.refused) }
            entries[peer] = Entry(link: link, isInbound: isInbound, openedAt: now)
            return .keep(replacing: nil)
        }
        let isSimultaneous = existing.isInbound != isInbound && now - existing.openedAt < Self.simultaneity
        let lowerDialled = isInbound == (peer < own)
        if isSimultaneous, !lowerDialled { return .refuse(.replaced) }
        entries[peer] = Entry(link: link, isInbound: isInbound, openedAt: now)
        return .keep(replacing: existing.link)
    }

    /// - Returns: Whether it was the one that is kept.
    mutating func remove(_ peer: PeerID, where isGone: (Link) -> Bool) -> Bool {
        guard let entry = entries[peer], isGone(entry.link) else { return false }
        entries[peer] = nil
        return true
    }
}
