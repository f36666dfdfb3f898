public import Gorush
public import PushStore

/// What `doctor` looked at, as it found it: ``NodeChecks/doctor(_:)`` makes verdicts of it.
public struct DoctorFacts: Sendable {
    public struct Folder: Hashable, Sendable {
        public let exists: Bool
        public let isOwned: Bool
        public let isWritable: Bool
        /// Permissions, as in `chmod`.
        public let mode: Int

        public init(exists: Bool, isOwned: Bool, isWritable: Bool, mode: Int) {
            self.exists = exists
            self.isOwned = isOwned
            self.isWritable = isWritable
            self.mode = mode
        }
    }

    public enum Database: Sendable {
        /// No daemon has run yet.
        case missing
        case unusable(String)
        case inspected(StoreInspection, RegistrationStatistics)
    }

    public enum SelfTest: Hashable, Sendable {
        case seen(milliseconds: Int, how: String)
        case notSeen(how: String)
        case notPublished(String)
        /// And why.
        case notDone(String)
    }

    public enum Relay: Sendable {
        /// The network in the daemon's own process.
        case loopback
        case unreachable(address: String, reason: String)
        case node(RelayNode)
        /// A node that the daemon gossips with; nil: no daemon runs that could tell.
        case peer(address: String, Connection?)
        /// Nodes of a fleet, likewise: how many bring messages.
        case fleet(name: String, workingPeerCount: Int?)
    }

    public enum Connection: Hashable, Sendable {
        case missing
        /// On so many topics messages are exchanged with it.
        case connected(meshCount: Int)
        /// It sends what comes on the topics that it was told.
        case filterNode
    }

    /// A Waku node, as its REST API tells.
    public struct RelayNode: Sendable {
        public enum Store: Hashable, Sendable {
            case present
            case missing
            case unknown(String)
        }

        public var address: String
        public var health: String
        public var relayHealth: String?
        public var version: String?
        public var cluster: Int?
        public var shards: Set<Int>?
        /// By shard; nil when its admin API is off.
        public var peers: [Int: Int]?
        public var store: Store
        public var clockAhead: Duration?

        public init(
            address: String, health: String, relayHealth: String? = nil, version: String? = nil, cluster: Int? = nil,
            shards: Set<Int>? = nil, peers: [Int: Int]? = nil, store: Store, clockAhead: Duration? = nil
        ) {
            self.address = address
            self.health = health
            self.relayHealth = relayHealth
            self.version = version
            self.cluster = cluster
            self.shards = shards
            self.peers = peers
            self.store = store
            self.clockAhead = clockAhead
        }
    }

    public struct Gorush: Codable, Sendable {
        public var rule: EndpointRule
        /// nil when its URL can't be used, and ``problem`` says why.
        public var inspection: GorushInspection?
        public var problem: String?

        public init(_ rule: EndpointRule, _ inspection: GorushInspection?, problem: String? = nil) {
            self.rule = rule
            self.inspection = inspection
            self.problem = problem
        }
    }

    /// What is wrong with the key file; nil when it is as it should be.
    public var keyProblem: String?
    public var folder: Folder
    public var freeBytes: Int64?
    public var files: OpenFiles?
    public var database: Database
    /// nil: no daemon answers.
    public var daemon: NodeStatus?
    public var pubsubTopics: [String]
    public var relays: [Relay]
    public var selfTest: SelfTest
    public var gorushes: [Gorush]
    /// Whether this node serves `/feedback`.
    public var takesFeedback: Bool

    public init(
        keyProblem: String?, folder: Folder, freeBytes: Int64?, files: OpenFiles?, database: Database, daemon: NodeStatus?,
        pubsubTopics: [String], relays: [Relay], selfTest: SelfTest, gorushes: [Gorush], takesFeedback: Bool
    ) {
        self.keyProblem = keyProblem
        self.folder = folder
        self.freeBytes = freeBytes
        self.files = files
        self.database = database
        self.daemon = daemon
        self.pubsubTopics = pubsubTopics
        self.relays = relays
        self.selfTest = selfTest
        self.gorushes = gorushes
        self.takesFeedback = takesFeedback
    }
}
