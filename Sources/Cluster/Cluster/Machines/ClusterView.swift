package import Core

/// A node's row in the table of leases.
///
///     node(8, key) · renewals(8) · state · name(text) · hashing_version(4) · gorush_timeout(ms) · renewed_at(database's clock, for operators)
///
/// The end of a lease is a committed fact (`ended`), not a comparison of times: see ``LeaseObserver``.
package struct LeaseRow: Hashable, Sendable {
    package enum State: String, Hashable, Sendable {
        case live
        /// Hands its partitions over, takes no new ones, and ranks for no message.
        case draining
        /// Final. Maintenance deletes the row an hour later, with the node's remaining rows of finished messages.
        case ended
    }

    package var node: NodeID
    /// The number of committed renewals.
    package var renewals: UInt64 = 0
    package var state: State = .live
    /// The host name, for `admin nodes`.
    package var name: String = ""
    package var hashingVersion: Int = HashingRules.first.version
    /// The node's `--gorush-timeout`, for nodes of earlier releases: see ``ClusterConfiguration/gorushTimeout``.
    package var gorushTimeout: Duration = .seconds(60)
    /// Whether the node offers to serve a share of the keys: see ``KeyAssignment``.
    package var offersKeys: Bool = false
    /// Options that must be the same at all nodes, by their names; nil: written by a release without this column. See ``ClusterConflicts``.
    package var settings: [String: String]?
    /// Whether it was not renewed for a whole lease by the database's clock, for messages to operators only: see ``LeftoverLeases``.
    package var isOverdue = false
}

extension LeaseRow {
    /// Why a node drains that was not told to. The raw value is its state for operators.
    package enum Trouble: String, CaseIterable, Sendable {
        case wrongClock = "clock off"
        /// It can't do its work, although its heartbeats are committed: see ``StoreTrouble``.
        case failingStore = "store failing"

        /// Among the ``settings`` of such a node. Not a state of its own, which other releases could not read; others lack it, so it is no conflict.
        var settings: [String: String] {
            switch self {
            case .wrongClock: ["clock": "off"]
            case .failingStore: ["store": "failing"]
            }
        }

        func isAnnounced(by settings: [String: String]?) -> Bool {
            self.settings.allSatisfy { settings?[$0.key] == $0.value }
        }
    }

    /// The state for operators.
    package var stateName: String { Self.stateName(state, settings) }

    static func stateName(_ state: State, _ settings: [String: String]?) -> String {
        let trouble = Trouble.allCases.first { $0.isAnnounced(by: settings) }
        return state == .draining ? trouble?.rawValue ?? state.rawValue : state.rawValue
    }
}

/// A partition's row: the node that may post for the devices in it.
///
///     partition(2, key) · owner(8, null without owner) · epoch(8)
package struct PartitionRow: Hashable, Sendable {
    package var owner: NodeID?
    /// The number of owner changes. It never decreases, so it identifies one ownership.
    package var epoch: UInt64 = 0

    package init(owner: NodeID? = nil, epoch: UInt64 = 0) {
        (self.owner, self.epoch) = (owner, epoch)
    }
}

/// The number of a partition: 0 ..< ``ClusterConfiguration/partitionCount`` for devices, and one more for maintenance.
package typealias PartitionNumber = Int

extension ClusterConfiguration {
    /// The owner of this partition does the work that only one node may do at a time: expiry, pruning, checking the database, dropping claims. Each
    /// of its transactions has the partition's epoch as a condition, as those of deliveries have.
    package var maintenancePartition: PartitionNumber { partitionCount }

    /// The number of rows in the table of partitions.
    package var partitionRowCount: Int { partitionCount + 1 }

    /// The partition of a device by the lowest bits of its row id: ids are consecutive, so the bits are evenly distributed.
    package func partition(ofRow row: Int64) -> PartitionNumber {
        Int(truncatingIfNeeded: row) & (partitionCount - 1)
    }
}

/// The rows that a heartbeat read, in the transaction of its writes.
package struct ClusterView: Hashable, Sendable {
    /// Whether the node's own lease was renewed. False when another node ended it: then the transaction changed nothing.
    package var isMember: Bool
    package var leases: [LeaseRow]
    /// Ordered by partition number.
    package var partitions: [PartitionRow]
    /// nil when it was not read.
    package var clock: Clock?
    /// The timeline of the database's write-ahead log: a promoted standby starts the next one. 0 when it was not read.
    package var timeline: UInt32 = 0

    package init(isMember: Bool, leases: [LeaseRow], partitions: [PartitionRow], clock: Clock? = nil, timeline: UInt32 = 0) {
        (self.isMember, self.leases, self.partitions) = (isMember, leases, partitions)
        (self.clock, self.timeline) = (clock, timeline)
    }

    /// Whether all live nodes, two at least, announce that their clocks differ from the database's: either the database's clock is wrong, or those of
    /// all nodes are.
    package var areAllClocksOff: Bool {
        let live = leases.filter { $0.state != .ended }
        return live.count > 1 && live.allSatisfy { LeaseRow.Trouble.wrongClock.isAnnounced(by: $0.settings) }
    }

    /// A reading of the database's clock.
    package struct Clock: Hashable, Sendable {
        /// Since 1970.
        package let time: Duration
        package let askedAt: Instant
        package let receivedAt: Instant

        package init(time: Duration, askedAt: Instant, receivedAt: Instant) {
            (self.time, self.askedAt, self.receivedAt) = (time, askedAt, receivedAt)
        }

        /// The certain part of a node's lead over the database, negative when the node's clock is behind: see `ClockWatch`.
        ///
        /// - Parameters:
        ///   - wall: the node's clock, since 1970.
        ///   - instant: when it was read.
        func certainLead(of wall: Duration, at instant: Instant) -> Duration {
            ClockWatch.certainDifference(to: time, from: wall - (instant - askedAt), until: wall - (instant - receivedAt))
        }
    }
}

/// One transaction each second, with the node's own lease and the partitions that it takes and releases. Its parts, in this order:
///
/// 1. The node's own lease: inserted by the first heartbeat, `renewals + 1` by later ones, where the state is not `ended`. Without a row, the other
/// changes are skipped.
/// 2. ``ends``: `state = ended` where `renewals` has the observed value.
/// 3. ``releases``: sets no owner, where owner and epoch are the node's own. For settled partitions, marks with this epoch are removed.
/// 4. ``takes``: sets the owner and `epoch + 1`, where the epoch has the observed value and the owner is null or has ended.
/// 5. All leases (including those that have ended) and all partitions are read.
///
/// Rows are changed in the order of their keys. The driver repeats a transaction after a deadlock or serialization failure (40P01, 40001); any other
/// result except a confirmed commit is ``ClusterMember/heartbeatFailed()``.
package struct Heartbeat: Hashable, Sendable {
    package struct LeaseEnd: Hashable, Sendable {
        package let node: NodeID
        package let renewals: UInt64
    }

    package struct Release: Hashable, Sendable {
        package let partition: PartitionNumber
        package let epoch: UInt64
        /// Whether no post is unanswered and no outcome uncommitted: then the next owner need not wait.
        package let isSettled: Bool
    }

    package struct Take: Hashable, Sendable {
        package let partition: PartitionNumber
        /// The epoch that the take requires; the new owner's is one more.
        package let observedEpoch: UInt64
    }

    /// The node's own row, with meaningless ``LeaseRow/renewals``.
    package let lease: LeaseRow
    package let isFirst: Bool
    package let ends: [LeaseEnd]
    package let releases: [Release]
    package let takes: [Take]
}
