/// A peer, as whoever holds the connections numbers them: the same one the same as long as ``GossipSub/remembers(_:)`` it.
public struct PeerNumber: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static func < (left: PeerNumber, right: PeerNumber) -> Bool { left.rawValue < right.rawValue }
    public var description: String { "\(rawValue)" }
}

/// What a peer understands, by the protocol that was agreed on.
public enum GossipVersion: Hashable, Comparable, Sendable {
    case v11
    /// With IDONTWANT.
    case v12

    /// Waku's own id stands for 1.1: nwaku and go-waku send no IDONTWANT on it.
    public static let wakuRelay = "/vac/waku/relay/2.0.0"

    /// nil when it is no gossip.
    public init?(protocolID: String) {
        switch protocolID {
        case Self.wakuRelay, "/meshsub/1.0.0", "/meshsub/1.1.0": self = .v11
        case "/meshsub/1.2.0": self = .v12
        default: return nil
        }
    }
}

/// What is known of a connected peer.
struct GossipPeer {
    var version: GossipVersion
    /// Whether this node dialled it.
    let isOutbound: Bool
    var topics: Set<String> = []
    var score: PeerScore
    /// New and valid messages that it was the first to bring.
    var deliveredCount = 0
    /// Once it was told to go, nothing more is heard from it.
    var isLeaving = false

    // Since the last heartbeat.
    var ihaveCount = 0
    var askedCount = 0
    /// Until which heartbeat it does not want these.
    var unwanted: [MessageID: Int] = [:]

    static let unwantedLimit = 1000

    mutating func beginHeartbeat(_ number: Int) {
        ihaveCount = 0
        askedCount = 0
        if !unwanted.isEmpty { unwanted = unwanted.filter { $0.value > number } }
    }
}

/// What an operator sees of a peer.
public struct GossipPeerStatus: Hashable, Sendable {
    public let peer: PeerNumber
    public let score: Double
    public let isOutbound: Bool
    /// Sorted.
    public let topics: [String]
    /// In whose mesh it is, sorted.
    public let meshes: [String]
    /// New and valid messages that it was the first to bring, since it was connected.
    public let deliveredCount: Int
}

/// What is counted.
public struct GossipCounters: Hashable, Sendable {
    /// Messages in frames, whatever became of them.
    public var received = 0
    /// On topics that this node is not subscribed to.
    public var foreign = 0
    public var duplicates = 0
    public var accepted = 0
    public var ignored = 0
    /// Invalid ones, authored ones too.
    public var rejected = 0
    /// For want of room while others were validated.
    public var overloaded = 0
    public var published = 0
    /// Copies sent on, own ones too.
    public var forwarded = 0
    public var replies = 0
    public var announcedIDs = 0
    public var askedIDs = 0
    public var brokenPromises = 0
    public var graftFloods = 0
    public var graylisted = 0

    public init() {}
}
