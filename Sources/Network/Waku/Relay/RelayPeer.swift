/// A connected peer of a relay, as operators see it.
public struct RelayPeer: Hashable, Codable, Sendable {
    public var id: String
    public var address: String?
    /// Whether the peer dialed this node.
    public var isInbound: Bool
    /// The agent version that the peer identified with; nil until it did.
    public var agent: String?
    public var protocols: [String]
    /// The pubsub topics it subscribed to, and those for which it is in this node's mesh.
    public var pubsubTopics: [String]
    public var meshes: [String]
    /// Whether it is a filter node that accepted this node's subscriptions.
    public var isFilterNode: Bool
    /// Its gossipsub score; nil for a peer without gossipsub.
    public var score: Double?
    /// Totals of this connection, on the wire.
    public var bytesReceived: Int
    public var bytesSent: Int
    public var messagesReceived: Int
    public var messagesSent: Int

    /// Whether messages are received from it.
    public var isWorking: Bool { !meshes.isEmpty || isFilterNode }

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
