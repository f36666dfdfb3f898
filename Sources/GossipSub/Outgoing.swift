/// What goes to a peer. What each kind is worth when a peer does not keep up, ``OutboundQueue`` decides.
public enum Outgoing: Sendable {
    case subscription(topic: String, isOn: Bool)
    case graft(topic: String)
    /// - Parameter backoff: For which the peer shall not graft.
    case prune(topic: String, backoff: Duration)
    case message(GossipMessage)
    /// That the peer asked for.
    case reply(GossipMessage)
    case ihave(topic: String, ids: [MessageID])
    case iwant([MessageID])
    case idontwant([MessageID])
}

/// What happened to what was put into a queue.
public enum Enqueued: Hashable, Sendable {
    case kept
    /// It, or something of less worth in its stead.
    case dropped
    /// The peer reads nothing: not even what keeps the two in step has room. It must go.
    case overflow
}
