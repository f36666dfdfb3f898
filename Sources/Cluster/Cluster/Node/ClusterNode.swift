package import NodeAPI
import Delivery
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

    package static let outbox = Outbox(
        table: DeliveryStorage.outboxTable, accepted: DeliveryStorage.acceptedTable, device: DeliveryStorage.deviceColumn,
        delivery: DeliveryStorage.deliveryColumn, markedAt: DeliveryStorage.markedAtColumn)

    let configuration: Configuration
    let database: any SharedDatabase
    let counters: Counters
    let logger: Logger
    let errors: RepeatedErrors
    let clockCompared: @Sendable (_ ahead: Duration) -> Bool
    let now: @Sendable () -> Timestamp
    let state: Mutex<ClusterState>
    /// The first node id of the process, used in its claims and rows of finished messages. It does not change when the node joins again.
    let first: NodeID
    let store: any Store
    let waitingLimit: Int
    let notices: [Notice]
    /// Separate threads, because the database may hang and other waiting work must not delay lease renewals.
    let heartbeatThread = DispatchQueue(label: "waku-push.cluster.heartbeat")
    let messageThread = DispatchQueue(label: "waku-push.cluster.messages")
    let deliveryThread = DispatchQueue(label: "waku-push.cluster.deliveries")
    let maintenanceThread = DispatchQueue(label: "waku-push.cluster.maintenance")
    let listenerThread = DispatchQueue(label: "waku-push.cluster.listener")
    let messageWakeUp = WakeUpSignal()
    let deliveryWakeUp = WakeUpSignal()
    let heartbeatWakeUp = WakeUpSignal()

    /// Creates the cluster's tables if necessary. Blocks.
    ///
    /// - Parameters:
    ///   - configuration: this node's name, and the times, which must be the same on all nodes.
    ///   - address: the address of the database, in which the store has already created its tables.
    package convenience init(_ configuration: Configuration, _ address: PostgreSQLAddress, for needs: ClusterNeeds) throws(StoreError) {
        var times = configuration.times
        times.gorushTimeout = needs.gorushTimeout
        let database = ClusterDatabase(address, configuration: times, outbox: Self.outbox, version: configuration.version)
        try self.init(configuration, on: database, for: needs)
    }

    /// As ``init(_:_:for:)``, on another database.
    package init(_ configuration: Configuration, on database: any SharedDatabase, for needs: ClusterNeeds) throws(StoreError) {
        var configuration = configuration
        configuration.times.gorushTimeout = needs.gorushTimeout
        configuration.times.replyDelay = needs.replyDelay
        self.configuration = configuration
        self.database = database
        errors = RepeatedErrors(needs.logger)
        clockCompared = needs.clockCompared
        now = needs.now
        counters = needs.counters
        logger = needs.logger
        waitingLimit = needs.waitingLimit
        store = needs.store
        notices = Self.notices(needs.registrants)
        try database.prepare(notices: notices)
        try database.requireFreeName(configuration.name)
        first = NodeID(rawValue: .random(in: 0 ... .max))
        let asked = now()
        let time = try database.now()
        let received = now()
        // Compared before the first heartbeat, so that a node with a wrong clock starts without a share.
        let isClockWrong = clockCompared(Self.difference(toSecond: time, from: asked, until: received))
        var member = ClusterMember(first, name: configuration.name, configuration: configuration.times, at: .now)
        (member.isDraining, member.trouble) = (isClockWrong, isClockWrong ? .wrongClock : nil)
        member.settings = configuration.settings
        state = Mutex(
            ClusterState(
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
    package var nodeName: String? { configuration.name }

    // MARK: Running

    /// Runs the node's tasks in the cluster until cancelled.
    package func run(_ duties: ClusterDuties) async {
        let leases = LeaseRenewal(node: self, duties: duties)
        let messages = MessageSharing(node: self, duties: duties)
        let deliveries = DeliverySharing(node: self, delivery: duties.delivery)
        let notices = NoticeReception(node: self, duties: duties)
        await withDiscardingTaskGroup { group in
            group.addTask { await leases.run() }
            group.addTask { await messages.run() }
            group.addTask { await deliveries.run() }
            group.addTask { await notices.listen() }
            group.addTask { await notices.readChanges() }
            group.addTask { await self.watchStandbys() }
        }
    }

    func onThread<Outcome: Sendable>(
        _ thread: DispatchQueue, _ body: @escaping @Sendable (any SharedDatabase) throws(StoreError) -> Outcome
    ) async -> Result<Outcome, StoreError> {
        await withCheckedContinuation { continuation in
            thread.async { continuation.resume(returning: Result { () throws(StoreError) in try body(self.database) }) }
        }
    }

    // MARK: Leases

    /// Sends the next heartbeat as soon as it may be sent.
    func hastenHeartbeat() {
        state.withLock { $0.member.hasten(at: .now) }
        heartbeatWakeUp.signal()
    }

    /// Replaces options that must be the same on all nodes and were changed while the node runs.
    package func replaceSettings(_ settings: [String: String]) {
        state.withLock { $0.member.settings = $0.member.settings?.merging(settings) { $1 } ?? settings }
    }

    /// The current ``Configuration/settings``.
    var settings: [String: String] { state.withLock { $0.member.settings ?? [:] } }

    /// Conflicts between the nodes, such as different settings: see `ClusterConflicts`.
    package var conflicts: [String] { state.withLock(\.conflicts) }
    package func isDisputed(_ setting: String) -> Bool { state.withLock { $0.disputedSettings.contains(setting) } }
    package func isUnknownElsewhere(_ setting: String) -> Bool { state.withLock { $0.unknownSettings.contains(setting) } }

    /// Announces in the next heartbeat whether this node serves a share of the keys.
    package func offerKeys(_ isOffered: Bool) {
        state.withLock { $0.member.offersKeys = isOffered }
    }

    // MARK: Stopping

    /// Marks this node as leaving. The other nodes take over its share once they have read this from its lease.
    package func beginLeaving() {
        state.withLock { state in
            state.isLeaving = true
            state.updateDraining()
        }
        hastenHeartbeat()
    }

    /// See ``ClusterMember/hasLeft(at:)``.
    package var hasLeft: Bool { state.withLock { $0.member.hasLeft(at: .now) } }

    /// Ends the lease, so that other nodes need not wait until it expires.
    package func leave() async {
        await writeFinished()
        let id = state.withLock(\.member.id)
        _ = await onThread(heartbeatThread) { database throws(StoreError) in
            defer { database.close() }
            try database.leave(id)
        }
    }

    package func setDraining(_ isDraining: Bool) {
        state.withLock { state in
            state.isDrainRequested = isDraining
            state.updateDraining()
        }
        hastenHeartbeat()
    }
}

extension Timestamp {
    /// Whole seconds since 1970.
    var wholeSeconds: Int64 { rawValue / 1_000_000_000 }
}
