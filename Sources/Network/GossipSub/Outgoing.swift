/// An item to send to a peer. ``OutboundQueue`` defines the priorities of the kinds.
public enum Outgoing: Sendable {
    /// This node subscribed to a topic, or unsubscribed from it.
    case subscription(topic: String, isOn: Bool)
    /// This node added the peer to its mesh.
    case graft(topic: String)
    /// This node removed the peer from its mesh, or refuses its graft. The peer must not graft again during the backoff.
    case prune(topic: String, backoff: Duration)
    /// A message published or forwarded by this node.
    case message(GossipMessage)
    /// A message that the peer requested by IWANT.
    case reply(GossipMessage)
    /// The ids of cached messages, which the peer may request.
    case ihave(topic: String, ids: [MessageID])
    /// A request for messages that the peer announced.
    case iwant([MessageID])
    /// The ids of messages that this node received already, so that the peer need not send them.
    case idontwant([MessageID])
}

/// The result of appending an item to a queue.
public enum Enqueued: Hashable, Sendable {
    /// The item was appended.
    case kept
    /// The item, or one of lower priority, was dropped.
    case dropped
    /// The control queue is full: the peer must be disconnected.
    case overflow
}
