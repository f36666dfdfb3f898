/// A connected peer of a relay, as operators see it.
public struct RelayPeer: Hashable, Codable, Sendable {
    /// The peer id in its text form.
    public var id: String
    /// The multiaddr of the connection; nil for a transport without addresses.
    public var address: String?
    /// Whether the peer dialed this node.
    public var isInbound: Bool
    /// The program and version that the peer reported; nil until it did. The peer chooses it freely: escape it before display.
    public var agent: String?
    /// The ids of the protocols that the peer serves, sorted.
    public var protocols: [String]
    /// The pubsub topics that the peer subscribed to.
    public var pubsubTopics: [String]
    /// The pubsub topics for which the peer is in this node's mesh.
    public var meshes: [String]
    /// Whether it is a filter node that accepted this node's subscriptions.
    public var isFilterNode: Bool
    /// Its gossipsub score; nil for a peer without gossipsub.
    public var score: Double?
    /// Bytes received on the connection, as on the wire.
    public var bytesReceived: Int
    /// Bytes sent on the connection, as on the wire.
    public var bytesSent: Int
    /// Gossiped messages received from the peer, duplicates included.
    public var messagesReceived: Int
    /// Gossiped messages queued for the peer.
    public var messagesSent: Int

    /// Whether it sends its messages at once: a peer outside of the meshes announces some of them first.
    public var isWorking: Bool { !meshes.isEmpty || isFilterNode }

    /// The defaults are those of a peer without gossip or traffic.
    public init(
        id: String, address: String?, isInbound: Bool, agent: String?, protocols: [String] = [], pubsubTopics: [String] = [],
        meshes: [String] = [], isFilterNode: Bool = false, score: Double? = nil, bytesReceived: Int = 0, bytesSent: Int = 0,
        messagesReceived: Int = 0, messagesSent: Int = 0
    ) {
        self.id = id
        self.address = address
        self.isInbound = isInbound
        self.agent = agent
        self.protocols = protocols
        self.pubsubTopics = pubsubTopics
        self.meshes = meshes
        self.isFilterNode = isFilterNode
        self.score = score
        self.bytesReceived = bytesReceived
        self.bytesSent = bytesSent
        self.messagesReceived = messagesReceived
        self.messagesSent = messagesSent
    }
}
