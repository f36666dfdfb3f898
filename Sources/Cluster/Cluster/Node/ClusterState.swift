import Core
import NodeAPI
import Storage

/// The state of a node in its cluster, behind one lock.
struct ClusterState: Sendable {
    /// Much longer than rows of ended nodes are kept.
    private static let finishedMemory = Duration.seconds(3600)

    var member: ClusterMember
    var share: MessageShare
    var entries: [MessageKey: ClusterMessage] = [:]
    /// The keys of reassembled messages, by the key of the segment that arrived last.
    var wholes: [MessageKey: MessageKey] = [:]
    /// The total cost of the messages that wait for other nodes, in units of 4 KiB.
    var waitingCost = 0
    /// The time of the next search for expired entries.
    var nextSweep = Instant(sinceEpoch: .zero)
    var window: ClaimWindow
    /// How far the database's clock is ahead of this node's, in seconds.
    var clockOffset: Int64 = 0
    /// For each node, the sequence number of the last row of finished messages that was read, and when that was.
    private(set) var finishedUpTo: [NodeID: (sequence: Int64, readAt: Instant)] = [:]
    /// Partitions whose outbox rows the next scan reads.
    var toScan: Set<PartitionNumber> = []
    /// Partitions that this node got since a scan has queued all their deliveries: these are not new.
    var inherited: Set<PartitionNumber> = []
    var stopping: Set<PartitionNumber> = []
    /// Deliveries that gorush has accepted, from other nodes' notifications; not looked up yet.
    var ended: Set<DeliveryID> = []
    var isLeaving = false
    /// Whether the operator requested the drain.
    var isDrainRequested = false
    var isClockWrong = false
    var storeTrouble = StoreTrouble()
    /// Why the last scan of the outbox failed; nil if it did not.
    var outboxFailure: StoreError?
    /// Why the last heartbeat was not committed; nil if it was, or before the first one has ended.
    var heartbeatFailure: String?
    /// See `ClusterConflicts`.
    var conflicts: [String] = []
    var disputedSettings: Set<String> = []
    var unknownSettings: Set<String> = []
    var leftovers = LeftoverLeases()
    var failovers = FailoverLog()
    var lastFailover: ClusterStatus.Failover?
    /// nil before they were read, and when that failed.
    var standbys: [ClusterStatus.Standby]?
    var standbysProblem: String? = "not read yet"
    /// The number of nodes that share the messages, as last passed to the protocols.
    var nodeCount = 1
    /// The keys that this node serves, as last passed to the protocols.
    var keys: KeyAssignment?
    /// Counts the changes of ``keys``.
    var keyGeneration = 0

    /// Whether another node may do what this one can't. Damaged rows are the same for all.
    ///
    /// - Parameter outage: see `Store`.
    func isStoreFailing(outage: String?) -> Bool {
        outage != nil || outboxFailure.map { $0.code != .damaged } ?? false
    }

    mutating func finishedElsewhere(_ rows: [FinishedRow], at now: Instant) {
        for row in rows {
            share.finishedElsewhere(row.prefixes)
            finishedUpTo[row.node] = (max(finishedUpTo[row.node]?.sequence ?? row.sequence, row.sequence), now)
        }
        // Most of these nodes have ended, and their rows are gone. The last rows of an idle one are read once more.
        finishedUpTo = finishedUpTo.filter { now < $0.value.readAt + Self.finishedMemory }
    }

    /// Hands over this node's share while it stops, is drained, has a wrong clock or a store that fails. Without another node to take it, the share
    /// stays.
    mutating func updateDraining() {
        member.trouble = isClockWrong ? .wrongClock : storeTrouble.isLasting ? .failingStore : nil
        member.isDraining = isLeaving || isDrainRequested || member.trouble != nil
    }
}
