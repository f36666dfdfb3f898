/// What a connected peer is good for, as the protocols above tell the host: the least useful ones are disconnected when there are too many.
public struct PeerStanding: Hashable, Sendable {
    /// Whether a protocol needs it at the moment: it is in a gossip mesh.
    public var isNeeded: Bool
    /// New and valid messages that it brought, since it was connected.
    public var messageCount: Int

    public init(isNeeded: Bool = false, messageCount: Int = 0) {
        self.isNeeded = isNeeded
        self.messageCount = messageCount
    }
}
