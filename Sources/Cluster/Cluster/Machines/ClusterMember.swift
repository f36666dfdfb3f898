package import Core

/// A node's membership: its lease, its view of the other nodes, and the partitions that it posts for. Heartbeats are outputs, the views that they
/// committed are inputs; the driver carries out each ``Change``. There is one value per ``NodeID``: after ``Change/ended`` the node joins with a new
/// one.
///
///     per partition:
///     (not owned) ──(a take was committed)──▶ posting ──(its target is another node)──▶ stopping ──(settled, or timeout)──▶ releasing
///          ▲                                     ▲  └───────────(target is this node again)─┘                                   │
///          └──────────────(a committed view shows another epoch or owner)───────────────────────────────────────────────────────┘
///
/// A node owns the partitions that the view of its last committed heartbeat shows, regardless of its requests. A heartbeat with unknown outcome may
/// be committed later: a take that succeeds this way shows in a later view. So may a release; therefore a partition is never used again under an
/// epoch for which a release was sent.
package struct ClusterMember: Sendable {
    /// An action for the driver.
    package enum Change: Hashable, Sendable {
        /// Load the partition's rows, and post.
        case gained(PartitionNumber, epoch: UInt64)
        /// Start no more posts; call ``settled(_:)`` when no post is unanswered and every outcome is committed.
        case stop(PartitionNumber)
        /// Continue posting: the stop is cancelled.
        case resume(PartitionNumber)
        /// Discard its queue. Outcomes of unanswered posts may still be committed, as long as the row has this node's mark.
        case lost(PartitionNumber)
        /// Another node ended the lease: discard all partitions and join again with a new id.
        case ended

        /// The partition that the node posts for from now on.
        var gained: PartitionNumber? {
            switch self {
            case .gained(let partition, _), .resume(let partition): partition
            case .stop, .lost, .ended: nil
            }
        }
    }

    private enum Ownership: Sendable {
        case posting(epoch: UInt64)
        case stopping(epoch: UInt64, stoppedAt: Instant, isSettled: Bool)
        case releasing(epoch: UInt64, isSettled: Bool)

        var epoch: UInt64 {
            switch self {
            case .posting(let epoch), .stopping(let epoch, _, _), .releasing(let epoch, _): epoch
            }
        }
    }

    package let id: NodeID
    package private(set) var lease: OwnLease
    /// The view read by the last committed heartbeat; nil before the first.
    package private(set) var view: ClusterView?
    /// Whether the node hands over all its partitions, announced in the next heartbeat.
    package var isDraining = false
    /// Why it does so, if it was not told to: see ``LeaseRow/stateName``.
    package var trouble: LeaseRow.Trouble?
    /// ``LeaseRow/offersKeys``, announced in the next heartbeat.
    package var offersKeys = false
    /// ``LeaseRow/settings``. Announced in the next heartbeat.
    package var settings: [String: String]?

    private let configuration: ClusterConfiguration
    private let name: String
    /// The rules by which work is divided; nil while a live node is older than this release supports.
    package private(set) var hashingRules: HashingRules?
    private var observer: LeaseObserver
    private var owned: [PartitionNumber: Ownership] = [:]
    private var sentAt: Instant?
    private var lastSent: Instant?
    private var nextHeartbeat: Instant
    /// Since when the other nodes can read that this one drains; nil while it does not.
    private var drainingSince: Instant?

    package init(_ id: NodeID, name: String, configuration: ClusterConfiguration, at now: Instant) {
        self.id = id
        self.name = name
        self.configuration = configuration
        lease = OwnLease(configuration)
        hashingRules = configuration.hashingRules.last
        observer = LeaseObserver(configuration)
        nextHeartbeat = now
    }

    // MARK: Heartbeats

    /// When to call ``heartbeat(at:)`` next; nil while a heartbeat is unanswered. The driver gives each a timeout of at most the lease.
    package var nextWakeUp: Instant? { sentAt == nil && lease.state != .ended ? nextHeartbeat : nil }

    /// The heartbeat to send now, if one is due.
    package mutating func heartbeat(at now: Instant) -> Heartbeat? {
        guard lease.state != .ended, sentAt == nil, now >= nextHeartbeat else { return nil }
        (sentAt, lastSent) = (now, now)
        nextHeartbeat = now + configuration.heartbeatInterval
        let row = LeaseRow(
            node: id, state: isDraining ? .draining : .live, name: name,
            hashingVersion: configuration.hashingRules.last?.version ?? HashingRules.first.version,
            gorushTimeout: configuration.gorushTimeout, offersKeys: offersKeys,
            settings: trouble.map { (settings ?? [:]).merging($0.settings) { $1 } } ?? settings)
        // Only a node that is in touch with the database judges others.
        guard let view, lease.isValid(at: now) else {
            return Heartbeat(lease: row, isFirst: lease.state == .pending, ends: [], releases: releases(at: now), takes: [])
        }
        let ends = observer.silent(at: now, except: id)
        return Heartbeat(
            lease: row, isFirst: false, ends: ends, releases: releases(at: now), takes: takes(view, ending: Set(ends.map(\.node))))
    }

    /// Lets the next heartbeat be due soon, since this node or another has something to hand over.
    package mutating func hasten(at now: Instant) {
        nextHeartbeat = min(nextHeartbeat, max(now, lastSent.map { $0 + configuration.takeoverDelay } ?? now))
    }

    /// - Parameters:
    ///   - view: the view that the heartbeat read after its changes.
    ///   - now: when the reply to its COMMIT was received.
    package mutating func heartbeatCommitted(_ view: ClusterView, at now: Instant) -> [Change] {
        guard let sentAt, lease.state != .ended else { return [] }
        self.sentAt = nil
        guard view.isMember else {
            lease.end()
            owned = [:]
            return [.ended]
        }
        if !lease.isValid(at: now) { observer.restart() }
        lease.renewed(sentAt: sentAt)
        observer.observed(view.leases, at: now)
        self.view = view
        drainingSince = view.leases.contains { $0.node == id && $0.state == .draining } ? drainingSince ?? now : nil
        hashingRules = HashingRules.common(
            to: view.leases.lazy.filter { $0.state != .ended }.map(\.hashingVersion), among: configuration.hashingRules)
        let changes = updateOwnership(view) + stopSurplus(view, at: now)
        // No node posts for free partitions, so they are taken without waiting for the next second.
        if !takes(view, ending: []).isEmpty { nextHeartbeat = min(nextHeartbeat, now + configuration.takeoverDelay) }
        return changes
    }

    /// Records that a heartbeat failed or has an unknown outcome. The next one is sent when it is due.
    package mutating func heartbeatFailed() {
        sentAt = nil
    }

    // MARK: Posting

    /// This node's mark for rows of a partition that it posts for; nil for other partitions.
    package func mark(in partition: PartitionNumber, at now: Instant) -> DeliveryMark? {
        guard lease.isValid(at: now), case .posting(let epoch)? = owned[partition] else { return nil }
        return DeliveryMark(owner: id, epoch: epoch)
    }

    /// Whether a row with this mark, or without one, may be posted.
    package func verdict(on mark: DeliveryMark?, in partition: PartitionNumber, at now: Instant) -> PostingVerdict {
        guard let own = self.mark(in: partition, at: now) else { return .notOwner }
        guard let mark else { return .markAndPost(own) }
        // Every former owner had stopped posting before this node's take was committed.
        return mark == own ? .inProgress : .markAndRepeat(own)
    }

    /// The last check, right before a post is written to its socket: the lease is valid, and this node has owned the partition since the mark.
    package func mayPost(under mark: DeliveryMark, in partition: PartitionNumber, at now: Instant) -> Bool {
        self.mark(in: partition, at: now) == mark
    }

    /// The mark of this node if it does maintenance, otherwise nil. Maintenance transactions have owner and epoch as a condition, like marks.
    package func maintenanceMark(at now: Instant) -> DeliveryMark? { mark(in: configuration.maintenancePartition, at: now) }

    /// Call after ``Change/stop(_:)`` when no post of the partition is unanswered and no outcome is uncommitted.
    package mutating func settled(_ partition: PartitionNumber) {
        guard case .stopping(let epoch, let stoppedAt, _)? = owned[partition] else { return }
        owned[partition] = .stopping(epoch: epoch, stoppedAt: stoppedAt, isSettled: true)
    }

    // MARK: The other nodes

    /// The time since a lease was seen renewed, by this node's clock; nil for a node that was not seen.
    package func silence(of node: NodeID, at now: Instant) -> Duration? { observer.silence(of: node, at: now) }

    /// The view without former leases of this node, which have its name and which nobody renews: of an earlier run that was killed, or from before its
    /// lease expired. Another node of this name renews its lease, so it stays.
    package func withoutFormerLeases(_ view: ClusterView) -> ClusterView {
        var view = view
        view.leases.removeAll { $0.name == name && $0.node != id && !observer.isRenewed($0.node) }
        return view
    }

    /// The nodes that share messages, keys and the totals of limits: live and not draining, or all live nodes when all drain.
    package var workers: [NodeID] { view.map { Self.workers($0.leases, except: []) } ?? [] }

    /// The keys that this node serves, among the nodes that offered to serve keys; all keys when none did.
    package var keys: KeyAssignment {
        let offering = view.map { Self.workers($0.leases.filter(\.offersKeys), except: []) } ?? []
        guard let hashingRules else { return KeyAssignment(of: id, among: [], by: .first) }
        return KeyAssignment(of: id, among: offering, by: hashingRules)
    }

    /// This node's rank for a message: see ``MessageShare``. If the ranks of other nodes can't be known, it is the last: then this node takes only
    /// messages that no other node has taken.
    package func rank(of key: MessageKey) -> Int {
        // Before the first view no node is known: one that may take no share leaves messages to others.
        if view == nil, isDraining { return 1 }
        // At once, not from the next heartbeat on: a node in trouble would answer with a wrong time, or not at all.
        let workers = trouble == nil ? workers : view.map { Self.workers(announced($0), except: []) } ?? []
        guard let hashingRules else { return workers.count }
        return RendezvousHash.rank(of: id, for: key.prefix, among: workers, by: hashingRules)
    }

    /// Whether the other nodes have taken this node's partitions and had time to begin to serve its keys, or there is no other live node.
    package func hasLeft(at now: Instant) -> Bool {
        guard let view, view.leases.contains(where: { $0.node != id && $0.state == .live }) else { return true }
        guard !view.partitions.contains(where: { $0.owner == id }) else { return false }
        return !offersKeys || drainingSince.map { now - $0 >= configuration.keyHandoverTime } ?? false
    }

    private static func workers(_ leases: [LeaseRow], except ending: Set<NodeID>) -> [NodeID] {
        let live = leases.filter { $0.state != .ended && !ending.contains($0.node) }
        let workers = live.filter { $0.state == .live }
        return (workers.isEmpty ? live : workers).map(\.node)
    }

    // MARK: Partitions

    private func targets(_ view: ClusterView, ending: Set<NodeID>) -> [NodeID?] {
        PartitionAssignment.targets(view.partitions, among: Self.workers(announced(view), except: ending))
    }

    /// The leases with the state that this node announces in its next heartbeat.
    private func announced(_ view: ClusterView) -> [LeaseRow] {
        view.leases.map { row in
            var row = row
            if row.node == id, row.state != .ended { row.state = isDraining ? .draining : .live }
            return row
        }
    }

    private func takes(_ view: ClusterView, ending: Set<NodeID>) -> [Heartbeat.Take] {
        let ended = Set(view.leases.lazy.filter { $0.state == .ended }.map(\.node)).union(ending)
        let known = Set(view.leases.lazy.map(\.node))
        return zip(view.partitions, targets(view, ending: ending)).enumerated().compactMap { number, place in
            let (row, target) = place
            guard target == id, row.owner != id else { return nil }
            // A live owner releases the partition itself. An owner without a row was ended long ago.
            if let owner = row.owner, known.contains(owner), !ended.contains(owner) { return nil }
            return Heartbeat.Take(partition: number, observedEpoch: row.epoch)
        }
    }

    private mutating func releases(at now: Instant) -> [Heartbeat.Release] {
        var releases: [Heartbeat.Release] = []
        for (partition, ownership) in owned {
            switch ownership {
            case .posting: break
            case .stopping(let epoch, let stoppedAt, let isSettled):
                guard isSettled || now - stoppedAt >= configuration.handoverTimeout else { break }
                owned[partition] = .releasing(epoch: epoch, isSettled: isSettled)
                releases.append(.init(partition: partition, epoch: epoch, isSettled: isSettled))
            case .releasing(let epoch, let isSettled):
                releases.append(.init(partition: partition, epoch: epoch, isSettled: isSettled))
            }
        }
        return releases.sorted { $0.partition < $1.partition }
    }

    private mutating func updateOwnership(_ view: ClusterView) -> [Change] {
        var changes: [Change] = []
        for (partition, row) in view.partitions.enumerated() {
            let known = owned[partition]
            guard row.owner == id else {
                if known != nil {
                    owned[partition] = nil
                    changes.append(.lost(partition))
                }
                continue
            }
            guard known?.epoch != row.epoch else { continue }
            if known != nil { changes.append(.lost(partition)) }
            owned[partition] = .posting(epoch: row.epoch)
            changes.append(.gained(partition, epoch: row.epoch))
        }
        return changes
    }

    private mutating func stopSurplus(_ view: ClusterView, at now: Instant) -> [Change] {
        var changes: [Change] = []
        for (partition, target) in targets(view, ending: []).enumerated() {
            switch owned[partition] {
            case .posting(let epoch)? where target != id:
                owned[partition] = .stopping(epoch: epoch, stoppedAt: now, isSettled: false)
                changes.append(.stop(partition))
            case .stopping(let epoch, _, _)? where target == id:
                owned[partition] = .posting(epoch: epoch)
                changes.append(.resume(partition))
            default: break
            }
        }
        return changes
    }
}
