import PushNode
import NodeAPI
import NwakuRelay
import StatusServer
import Storage

/// The facts that `doctor` gathered. `NodeChecks.doctor(_:)` derives findings from them.
struct DoctorFacts: Sendable {
    struct Folder: Hashable, Sendable {
        let exists: Bool
        /// Whether it belongs to this user; true for root: files that root makes in it get its owner.
        let isOwned: Bool
        let isWritable: Bool
        /// Permissions, as in `chmod`.
        let mode: Int
        /// Whether its file system is mounted read-only.
        var isReadOnly = false
    }

    enum Database: Sendable {
        /// No daemon has run yet.
        case missing
        case unusable(String)
        /// - ofProtocols: rows of other protocols than Status.
        /// - commitTime: the duration of a commit; nil where it was not measured.
        case inspected(StoreInspection, RegistrationStatistics, ofProtocols: [StoredCount] = [], commitTime: Duration? = nil)

        var isUsable: Bool { if case .unusable = self { false } else { true } }
    }

    enum SelfTest: Hashable, Sendable {
        case seen(milliseconds: Int, how: String)
        case notSeen(how: String)
        case notPublished(String)
        /// Not done, with the reason.
        case notDone(String)
    }

    enum Relay: Sendable {
        /// None: protocols that serve HTTP need none.
        case none
        /// The loopback relay in the daemon's process.
        case loopback
        case unreachable(address: String, reason: String)
        /// A Waku node, inspected over its REST API.
        case node(address: String, NodeInspection)
        /// A libp2p peer of the daemon; nil if no daemon runs.
        case peer(address: String, Connection?)
        /// The nodes of a fleet: how many deliver messages; nil if no daemon runs.
        case fleet(name: String, workingPeerCount: Int?)
    }

    enum Connection: Hashable, Sendable {
        case missing
        /// Connected, with the number of topics whose mesh it is in.
        case connected(meshCount: Int)
        /// A filter node that accepted the node's topics.
        case filterNode
    }

    /// The problem with the key file; nil if there is none.
    var keyProblem: String?
    var folder: Folder
    /// On the data folder's file system; nil if unknown.
    var space: DiskSpace?
    var hasDatabaseInDataFolder = true
    /// What serve would refuse; empty if a daemon runs. Other findings may say the same.
    var obstacles: [Finding] = []
    var files: OpenFiles?
    var database: Database
    /// nil if no daemon answers.
    var daemon: NodeStatus?
    var pubsubTopics: [String]
    var relays: [Relay]
    /// Whether messages come by gossip only: peers don't return one to its publisher.
    var isGossipOnly: Bool {
        !relays.isEmpty
            && relays.allSatisfy { relay in
                switch relay {
                case .peer, .fleet: true
                case .none, .loopback, .unreachable, .node: false
                }
            }
    }
    var selfTest: SelfTest
    var gorushes: [AdminAPI.InspectedGorush]
    /// Whether this node serves `/feedback`.
    var takesFeedback: Bool
    /// Findings on the protocols, of their own checks.
    var protocols: [Finding] = []
    /// Registered devices that no endpoint of the node accepts.
    var unserved: [Finding] = []
    /// Findings on the options of Web Push, and on a test notification.
    var webPush: [Finding] = []
}
