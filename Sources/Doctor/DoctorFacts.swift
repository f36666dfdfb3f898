package import AdminProtocol
package import HealthChecks
package import NwakuRelay
package import StatusServer
package import StoreSQLite

/// What `doctor` looked at, as it found it: `NodeChecks.doctor(_:)` makes verdicts of it.
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
        /// And why.
        case notDone(String)
    }

    package enum Relay: Sendable {
        /// The network in the daemon's own process.
        case loopback
        case unreachable(address: String, reason: String)
        /// A Waku node, as its REST API tells.
        case node(address: String, NodeInspection)
        /// A node that the daemon gossips with; nil: no daemon runs that could tell.
        case peer(address: String, Connection?)
        /// Nodes of a fleet, likewise: how many bring messages.
        case fleet(name: String, workingPeerCount: Int?)
    }

    package enum Connection: Hashable, Sendable {
        case missing
        /// On so many topics messages are exchanged with it.
        case connected(meshCount: Int)
        /// It sends what comes on the topics that it was told.
        case filterNode
    }

    /// Version 0.1 of Status' service.
    package struct StatusV01: Hashable, Sendable {
        package let isOn: Bool
        /// Registered, in the database.
        package let records: Int
        package let devices: Int

        package init(isOn: Bool, records: Int, devices: Int) {
            self.isOn = isOn
            self.records = records
            self.devices = devices
        }
    }

    /// What is wrong with the key file; nil when it is as it should be.
    package var keyProblem: String?
    package var folder: Folder
    package var freeBytes: Int64?
    package var files: OpenFiles?
    package var database: Database
    /// nil: no daemon answers.
    package var daemon: NodeStatus?
    package var pubsubTopics: [String]
    package var relays: [Relay]
    package var selfTest: SelfTest
    package var gorushes: [AdminAPI.InspectedGorush]
    /// Whether this node serves `/feedback`.
    package var takesFeedback: Bool
    package var statusV01 = StatusV01(isOn: false, records: 0, devices: 0)

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
