/// A number that the driver assigns to a peer. The peer keeps it as long as ``GossipSubRouter/remembers(_:)`` returns true.
public struct PeerNumber: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Any number that no other remembered peer has.
    public let rawValue: UInt32
    /// - Parameter rawValue: A number that no other remembered peer has.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Orders by number, for deterministic iteration.
    public static func < (left: PeerNumber, right: PeerNumber) -> Bool { left.rawValue < right.rawValue }
    /// The number in decimal digits.
    public var description: String { "\(rawValue)" }
}

/// The protocol version of a peer, by the negotiated protocol id.
public enum GossipVersion: Hashable, Comparable, Sendable {
    /// Version 1.1; peers of version 1.0 are treated the same.
    case v11
    /// Version 1.2, which adds IDONTWANT.
    case v12

    /// Waku's own protocol id. It implies version 1.1: nwaku and go-waku send no IDONTWANT on it.
    public static let wakuRelay = "/vac/waku/relay/2.0.0"

    /// - Parameter protocolID: The negotiated protocol id; nil is returned for one that is not of gossipsub.
    public init?(protocolID: String) {
        switch protocolID {
        case Self.wakuRelay, "/meshsub/1.0.0", "/meshsub/1.1.0": self = .v11
        case "/meshsub/1.2.0": self = .v12
        default: return nil
        }
    }
}

struct GossipPeer {
    var version: GossipVersion
    /// Whether this node dialed the peer, or chose it otherwise.
    var isOutbound: Bool
    var topics: Set<String> = []
    var score: PeerScore
    /// Valid messages that this peer delivered first.
    var deliveredCount = 0
    /// Whether it is being disconnected. Its frames are ignored then.
    var isLeaving = false

    // Counted since the last heartbeat.
    var ihaveCount = 0
    var askedCount = 0
    var emptyFrameCount = 0
    /// Messages that the peer does not want (IDONTWANT), with the number of the heartbeat at which each entry expires.
    var unwanted: [MessageID: Int] = [:]

    static let unwantedLimit = 1000
    /// The maximum number of frames without content between two heartbeats. Other implementations send none, or a few.
    static let emptyFrameLimit = 1000

    mutating func beginHeartbeat(_ number: Int) {
        ihaveCount = 0
        askedCount = 0
        emptyFrameCount = 0
        if !unwanted.isEmpty { unwanted = unwanted.filter { $0.value > number } }
    }
}

/// The state of a peer, for operators.
public struct GossipPeerStatus: Hashable, Sendable {
    /// The number that the driver assigned.
    public let peer: PeerNumber
    /// The current score, by ``ScoreConfiguration``; 0 for a new peer.
    public let score: Double
    /// Whether this node dialed the peer, or chose it otherwise.
    public let isOutbound: Bool
    /// The topics that the peer subscribed to, sorted.
    public let topics: [String]
    /// The topics whose mesh includes the peer, sorted.
    public let meshes: [String]
    /// Valid messages that this peer delivered first, since it connected.
    public let deliveredCount: Int
}

/// Totals since the router was created.
public struct GossipCounters: Hashable, Sendable {
    /// All messages received, duplicates included.
    public var received = 0
    /// Messages on topics that are not subscribed. They were dropped.
    public var foreign = 0
    /// Messages whose id was known already.
    public var duplicates = 0
    /// Messages that the validator accepted.
    public var accepted = 0
    /// Messages that the validator ignored, and those above the size limit.
    public var ignored = 0
    /// Messages that the validator rejected, those with an author or without data, and malformed frames.
    public var rejected = 0
    /// Messages dropped because too many bytes were pending validation.
    public var overloaded = 0
    /// This node's own messages that were sent to at least one peer.
    public var published = 0
    /// Copies of messages sent to peers, own messages included.
    public var forwarded = 0
    /// Messages sent in reply to IWANT.
    public var replies = 0
    /// Requests for announced messages that were not answered within ``GossipConfiguration/promisePeriod``. One message of each request is tracked.
    public var brokenPromises = 0
    /// Grafts received within the backoff after a prune.
    public var graftFloods = 0
    /// Peers disconnected because their score fell below ``ScoreConfiguration/graylistThreshold``.
    public var graylisted = 0
}
