/// A change of a host's peers.
public enum HostEvent: Sendable {
    /// A connection was secured. The peer's protocols are not known yet.
    case connected(Connection)
    /// The peer reported its protocols, for the first time or after a change.
    case identified(PeerID, PeerInfo)
    /// An identify request to the peer failed. To a peer that this node dialed it is repeated each minute, unless the peer does not support it.
    case notIdentified(PeerID, any Error)
    /// The connection to the peer ended, for this reason. Also reported when another connection to the same peer replaces it.
    case disconnected(PeerID, any Error)
}

/// A connected peer.
public struct PeerStatus: Sendable {
    /// The connection, for its address and direction.
    public let connection: Connection
    /// The peer's identify information; nil until it is identified.
    public let info: PeerInfo?
}
