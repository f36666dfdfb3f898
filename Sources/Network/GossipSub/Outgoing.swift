/// An item to send to a peer. ``OutboundQueue`` has the priorities of the kinds.
public enum Outgoing: Sendable {
    case subscription(topic: String, isOn: Bool)
    case graft(topic: String)
    /// - Parameters:
    ///   - backoff: How long the peer must not graft.
    case prune(topic: String, backoff: Duration)
    case message(GossipMessage)
    /// A message that the peer requested.
    case reply(GossipMessage)
    case ihave(topic: String, ids: [MessageID])
    case iwant([MessageID])
    case idontwant([MessageID])
}

/// The result of appending an item to a queue.
public enum Enqueued: Hashable, Sendable {
    case kept
    /// The item, or one of lower priority, was dropped.
    case dropped
    /// The control queue is full: the peer must be disconnected.
    case overflow
}
