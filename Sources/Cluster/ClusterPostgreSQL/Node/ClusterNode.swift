package import NodeAPI
package import Cluster
package import Delivery
import Dispatch
import Logging
import NodeMetrics
import Core
package import Storage
package import StorePostgreSQL
import Synchronization
import Waku

/// This node as a member of a cluster of nodes with the same identity and database. Executes the decisions of `ClusterMember` and `MessageShare`.
///
/// The cluster's own statements go through ``ClusterDatabase``, on dedicated threads. Claims and delivery marks are written through the store, in
/// the transaction of the message's effect or of the delivery. See the articles of `Cluster`.
package final class ClusterNode: ClusterMembership {
    package struct Configuration: Sendable {
        /// The name shown to operators, usually the host name. Must be unique in the cluster.
        package var name: String
        /// The version of the program.
        package var version = ""
        package var times = ClusterConfiguration()
        /// The options that must be the same on all nodes, by name.
        package var settings: [String: String] = [:]

        package init(name: String) {
            self.name = name
        }
    }

    /// A message whose outcome this node does not know yet.
    struct Entry: Sendable {
        /// How to handle the message; `none` once its effect is durable.
        var turn: Turn
        let heardAt: Instant
        let sentAt: Timestamp
        /// In units of 4 KiB.
        let cost: Int
        /// The number of protocols that have not reported the outcome yet.
        var open = 0
        /// The outcome that a protocol reported, unless it finished handling the message.
        var outcome: MessageShare.Outcome?
        /// Whether a protocol gave up the message: see `MessageShare.abandon`.
        var isAbandoned = false
        var takesOver = false
        /// Answers the client with an error.
        var giveUp: (@Sendable () -> Void)?
    }

    /// How this node handles a message.
    enum Turn: Sendable {
        /// These protocols decode and handle it.
        case arrivals([(place: Int, incoming: Incoming)])
        /// Reassembled from segments and decoded; the closure continues from there.
        case reassembled(@Sendable () -> Void)
        case none

        /// The number of protocols that handle the message.
        var count: Int {
            switch self {
            case .arrivals(let arrivals): arrivals.count
            case .reassembled: 1
            case .none: 0
            }
        }
    }

    struct State: Sendable {
        var member: ClusterMember
        var share: MessageShare
        var entries: [MessageKey: Entry] = [:]
        /// The keys of reassembled messages, by the key of the segment that arrived last.
        var wholes: [MessageKey: MessageKey] = [:]
        /// The total cost of the messages that wait for other nodes, in units of 4 KiB.
        var waitingCost = 0
        /// The time of the next search for expired entries.
        var nextSweep = Instant(sinceEpoch: .zero)
        var window: ClaimWindow
        /// How far the database's clock is ahead of this node's, in seconds.
        var clockOffset: Int64 = 0
        /// For each node, the sequence number of the last row of finished messages that was read.
        var finishedUpTo: [NodeID: Int64] = [:]
        /// Partitions whose outbox rows the next scan reads.
        var toScan: Set<PartitionNumber> = []
        var stopping: Set<PartitionNumber> = []
        /// Deliveries that gorush has accepted, from other nodes' notifications; not looked up yet.
        var ended: Set<DeliveryID> = []
        var isLeaving = false
        /// Whether the operator requested the drain.
        var isDrainRequested = false
        var isClockWrong = false
        /// Why the last heartbeat was not committed; nil if it was, or before the first one has ended.
        var heartbeatFailure: String?
        /// See `ClusterConflicts`.
        var conflicts: [String] = []
        /// The number of nodes that share the messages, as last passed to the protocols.
        var nodeCount = 1
        /// This node's share of the accounts, as last passed to the protocols.
        var accounts: AccountShare?
        /// Counts the changes of ``accounts``.
        var accountGeneration = 0
    }

    package static let outbox = Outbox(
        DeliveryStorage.outboxTable, accepted: DeliveryStorage.acceptedTable, device: DeliveryStorage.deviceColumn,
        delivery: DeliveryStorage.deliveryColumn, markedAt: DeliveryStorage.markedAtColumn)

    let configuration: Configuration
    let database: ClusterDatabase
    let address: PostgreSQLAddress
    let counters: Counters
    let logger: Logger
    let errors: RepeatedErrors
    private let clockCompared: @Sendable (_ ahead: Duration) -> Bool
    private let now: @Sendable () -> Timestamp
    let state: Mutex<State>
    /// The first node id of the process, used in its claims and rows of finished messages. It does not change when the node joins again.
    let first: NodeID
    private let duties = Mutex<ClusterDuties?>(nil)
    private let parts = Mutex<(store: any Store, delivery: DeliveryService)?>(nil)
    let waitingLimit: Int
    let notices: [Notice]
    /// Separate threads, because the database may hang and other waiting work must not delay lease renewals.
    let heartbeatThread = DispatchQueue(label: "waku-push.cluster.heartbeat")
    let messageThread = DispatchQueue(label: "waku-push.cluster.messages")
    let deliveryThread = DispatchQueue(label: "waku-push.cluster.deliveries")
    let maintenanceThread = DispatchQueue(label: "waku-push.cluster.maintenance")
    let listenerThread = DispatchQueue(label: "waku-push.cluster.listener")
    /// Usage of shared limits at this node that the other nodes have not been notified of yet.
    let unpublishedUsage = Mutex(UnpublishedLimitUsage())
    let limitUsageWakeUp = WakeUpSignal()
    let messageWakeUp = WakeUpSignal()
    let deliveryWakeUp = WakeUpSignal()

    /// Creates the cluster's tables if necessary. Blocks.
    ///
    /// - Parameters:
    ///   - configuration: this node's name, and the times, which must be the same on all nodes.
    ///   - address: the address of the database, in which the store has already created its tables.
    ///   - needs: of the node.
    package init(_ configuration: Configuration, _ address: PostgreSQLAddress, for needs: ClusterNeeds) throws(StoreError) {
        var configuration = configuration
        configuration.times.gorushTimeout = needs.gorushTimeout
        self.configuration = configuration
        self.address = address
        errors = RepeatedErrors(needs.logger)
        clockCompared = needs.clockCompared
        now = needs.now
        counters = needs.counters
        logger = needs.logger
        waitingLimit = needs.waitingLimit
        database = ClusterDatabase(
            address, configuration: configuration.times, outbox: Self.outbox, version: configuration.version)
        notices = Self.notices(needs.registrants)
        try database.prepare(notices: notices)
        try database.requireFreeName(configuration.name)
        var generator = SystemRandomNumberGenerator()
        first = NodeID(using: &generator)
        let asked = now()
        let time = try database.now()
        let received = now()
        // Compared before the first heartbeat, so that a node with a wrong clock starts without a share.
        let isClockWrong = clockCompared(Self.difference(toSecond: time, from: asked, until: received))
        var member = ClusterMember(first, name: configuration.name, configuration: configuration.times, at: .now)
        member.isDraining = isClockWrong
        member.settings = configuration.settings
        state = Mutex(
            State(
                member: member, share: MessageShare(first, configuration: configuration.times), window: try database.claimWindow(),
                clockOffset: time - Timestamp.now().wholeSeconds, isClockWrong: isClockWrong))
    }

    /// - Parameter second: the database's time, in whole seconds since 1970, rounded down.
    private static func difference(toSecond second: Int64, from start: Timestamp, until end: Timestamp) -> Duration {
        let (start, end) = (Duration.nanoseconds(start.rawValue), Duration.nanoseconds(end.rawValue))
        return max(
            .zero, ClockWatch.certainDifference(to: .seconds(second + 1), from: start, until: end))
            + min(.zero, ClockWatch.certainDifference(to: .seconds(second), from: start, until: end))
    }

    package let isShared = true

    package func attach(_ node: ClusterDuties, store: any Store, delivery: DeliveryService) {
        duties.withLock { $0 = node }
        parts.withLock { $0 = (store, delivery) }
    }

    var attached: ClusterDuties? { duties.withLock(\.self) }
    var store: (any Store)? { parts.withLock { $0?.store } }
    var delivery: DeliveryService? { parts.withLock { $0?.delivery } }

    // MARK: Running

    /// Runs the node's tasks in the cluster until cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.beat() }
            group.addTask { await self.shareMessages() }
            group.addTask { await self.shareDeliveries() }
            group.addTask { await self.listen() }
            group.addTask { await self.readChanges() }
            group.addTask { await self.publishLimitUsage() }
        }
    }

    func onThread<Outcome: Sendable>(
        _ thread: DispatchQueue, _ body: @escaping @Sendable () throws(StoreError) -> Outcome
    ) async -> Result<Outcome, StoreError> {
        await withCheckedContinuation { continuation in
            thread.async { continuation.resume(returning: Result { () throws(StoreError) in try body() }) }
        }
    }

    // MARK: Leases

    private func beat() async {
        var failure: String?
        while !Task.isCancelled {
            let now = Instant.now
            if let heartbeat = state.withLock({ $0.member.heartbeat(at: now) }) {
                let result = await onThread(heartbeatThread) { [database] () throws(StoreError) in try database.heartbeat(heartbeat) }
                let changes = state.withLock { state in
                    switch result {
                    case .success(let view):
                        state.heartbeatFailure = nil
                        return state.member.heartbeatCommitted(view, at: .now)
                    case .failure(let error):
                        state.heartbeatFailure = error.message
                        state.member.heartbeatFailed(at: .now)
                        return []
                    }
                }
                if case .failure(let error) = result {
                    if failure == nil { logger.error("lease not renewed", metadata: ["reason": "\(error.message)"]) }
                    failure = error.message
                } else if failure != nil {
                    failure = nil
                    logger.info("lease renewed again")
                }
                if case .success(let view) = result {
                    compareClocks(view)
                    noteConflicts(view)
                }
                carryOut(changes)
                noteNodes()
            }
            let next = state.withLock { $0.member.nextWakeUp } ?? now + configuration.times.heartbeatInterval
            guard (try? await next.sleep()) != nil else { return }
        }
    }

    private func compareClocks(_ view: ClusterView) {
        guard let reading = view.clock else { return }
        let (wall, instant) = (Duration.nanoseconds(now().rawValue), Instant.now)
        let ahead = ClockWatch.certainDifference(
            to: reading.time, from: wall - (instant - reading.askedAt), until: wall - (instant - reading.receivedAt))
        let isWrong = clockCompared(ahead)
        state.withLock { state in
            state.isClockWrong = isWrong
            state.updateDraining()
        }
    }

    private func noteConflicts(_ view: ClusterView) {
        let new = state.withLock { state in
            let conflicts = ClusterConflicts.find(in: view, of: state.member.id)
            defer { state.conflicts = conflicts }
            return conflicts.filter { !state.conflicts.contains($0) }
        }
        for conflict in new { logger.warning("nodes differ", metadata: ["reason": "\(conflict)"]) }
    }

    /// Replaces options that must be the same on all nodes and were changed while the node runs.
    package func replaceSettings(_ settings: [String: String]) {
        state.withLock { $0.member.settings = $0.member.settings?.merging(settings) { $1 } ?? settings }
    }

    /// The current ``Configuration/settings``.
    var settings: [String: String] { state.withLock { $0.member.settings ?? [:] } }

    /// Conflicts between the nodes, such as different settings: see `ClusterConflicts`.
    package var conflicts: [String] { state.withLock(\.conflicts) }

    private func noteNodes() {
        let (count, accounts, generation) = state.withLock { state -> (Int?, AccountShare?, Int) in
            let workers = state.member.workers
            let count = max(1, workers.count)
            let accounts = state.member.accounts
            // Before the first membership view no node is known: keep the former share.
            let isOther = state.member.view != nil && accounts != state.accounts
            defer { (state.nodeCount, state.accounts) = (count, isOther ? accounts : state.accounts) }
            if isOther { state.accountGeneration += 1 }
            return (count == state.nodeCount ? nil : count, isOther ? accounts : nil, state.accountGeneration)
        }
        if let accounts { attached?.keyShareChanged(KeyShare(accounts, generation: generation)) }
        guard let count else { return }
        logger.info("nodes share the work", metadata: ["nodes": "\(count)"])
        attached?.nodeCountChanged(count)
        store?.paceCommits(transactionInterval)
    }

    private func carryOut(_ changes: [ClusterMember.Change]) {
        guard !changes.isEmpty else { return }
        var left: Set<PartitionNumber> = []
        var hasEnded = false
        state.withLock { state in
            for change in changes {
                switch change {
                case .gained(let partition, _), .resume(let partition):
                    state.stopping.remove(partition)
                    state.toScan.insert(partition)
                case .stop(let partition):
                    state.stopping.insert(partition)
                    left.insert(partition)
                case .lost(let partition):
                    state.stopping.remove(partition)
                    left.insert(partition)
                case .ended:
                    hasEnded = true
                    rejoin(&state)
                }
            }
        }
        if hasEnded {
            logger.warning("the node was silent for too long, and others took its share: it joins again")
            delivery?.leave { _ in true }
        } else if !left.isEmpty {
            delivery?.leave { [self] in left.contains(partition(of: $0)) }
        }
        deliveryWakeUp.signal()
    }

    private func rejoin(_ state: inout State) {
        var generator = SystemRandomNumberGenerator()
        state.stopping = []
        state.toScan = []
        guard !state.isLeaving else { return }
        let former = state.member
        defer {
            (state.member.isDraining, state.member.monitorsAccounts) = (former.isDraining, former.monitorsAccounts)
            state.member.settings = former.settings
        }
        state.member = ClusterMember(
            NodeID(using: &generator), name: configuration.name, configuration: configuration.times,
            at: .now)
    }

    /// Declares that this node can monitor its share of the accounts at Session's storage servers.
    package func offerKeys() {
        state.withLock { $0.member.monitorsAccounts = true }
    }

    // MARK: Stopping

    /// Marks this node as leaving. The other nodes take over its share once they have read this from its lease.
    package func beginLeaving() {
        state.withLock { state in
            state.isLeaving = true
            state.updateDraining()
        }
    }

    /// Whether this node owns no partition any more, or there is no other live node to take its partitions.
    package var hasLeft: Bool {
        state.withLock { state in
            guard let view = state.member.view else { return true }
            let id = state.member.id
            let isAlone = !view.leases.contains { $0.node != id && $0.state == .live }
            return isAlone || !view.partitions.contains { $0.owner == id }
        }
    }

    /// Ends the lease, so that other nodes need not wait until it expires.
    package func leave() async {
        await writeFinished()
        let id = state.withLock(\.member.id)
        _ = await onThread(heartbeatThread) { [database] () throws(StoreError) in
            defer { database.close() }
            try database.leave(id)
        }
    }

    // MARK: Figures

    /// Whether this node currently runs the maintenance that only one node may run at a time.
    package var isMaintainer: Bool { state.withLock { $0.member.maintenanceMark(at: .now) != nil } }

    /// The reason why the node has no valid lease; nil while it has one.
    package var failure: String? {
        state.withLock { state in
            // A node that can't reach the database can't know whether other nodes have taken over its share.
            state.member.lease.isValid(at: .now)
                ? nil
                : "the lease in the database is not renewed, and nothing is posted until it is: \(state.heartbeatFailure ?? "no answer yet")"
        }
    }

    /// The number of device partitions for which this node posts notifications.
    package var share: Int {
        state.withLock { state in
            let now = Instant.now
            return (0..<configuration.times.partitionCount).count {
                if case .markAndPost = state.member.verdict(on: nil, in: $0, at: now) { true } else { false }
            }
        }
    }

    /// The number of nodes that share the messages.
    package var nodeCount: Int { state.withLock(\.nodeCount) }

    /// The value for `Core/Pacing/interval`; zero if this is the only node.
    package var transactionInterval: Duration {
        let count = nodeCount
        return count > 1 ? configuration.times.transactionInterval * count : .zero
    }

    /// The number of messages whose outcome this node does not know yet.
    var openCount: Int { state.withLock(\.share.openCount) }

    /// For `admin status` and the status page.
    package var facts: [ProtocolFact] {
        [
            ProtocolFact("node", configuration.name), ProtocolFact("nodes that share the messages", "\(nodeCount)"),
            ProtocolFact("partitions of this node", "\(share) of \(configuration.times.partitionCount)"),
            ProtocolFact("messages under way", "\(openCount)"),
        ] + conflicts.map { ProtocolFact("nodes differ", $0) }
    }

    package func setDraining(_ isDraining: Bool) {
        state.withLock { state in
            state.isDrainRequested = isDraining
            state.updateDraining()
        }
    }
}

extension ClusterNode.State {
    /// A node takes no share while others can if it stops, if it is drained, or if its clock is wrong.
    fileprivate mutating func updateDraining() {
        member.isDraining = isLeaving || isDrainRequested || isClockWrong
    }
}

extension KeyShare {
    init(_ accounts: AccountShare, generation: Int) {
        self.init(generation: generation, nodeCount: accounts.nodes.count) { accounts.contains($0) }
    }
}

extension Timestamp {
    /// Whole seconds since 1970.
    var wholeSeconds: Int64 { rawValue / 1_000_000_000 }
}
