package import PushNode
package import NodeAPI
package import NwakuRelay
package import StatusServer
package import Storage

/// The facts that `doctor` gathered. `NodeChecks.doctor(_:)` derives findings from them.
package struct DoctorFacts: Sendable {
    package struct Folder: Hashable, Sendable {
        package let exists: Bool
        package let isOwned: Bool
        package let isWritable: Bool
        /// Permissions, as in `chmod`.
        package let mode: Int

        package init(exists: Bool, isOwned: Bool, isWritable: Bool, mode: Int) {
            self.exists = exists
            self.isOwned = isOwned
            self.isWritable = isWritable
            self.mode = mode
        }
    }

    package enum Database: Sendable {
        /// No daemon has run yet.
        case missing
        case unusable(String)
        case inspected(StoreInspection, RegistrationStatistics)
    }

    package enum SelfTest: Hashable, Sendable {
        case seen(milliseconds: Int, how: String)
        case notSeen(how: String)
        case notPublished(String)
        /// Not done, with the reason.
        case notDone(String)
    }

    package enum Relay: Sendable {
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

    package enum Connection: Hashable, Sendable {
        case missing
        /// Connected, with the number of topics whose mesh it is in.
        case connected(meshCount: Int)
        /// A filter node that accepted the node's topics.
        case filterNode
    }

    /// The problem with the key file; nil if there is none.
    package var keyProblem: String?
    package var folder: Folder
    package var freeBytes: Int64?
    package var files: OpenFiles?
    package var database: Database
    /// nil if no daemon answers.
    package var daemon: NodeStatus?
    package var pubsubTopics: [String]
    package var relays: [Relay]
    package var selfTest: SelfTest
    package var gorushes: [AdminAPI.InspectedGorush]
    /// Whether this node serves `/feedback`.
    package var takesFeedback: Bool
    /// Findings on the protocols, of their own checks.
    package var protocols: [Finding] = []
    /// Findings on the options of Web Push, and on a test notification.
    package var webPush: [Finding] = []

    package init(
        keyProblem: String?, folder: Folder, freeBytes: Int64?, files: OpenFiles?, database: Database, daemon: NodeStatus?,
        pubsubTopics: [String], relays: [Relay], selfTest: SelfTest, gorushes: [AdminAPI.InspectedGorush], takesFeedback: Bool
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
