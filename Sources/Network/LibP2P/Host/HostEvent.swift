/// A change of a host's peers.
public enum HostEvent: Sendable {
    /// A connection was secured. The peer's protocols are not known yet.
    case connected(Connection)
    /// The peer reported its protocols, for the first time or after a change.
    case identified(PeerID, PeerInfo)
    /// The identify request to the peer failed.
    case notIdentified(PeerID, any Error)
    /// The connection to the peer ended.
    case disconnected(PeerID, any Error)
}

/// A connected peer.
public struct PeerStatus: Sendable {
    public let connection: Connection
    /// nil until the peer is identified.
    public let info: PeerInfo?
}
