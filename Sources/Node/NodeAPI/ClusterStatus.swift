/// The nodes of one identity as one of them sees them: for `admin status`, `doctor`, the status page and `/status.json`.
package struct ClusterStatus: Codable, Hashable, Sendable {
    package struct Node: Codable, Hashable, Sendable {
        package let name: String
        /// `live`; `draining`, when it hands its partitions over; or why it does so: `clock off`, `store failing`.
        package let state: String
        /// Whether it is the node that reports this.
        package let isSelf: Bool
        /// The time since this node saw its lease renewed, in seconds, by this node's clock; nil if it was not seen yet.
        package let secondsSinceRenewal: Double?
        /// The number of device partitions that it posts for.
        package let partitions: Int
        /// Whether it does the work that only one node may do, such as pruning.
        package let isMaintainer: Bool

        package init(name: String, state: String, isSelf: Bool, secondsSinceRenewal: Double?, partitions: Int, isMaintainer: Bool) {
            (self.name, self.state, self.isSelf) = (name, state, isSelf)
            (self.secondsSinceRenewal, self.partitions, self.isMaintainer) = (secondsSinceRenewal, partitions, isMaintainer)
        }
    }

    /// A standby of the database, or a replication slot that no standby uses.
    package struct Standby: Codable, Hashable, Sendable {
        /// Its `application_name`; the name of a slot.
        package let name: String
        /// `streaming`, `catchup`, …, as in `pg_stat_replication`; ``notConnected`` for a slot.
        package let state: String
        /// `sync`, `quorum`, `potential`, `async` or `slot`.
        package let sync: String
        /// How much of the write-ahead log it has not applied, or the server keeps for the slot, in bytes; nil if unknown.
        package let lagBytes: Int?
        /// The delay until its last confirmation that it applied a change, in seconds; nil if it is idle.
        package let lagSeconds: Double?

        package init(name: String, state: String, sync: String, lagBytes: Int?, lagSeconds: Double?) {
            (self.name, self.state, self.sync, self.lagBytes, self.lagSeconds) = (name, state, sync, lagBytes, lagSeconds)
        }

        package static let notConnected = "not connected"

        package var isConnected: Bool { state != Self.notConnected }

        /// Behind by more than 64 MiB or 30 s: a failover to it takes long, and commits may wait for it.
        package var isFarBehind: Bool { lagBytes ?? 0 > 64 << 20 || lagSeconds ?? 0 > 30 }
    }

    package struct Failover: Codable, Hashable, Sendable {
        /// When this node noticed it, in seconds since 1970.
        package let time: Double
        /// The lost node or promoted standby, in words.
        package let text: String

        package init(time: Double, text: String) {
            (self.time, self.text) = (time, text)
        }
    }

    /// Sorted by name; without nodes whose lease has ended.
    package let nodes: [Node]
    /// The number of device partitions.
    package let partitionCount: Int
    /// The number of device partitions without a live owner: their notifications wait.
    package let unownedPartitions: Int
    /// Sorted by name; nil if they can't be read. Empty: the database has none.
    package let standbys: [Standby]?
    /// Why ``standbys`` is nil.
    package let standbysProblem: String?
    /// The last one since this node started; nil if there was none.
    package let lastFailover: Failover?

    package init(
        nodes: [Node], partitionCount: Int, unownedPartitions: Int, standbys: [Standby]?, standbysProblem: String?, lastFailover: Failover?
    ) {
        (self.nodes, self.partitionCount, self.unownedPartitions) = (nodes, partitionCount, unownedPartitions)
        (self.standbys, self.standbysProblem, self.lastFailover) = (standbys, standbysProblem, lastFailover)
    }

    /// One line for `doctor` and `admin status`: nodes with their partitions, and standbys.
    package var summary: String {
        let nodes = nodes.map { "\($0.name)\($0.isSelf ? " (this node)" : ""): \($0.partitions)" }.joined(separator: ", ")
        let count = "\(self.nodes.count) \(self.nodes.count == 1 ? "node" : "nodes")"
        return "\(count), with partitions of \(partitionCount): \(nodes)"
    }
}
