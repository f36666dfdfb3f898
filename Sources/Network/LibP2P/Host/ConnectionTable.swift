import NIOCore

/// Decides which connections are kept: one per peer, up to a limit. Pure: the host carries the decisions out.
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

    /// Connections in both directions within this time count as dialed simultaneously.
    static var simultaneity: TimeAmount { .seconds(10) }

    private let own: PeerID
    private let limit: Int
    private(set) var entries: [PeerID: Entry] = [:]

    init(own: PeerID, limit: Int) {
        self.own = own
        self.limit = limit
    }

    /// Of two simultaneously dialed connections, both sides keep the one that the peer with the lower id dialed. Otherwise the newer connection is
    /// kept, since a peer that dials again has lost the older one.
    mutating func add(_ link: Link, to peer: PeerID, isInbound: Bool, at now: NIODeadline) -> Decision {
        if let refusal = refusal(of: peer, isInbound: isInbound, at: now) { return .refuse(refusal) }
        let existing = entries.updateValue(Entry(link: link, isInbound: isInbound, openedAt: now), forKey: peer)
        return .keep(replacing: existing?.link)
    }

    /// - Returns: Why ``add(_:to:isInbound:at:)`` would refuse a connection, or nil.
    func refusal(of peer: PeerID, isInbound: Bool, at now: NIODeadline) -> ConnectionError? {
        guard peer != own else { return .refused }
        guard let existing = entries[peer] else { return entries.count < limit ? nil : .refused }
        let isSimultaneous = existing.isInbound != isInbound && now - existing.openedAt < Self.simultaneity
        let lowerDialed = isInbound == (peer < own)
        return isSimultaneous && !lowerDialed ? .replaced : nil
    }

    /// - Returns: Whether the connection was the kept one.
    mutating func remove(_ peer: PeerID, where isGone: (Link) -> Bool) -> Bool {
        guard let entry = entries[peer], isGone(entry.link) else { return false }
        entries[peer] = nil
        return true
    }
}
