package import Core
package import Delivery
package import Logging
package import NodeMetrics
package import Storage
package import Waku

/// A node's part of the work that several nodes of one identity share: which messages it handles, which devices it posts for, which limits it
/// counts. A node alone is a membership of one: ``SoleMembership``.
package protocol ClusterMembership: Sendable {
    /// Whether other nodes may work beside this one.
    var isShared: Bool { get }

    // MARK: For protocols

    /// Tells the other nodes what this one has used of limits that are too low to be divided.
    ///
    /// - Parameters:
    ///   - number: the protocol that has the limits.
    ///   - takes: names that mean the same to all nodes, and how much was used of each.
    func tell(_ number: ProtocolNumber, taken takes: [(String, Int)])
    /// From now on this node can serve a part of the protocol's keys: see ``ProtocolService/shared(as:)``.
    func offerKeys()

    // MARK: Messages

    /// Messages that came in, and for each the protocols that listen on its topic.
    ///
    /// - Returns: those that this node handles at once, in their order.
    func hear(_ messages: [(hash: MessageHash, arrivals: [(place: Int, incoming: Incoming)])]) -> [(place: Int, incoming: Incoming)]
    /// A message that was put together from segments, which other nodes may have put together too. From now on the outcome of the last segment
    /// is the outcome of the whole.
    ///
    /// - Parameters:
    ///   - hash: of that segment.
    ///   - handle: called when it is this node's turn later.
    /// - Returns: whether this node handles it at once.
    func hear(_ whole: ReassembledMessage, completedBy hash: MessageHash, handle: @escaping @Sendable () -> Void) -> Bool
    /// A message's effect, with the claim that keeps other nodes from having it too.
    ///
    /// - Parameters:
    ///   - hash: the same at every node: of the whole, if there were segments.
    ///   - sentAt: likewise.
    func claim<Outcome>(
        _ hash: MessageHash, _ kind: KindLabel, sentAt: Timestamp, for command: StoreCommand<Outcome>
    ) -> StoreCommand<Claimed<Outcome>>
    /// The message's effect is being stored, and a client waits for the answer.
    ///
    /// - Parameter giveUp: answers with an error, when the outcome is not known in time. The effect may still take place.
    func handling(_ hash: MessageHash, _ giveUp: @escaping @Sendable () -> Void)
    /// The message's effect is durable; its answer is not out.
    func committed(_ hash: MessageHash)
    /// The message was handled to the end: answered, or without an answer.
    func finished(_ hash: MessageHash)
    /// The message was not handled, for lack of room or because it is a segment: other nodes take it.
    func abandoned(_ hash: MessageHash)
    func claimedElsewhere(_ hash: MessageHash, _ kind: KindLabel)
    /// The message could not be stored.
    ///
    /// - Parameter giveUp: answers with an error. Called when no other node has answered in time.
    func failed(_ hash: MessageHash, _ giveUp: @escaping @Sendable () -> Void)
    /// The shortest time between the beginnings of two transactions under load.
    var transactionInterval: Duration { get }

    // MARK: Deliveries and maintenance

    /// The devices that this node posts for; nil for all.
    var outboxShare: (any OutboxShare)? { get }
    /// Whether this node does what only one node may do, as pruning.
    var isMaintainer: Bool { get }

    // MARK: Life cycle

    /// Sets the node that the decisions are carried out by. Called once, before anything runs: the membership is one of the parts that this node
    /// is made of.
    func attach(_ node: ClusterDuties, store: any Store, delivery: DeliveryService)
    /// Until cancelled.
    func run() async
    func setDraining(_ isDraining: Bool)
    /// From now on other nodes take over this node's part.
    func beginLeaving()
    /// Whether other nodes have taken over, or there are none.
    var hasLeft: Bool { get }
    /// Ends the membership.
    func leave() async

    /// Options that must be the same at all nodes were changed while the node runs, by their names.
    func replaceSettings(_ settings: [String: String])

    // MARK: Figures

    /// nil while the node is a member whose lease is valid.
    var failure: String? { get }
    /// In what nodes differ that must be the same at all of them, one line each.
    var conflicts: [String] { get }
    /// Nodes that share the messages.
    var nodeCount: Int { get }
    /// How many of the devices' partitions this node posts for.
    var share: Int { get }
    /// For `admin status` and the status page.
    var facts: [ProtocolFact] { get }
}

/// What a node does for the decisions of its membership.
package struct ClusterDuties: Sendable {
    /// Handles messages whose turn it is at this node.
    package let deliver: @Sendable ([(place: Int, incoming: Incoming)]) async -> Void
    /// Devices of a registrant were changed by another node: its name in its protocol's rows, see ``NodeProtocol/registrants``.
    package let registered: @Sendable (ProtocolNumber, _ name: [UInt8]) -> Void
    /// What other nodes have used of limits: see ``ProtocolService/takenElsewhere(_:cost:)``.
    package let taken: @Sendable (ProtocolNumber, _ name: String, _ cost: Int) -> Void
    /// The number of nodes that share the messages from now on.
    package let shared: @Sendable (Int) -> Void
    /// The part of the keys that this node serves from now on.
    package let sharedKeys: @Sendable (KeyShare) -> Void
    /// Reads again what other nodes changed: false when that failed.
    package let reload: @Sendable () async -> Bool

    package init(
        deliver: @escaping @Sendable ([(place: Int, incoming: Incoming)]) async -> Void,
        registered: @escaping @Sendable (ProtocolNumber, _ name: [UInt8]) -> Void,
        taken: @escaping @Sendable (ProtocolNumber, _ name: String, _ cost: Int) -> Void, shared: @escaping @Sendable (Int) -> Void,
        sharedKeys: @escaping @Sendable (KeyShare) -> Void, reload: @escaping @Sendable () async -> Bool
    ) {
        self.deliver = deliver
        self.registered = registered
        self.taken = taken
        self.shared = shared
        self.sharedKeys = sharedKeys
        self.reload = reload
    }
}

/// What a membership needs of the node that it is made for.
package struct ClusterNeeds: Sendable {
    /// After how long an unanswered post is given up.
    package let gorushTimeout: Duration
    /// Messages that wait for other nodes, in units of 4 KiB.
    package let waitingLimit: Int
    /// See ``NodeProtocol/registrants``.
    package let registrants: [ProtocolNumber: (table: Table, column: Column)]
    package let counters: Counters
    package let logger: Logger
    /// This machine's clock.
    package let now: @Sendable () -> Timestamp
    /// Is told by how much this machine's clock is certainly ahead of the database's. Returns whether it is wrong: then the node takes no share.
    package let clockCompared: @Sendable (_ ahead: Duration) -> Bool

    package init(
        gorushTimeout: Duration, waitingLimit: Int, registrants: [ProtocolNumber: (table: Table, column: Column)], counters: Counters,
        logger: Logger, now: @escaping @Sendable () -> Timestamp, clockCompared: @escaping @Sendable (_ ahead: Duration) -> Bool
    ) {
        self.gorushTimeout = gorushTimeout
        self.waitingLimit = waitingLimit
        self.registrants = registrants
        self.counters = counters
        self.logger = logger
        self.now = now
        self.clockCompared = clockCompared
    }
}
