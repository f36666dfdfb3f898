package import Core
package import Delivery
package import Logging
package import NodeMetrics
package import Storage
package import Waku

/// A node's share of the work among the nodes of one identity: the messages it handles, the devices it posts for, the limits it counts. A single node
/// uses ``SoleMembership``.
package protocol ClusterMembership: Sendable {
    /// Whether other nodes may share the work.
    var isShared: Bool { get }
    /// The node's name among them, which it keeps when it is started again; nil for a single node.
    var nodeName: String? { get }

    // MARK: For protocols

    /// Announces whether this node can serve a share of the protocol's keys: see ``ProtocolService/keyShareChanged(_:)``. It can't at first.
    func offerKeys(_ isOffered: Bool)

    // MARK: Messages

    /// Registers incoming messages, each with the protocols that listen on its topic.
    ///
    /// - Returns: the messages that this node handles at once, in their order.
    func hear(_ messages: [(hash: MessageHash, arrivals: [(place: Int, incoming: Incoming)])]) -> [(place: Int, incoming: Incoming)]
    /// Registers a message reassembled from segments, which other nodes may have reassembled too. From now on the outcome of the last segment is the
    /// outcome of the whole.
    ///
    /// - Parameter handle: called if this node has to handle the message later.
    /// - Returns: whether this node handles it at once.
    func hear(_ whole: ReassembledMessage, completedBy hash: MessageHash, handle: @escaping @Sendable () -> Void) -> Bool
    /// Combines a message's effect with a claim that prevents other nodes from applying it too.
    ///
    /// - Parameters:
    ///   - hash: a hash that is the same at every node: that of the reassembled message, if there were segments.
    ///   - sentAt: the time at which the message was sent, also the same at every node.
    func claim<Outcome>(
        _ hash: MessageHash, _ kind: KindLabel, sentAt: Timestamp, for command: StoreCommand<Outcome>
    ) -> StoreCommand<Claimed<Outcome>>
    /// Records that the message's effect is being stored and a client waits for the answer.
    ///
    /// - Parameter giveUp: answers with an error; called when the outcome is not known in time. The effect may still take place.
    func handling(_ hash: MessageHash, _ giveUp: @escaping @Sendable () -> Void)
    /// Records that the message's effect is durable and its answer is not published yet.
    func committed(_ hash: MessageHash)
    /// Records that handling the message has ended, with or without an answer.
    func finished(_ hash: MessageHash)
    /// Records that the message was not handled, for lack of room or because it is a segment: other nodes handle it.
    func abandoned(_ hash: MessageHash)
    func claimedElsewhere(_ hash: MessageHash, _ kind: KindLabel)
    /// Records that the message could not be stored.
    ///
    /// - Parameter giveUp: answers with an error; called when no other node has answered in time.
    func failed(_ hash: MessageHash, _ giveUp: @escaping @Sendable () -> Void)
    /// The minimum time between the starts of two transactions under load.
    var transactionInterval: Duration { get }

    // MARK: Deliveries and maintenance

    /// The devices that this node posts for; nil for all.
    var outboxShare: (any OutboxShare)? { get }
    /// Whether this node does the work that only one node may do, such as pruning.
    var isMaintainer: Bool { get }

    // MARK: Life cycle

    /// Shares the work with the other nodes until cancelled.
    ///
    /// - Parameter duties: of the node, which carries out the membership's decisions. They come here and not with the ``ClusterNeeds``, because
    ///   delivery and protocols are created with the membership.
    func run(_ duties: ClusterDuties) async
    func setDraining(_ isDraining: Bool)
    /// Starts handing this node's share over to other nodes.
    func beginLeaving()
    /// Whether other nodes have taken over this node's share, or there are no other nodes.
    var hasLeft: Bool { get }
    /// Ends the membership.
    func leave() async

    /// Called when options that must be the same at all nodes have changed while the node runs; keyed by option name.
    func replaceSettings(_ settings: [String: String])

    // MARK: Figures

    /// Why the node is not a member with a valid lease; nil while it is.
    var failure: String? { get }
    /// Why this node can't find the notifications of its devices in the database; nil while it can.
    var outboxFailure: String? { get }
    /// How long messages can't be claimed, as the database's clock was ahead; nil if they can.
    var claimGap: Duration? { get }
    /// Whether the clocks of all live nodes, two at least, differ from the database's.
    var areAllClocksOff: Bool { get }
    /// Settings that must be the same at all nodes and differ, one line each.
    var conflicts: [String] { get }
    /// Whether another node has another value of a setting, by the option's name: the nodes may be restarted one after the other with a new value.
    func isDisputed(_ setting: String) -> Bool
    /// Whether a live node is of a release that does not know a setting of this one, by the option's name.
    func isUnknownElsewhere(_ setting: String) -> Bool
    /// The number of nodes that share the messages.
    var nodeCount: Int { get }
    /// The number of device partitions that this node posts for.
    var share: Int { get }
    /// Additional lines for `admin status` and the status page.
    var facts: [ProtocolFact] { get }
    /// All nodes, as this one sees them; nil for a single node, and before the first contact with the others.
    var status: ClusterStatus? { get }
}

/// The parts of a running node that its membership uses.
package struct ClusterDuties: Sendable {
    package let delivery: DeliveryService
    /// Handles messages that are assigned to this node.
    package let deliver: @Sendable ([(place: Int, incoming: Incoming)]) async -> Void
    /// Called when another node changed the devices of a registrant, identified as in ``NodeProtocol/registrants``.
    package let registered: @Sendable (ProtocolNumber, _ name: [UInt8]) -> Void
    /// Called with the number of nodes when it changes.
    package let nodeCountChanged: @Sendable (Int) -> Void
    /// Called with this node's share of the keys when it changes.
    package let keyShareChanged: @Sendable (KeyShare) -> Void
    /// Reloads rows that other nodes changed. False when that failed.
    package let reload: @Sendable () async -> Bool

    package init(
        delivery: DeliveryService, deliver: @escaping @Sendable ([(place: Int, incoming: Incoming)]) async -> Void,
        registered: @escaping @Sendable (ProtocolNumber, _ name: [UInt8]) -> Void,
        nodeCountChanged: @escaping @Sendable (Int) -> Void,
        keyShareChanged: @escaping @Sendable (KeyShare) -> Void, reload: @escaping @Sendable () async -> Bool
    ) {
        self.delivery = delivery
        self.deliver = deliver
        self.registered = registered
        self.nodeCountChanged = nodeCountChanged
        self.keyShareChanged = keyShareChanged
        self.reload = reload
    }
}

/// The properties of a node that its membership needs.
package struct ClusterNeeds: Sendable {
    /// With the tables of the node and its protocols.
    package let store: any Store
    /// The time after which an unanswered post is given up.
    package let gorushTimeout: Duration
    /// The time for which answers are held.
    package let replyDelay: Duration
    /// The maximum size of messages waiting for other nodes, in units of 4 KiB.
    package let waitingLimit: Int
    /// See ``NodeProtocol/registrants``.
    package let registrants: [ProtocolNumber: (table: Table, column: Column)]
    package let counters: Counters
    package let logger: Logger
    /// This machine's clock.
    package let now: @Sendable () -> Timestamp
    /// Called with the time by which this machine's clock is at least ahead of the database's. Returns whether the clock is wrong: then the node
    /// takes no share.
    package let clockCompared: @Sendable (_ ahead: Duration) -> Bool

    package init(
        store: any Store, gorushTimeout: Duration, replyDelay: Duration, waitingLimit: Int,
        registrants: [ProtocolNumber: (table: Table, column: Column)], counters: Counters, logger: Logger,
        now: @escaping @Sendable () -> Timestamp, clockCompared: @escaping @Sendable (_ ahead: Duration) -> Bool
    ) {
        self.store = store
        self.gorushTimeout = gorushTimeout
        self.replyDelay = replyDelay
        self.waitingLimit = waitingLimit
        self.registrants = registrants
        self.counters = counters
        self.logger = logger
        self.now = now
        self.clockCompared = clockCompared
    }
}
