/// The usefulness of a connected peer, reported by the protocols above the host. The least useful peers are disconnected when there are too
/// many.
public struct PeerStanding: Hashable, Sendable {
    /// Whether a protocol needs the peer at present, for example because it is in a gossip mesh.
    public var isNeeded: Bool
    /// New and valid messages that the peer delivered since it connected.
    public var messageCount: Int

    public init(isNeeded: Bool = false, messageCount: Int = 0) {
        self.isNeeded = isNeeded
        self.messageCount = messageCount
    }
}
