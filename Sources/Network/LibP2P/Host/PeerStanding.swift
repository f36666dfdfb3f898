/// The usefulness of a connected peer, reported by the protocols above the host. The least useful peers are disconnected when there are too
/// many.
public struct PeerStanding: Hashable, Sendable {
    /// Whether a protocol needs the peer at present, for example because it is in a gossip mesh. Its connection is then not closed in favor of
    /// others, and among the last to be closed when memory runs out.
    public var isNeeded: Bool
    /// The number of new and valid messages that the peer delivered since it connected. An increase makes the peer count as useful for 5 minutes.
    public var messageCount: Int

    /// The defaults are the standing of a peer that no protocol has reported.
    public init(isNeeded: Bool = false, messageCount: Int = 0) {
        self.isNeeded = isNeeded
        self.messageCount = messageCount
    }
}
