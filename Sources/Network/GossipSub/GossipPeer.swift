/// A number that the driver assigns to a peer. A peer keeps its number as long as ``GossipSubRouter/remembers(_:)`` it.
public struct PeerNumber: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static func < (left: PeerNumber, right: PeerNumber) -> Bool { left.rawValue < right.rawValue }
    public var description: String { "\(rawValue)" }
}

/// The protocol version of a peer, by the negotiated protocol id.
public enum GossipVersion: Hashable, Comparable, Sendable {
    case v11
    /// With IDONTWANT.
    case v12

    /// Waku's own protocol id. It implies version 1.1: nwaku and go-waku send no IDONTWANT on it.
    public static let wakuRelay = "/vac/waku/relay/2.0.0"

    /// nil for an id that is not of gossipsub.
    public init?(protocolID: String) {
        switch protocolID {
        case Self.wakuRelay, "/meshsub/1.0.0", "/meshsub/1.1.0": self = .v11
        case "/meshsub/1.2.0": self = .v12
        default: return nil
        }
    }
}

/// A connected peer.
struct GossipPeer {
    var version: GossipVersion
    /// Whether this node dialed the peer.
    let isOutbound: Bool
    var topics: Set<String> = []
    var score: PeerScore
    /// Valid messages that this peer delivered first.
    var deliveredCount = 0
    /// Whether it is being disconnected. Its frames are ignored then.
    var isLeaving = false

    // Counted since the last heartbeat.
    var ihaveCount = 0
    var askedCount = 0
    /// Messages that the peer does not want (IDONTWANT), each until a heartbeat number.
    var unwanted: [MessageID: Int] = [:]

    static let unwantedLimit = 1000

    mutating func beginHeartbeat(_ number: Int) {
        ihaveCount = 0
        askedCount = 0
        if !unwanted.isEmpty { unwanted = unwanted.filter { $0.value > number } }
    }
}

/// The state of a peer, for operators.
public struct GossipPeerStatus: Hashable, Sendable {
    public let peer: PeerNumber
    public let score: Double
    public let isOutbound: Bool
    /// Sorted.
    public let topics: [String]
    /// The topics with the peer in their mesh, sorted.
    public let meshes: [String]
    /// Valid messages that this peer delivered first, since it connected.
    public let deliveredCount: Int
}

/// Totals since the router was created.
public struct GossipCounters: Hashable, Sendable {
    /// All messages received.
    public var received = 0
    /// Messages on topics that are not subscribed.
    public var foreign = 0
    public var duplicates = 0
    public var accepted = 0
    public var ignored = 0
    /// Invalid messages, those with an author included.
    public var rejected = 0
    /// Messages dropped because too many were pending validation.
    public var overloaded = 0
    public var published = 0
    /// Copies of messages sent to peers, own messages included.
    public var forwarded = 0
    public var replies = 0
    public var announcedIDs = 0
    public var askedIDs = 0
    public var brokenPromises = 0
    public var graftFloods = 0
    public var graylisted = 0

    public init() {}
}
