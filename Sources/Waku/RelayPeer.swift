/// A peer of a relay, as an operator sees it.
public struct RelayPeer: Hashable, Codable, Sendable {
    public var id: String
    public var address: String?
    /// Whether it dialled this node.
    public var isInbound: Bool
    /// What it says that it is; nil until it did.
    public var agent: String?
    public var protocols: [String]
    /// On which it gossips, and those of them in whose mesh it is.
    public var pubsubTopics: [String]
    public var meshes: [String]
    /// Whether it took this node's topics, and sends what comes on them.
    public var isFilterNode: Bool
    /// What is thought of it; nil when it does not gossip.
    public var score: Double?
    /// On the wire.
    public var bytesReceived: Int
    public var bytesSent: Int
    public var messagesReceived: Int
    public var messagesSent: Int

    /// Whether messages come by it.
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
