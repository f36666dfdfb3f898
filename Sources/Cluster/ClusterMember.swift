package import Primitives

/// A node's membership: its lease, what it knows of the others, and which partitions it posts for. Heartbeats go out, what they committed comes
/// in; the driver carries out the ``Change``s. One value for each ``NodeID``: after ``Change/ended`` the node joins with a new one.
///
///     per partition:
///     (not owned) ──(a take was committed)──▶ posting ──(its target is another node)──▶ stopping ──(settled, or timeout)──▶ releasing
///          ▲                                     ▲  └───────────(target is this node again)─┘                                   │
///          └──────────────(a committed view shows another epoch or owner)───────────────────────────────────────────────────────┘
///
/// What a node owns is what the view of its last committed heartbeat says, never what it asked for. A heartbeat whose outcome is unknown may be
/// committed later: a take that succeeds so shows in a later view. A release may too, so a partition is never used again under an epoch for
/// which a release was sent.
package struct ClusterMember: Sendable {
    /// What the driver has to do.
    package enum Change: Hashable, Sendable {
        /// Load the partition's rows, and post.
        case gained(PartitionNumber, epoch: UInt64)
        /// Start no more posts; call ``settled(_:)`` when none is unanswered and every outcome is committed.
        case stop(PartitionNumber)
        /// Go on posting after all.
        case resume(PartitionNumber)
        /// Forget its queue. Outcomes of posts that are still unanswered may be committed, as long as the row has this node's mark.
        case lost(PartitionNumber)
        /// Somebody ended the lease: forget all partitions and join again, with a new id.
        case ended
    }

    private enum Ownership: Sendable {
        case posting(epoch: UInt64, since: Instant)
        case stopping(epoch: UInt64, since: Instant, stoppedAt: Instant, isSettled: Bool)
        case releasing(epoch: UInt64, isSettled: Bool)

        var epoch: UInt64 {
            switch self {
            case .posting(let epoch, _), .stopping(let epoch, _, _, _), .releasing(let epoch, _): epoch
            }
        }
    }

    package let id: NodeID
    package private(set) var lease: OwnLease
    /// What the last committed heartbeat read; nil before the first.
    package private(set) var view: ClusterView?
    /// Asked to hand everything over. The next heartbeat says so.
    package var isDraining = false
    /// ``LeaseRow/monitorsAccounts``. The next heartbeat says so.
    package var monitorsAccounts = false
    /// ``LeaseRow/settings``. The next heartbeat says so.
    package var settings: [String: String]?

    private let configuration: ClusterConfiguration
    private let name: String
    /// By which work is divided; nil while a live node is older than this one supports.
    package private(set) var hashingRules: HashingRules?
    private var observer: LeaseObserver
    private var owned: [PartitionNumber: Ownership] = [:]
    private var sentAt: Instant?
    private var nextHeartbeat: Instant
    /// The highest of all nodes that were ever seen: for the posts of those that are gone.
    private var longestGorushTimeout: Duration

    package init(_ id: NodeID, name: String, configuration: ClusterConfiguration, at now: Instant) {
        self.id = id
        self.name = name
        self.configuration = configuration
        lease = OwnLease(configuration)
        hashingRules = configuration.hashingRules.last
        observer = LeaseObserver(configuration)
        nextHeartbeat = now
        longestGorushTimeout = configuration.gorushTimeout
    }

    // MARK: Heartbeats

    /// When ``heartbeat(at:)`` should be asked next; nil while one is unanswered. The driver gives each a timeout of at most the lease.
    package var nextWakeUp: Instant? { sentAt == nil && lease.state != .ended ? nextHeartbeat : nil }

    /// The heartbeat to send now, if one is due.
    package mutating func heartbeat(at now: Instant) -> Heartbeat? {
        guard lease.state != .ended, sentAt == nil, now >= nextHeartbeat else { return nil }
        sentAt = now
        nextHeartbeat = now + configuration.heartbeatInterval
        let row = LeaseRow(
            node: id, state: isDraining ? .draining : .live, name: name,
            hashingVersion: configuration.hashingRules.last?.version ?? HashingRules.first.version,
            gorushTimeout: configuration.gorushTimeout, monitorsAccounts: monitorsAccounts,
            settings: settings)
        // Only a node that is in touch with the database judges others.
        guard let view, lease.isValid(at: now) else {
            return Heartbeat(lease: row, isFirst: lease.state == .pending, ends: [], releases: releases(at: now), takes: [])
        }
        let ends = observer.silent(at: now, except: id)
        return Heartbeat(
            lease: row, isFirst: false, ends: ends, releases: releases(at: now), takes: takes(view, ending: Set(ends.map(\.node))))
    }

    /// - Parameters:
    ///   - view: what the heartbeat read, after its changes.
    ///   - now: when the answer to its COMMIT had been received.
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
        longestGorushTimeout = view.leases.reduce(longestGorushTimeout) { max($0, $1.gorushTimeout) }
        self.view = view
        hashingRules = HashingRules.common(
            to: view.leases.lazy.filter { $0.state != .ended }.map(\.hashingVersion), among: configuration.hashingRules)
        let changes = updateOwnership(view, at: now) + stopSurplus(view, at: now)
        // Nobody posts for what is free: no need to wait a second.
        if !takes(view, ending: []).isEmpty { nextHeartbeat = min(nextHeartbeat, now + configuration.takeoverDelay) }
        return changes
    }

    /// It failed, or nobody knows whether it was committed. The next one goes out when it is due.
    package mutating func heartbeatFailed(at now: Instant) {
        sentAt = nil
    }

    // MARK: Posting

    /// Whether a row may be posted that has this mark, or none.
    package func verdict(on mark: DeliveryMark?, in partition: PartitionNumber, at now: Instant) -> PostingVerdict {
        guard lease.isValid(at: now), case .posting(let epoch, let since)? = owned[partition] else { return .notOwner }
        let own = DeliveryMark(owner: id, epoch: epoch)
        guard let mark else { return .markAndPost(own) }
        if mark == own { return .inProgress }
        // Every former owner had stopped posting before this node's take was committed, and that was before `since`.
        let until = since + longestGorushTimeout
        return now >= until ? .markAndPost(own) : .wait(until: until)
    }

    /// The last check, right before a post is written to its socket: the lease is valid, and the partition still is this ownership's.
    package func mayPost(under mark: DeliveryMark, in partition: PartitionNumber, at now: Instant) -> Bool {
        guard mark.owner == id, lease.isValid(at: now), case .posting(mark.epoch, _)? = owned[partition] else { return false }
        return true
    }

    /// Whether this node does maintenance. Its transactions have owner and epoch as a condition, like marks.
    package func maintenanceMark(at now: Instant) -> DeliveryMark? {
        guard case .markAndPost(let mark) = verdict(on: nil, in: configuration.maintenancePartition, at: now) else { return nil }
        return mark
    }

    /// After ``Change/stop(_:)``: nothing of it is unanswered, and no outcome is uncommitted.
    package mutating func settled(_ partition: PartitionNumber) {
        guard case .stopping(let epoch, let since, let stoppedAt, _)? = owned[partition] else { return }
        owned[partition] = .stopping(epoch: epoch, since: since, stoppedAt: stoppedAt, isSettled: true)
    }

    // MARK: The other nodes

    /// Nodes that messages, accounts and totals of limits are divided among: live and not draining. All that are live, when all drain.
    package var workers: [NodeID] { view.map { Self.workers($0.leases, except: []) } ?? [] }

    /// This node's share of the accounts: of those that the nodes share which offered to; all when none did.
    package var accounts: AccountShare {
        let monitors = view.map { Self.workers($0.leases.filter(\.monitorsAccounts), except: []) } ?? []
        guard let hashingRules else { return AccountShare(of: id, among: [], by: .first) }
        return AccountShare(of: id, among: monitors, by: hashingRules)
    }

    /// This node's place for a message: see ``MessageShare``. After all others where it can't know theirs: then it takes what nobody has taken.
    package func rank(of key: MessageKey) -> Int {
        let workers = workers
        // Before the first view no node is known: one that may take no share leaves messages to others.
        if view == nil, isDraining { return 1 }
        guard let hashingRules else { return workers.count }
        return RendezvousHash.rank(of: id, for: key.prefix, among: workers, by: hashingRules)
    }

    private static func workers(_ leases: [LeaseRow], except ending: Set<NodeID>) -> [NodeID] {
        let live = leases.filter { $0.state != .ended && !ending.contains($0.node) }
        let workers = live.filter { $0.state == .live }
        return (workers.isEmpty ? live : workers).map(\.node)
    }

    // MARK: Partitions

    private func targets(_ view: ClusterView, ending: Set<NodeID>) -> [NodeID?] {
        let live = Set(view.leases.lazy.filter { $0.state != .ended && !ending.contains($0.node) }.map(\.node))
        let partitions = view.partitions.map { row in
            PartitionRow(owner: row.owner.flatMap { live.contains($0) ? $0 : nil }, epoch: row.epoch)
        }
        // The state that the node announces in its next heartbeat counts already.
        let leases = view.leases.map { row in
            var row = row
            if row.node == id, row.state != .ended { row.state = isDraining ? .draining : .live }
            return row
        }
        return PartitionAssignment.targets(partitions, among: Self.workers(leases, except: ending))
    }

    private func takes(_ view: ClusterView, ending: Set<NodeID>) -> [Heartbeat.Take] {
        let ended = Set(view.leases.lazy.filter { $0.state == .ended }.map(\.node)).union(ending)
        let known = Set(view.leases.lazy.map(\.node))
        return zip(view.partitions, targets(view, ending: ending)).enumerated().compactMap { number, place in
            let (row, target) = place
            guard target == id, row.owner != id else { return nil }
            // A living owner gives it up itself. An owner without a row was ended long ago.
            if let owner = row.owner, known.contains(owner), !ended.contains(owner) { return nil }
            return Heartbeat.Take(partition: number, observedEpoch: row.epoch)
        }
    }

    private mutating func releases(at now: Instant) -> [Heartbeat.Release] {
        var releases: [Heartbeat.Release] = []
        for (partition, ownership) in owned {
            switch ownership {
            case .posting: break
            case .stopping(let epoch, _, let stoppedAt, let isSettled):
                guard isSettled || now - stoppedAt >= configuration.handoverTimeout else { break }
                owned[partition] = .releasing(epoch: epoch, isSettled: isSettled)
                releases.append(.init(partition: partition, epoch: epoch, isSettled: isSettled))
            case .releasing(let epoch, let isSettled):
                releases.append(.init(partition: partition, epoch: epoch, isSettled: isSettled))
            }
        }
        return releases.sorted { $0.partition < $1.partition }
    }

    private mutating func updateOwnership(_ view: ClusterView, at now: Instant) -> [Change] {
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
            owned[partition] = .posting(epoch: row.epoch, since: now)
            changes.append(.gained(partition, epoch: row.epoch))
        }
        return changes
    }

    private mutating func stopSurplus(_ view: ClusterView, at now: Instant) -> [Change] {
        var changes: [Change] = []
        for (partition, target) in targets(view, ending: []).enumerated() {
            switch owned[partition] {
            case .posting(let epoch, let since)? where target != id:
                owned[partition] = .stopping(epoch: epoch, since: since, stoppedAt: now, isSettled: false)
                changes.append(.stop(partition))
            case .stopping(let epoch, let since, _, _)? where target == id:
                owned[partition] = .posting(epoch: epoch, since: since)
                changes.append(.resume(partition))
            default: break
            }
        }
        return changes
    }
}
