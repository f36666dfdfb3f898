/// What happens to a host's peers.
public enum HostEvent: Sendable {
    /// A connection is secured; what the peer speaks is not known yet.
    case connected(Connection)
    /// The peer said what it speaks, for the first time or anew.
    case identified(PeerID, PeerInfo)
    /// The peer did not say it.
    case notIdentified(PeerID, any Error)
    /// Its connection ended, with all streams.
    case disconnected(PeerID, any Error)
}

/// A peer at this moment.
public struct PeerStatus: Sendable {
    public let connection: Connection
    /// nil until it is identified.
    public let info: PeerInfo?
}
