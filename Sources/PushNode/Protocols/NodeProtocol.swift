package import Cluster
package import Delivery
package import HealthChecks
package import Logging
package import NodeMetrics
package import Storage
package import Waku

/// A protocol that a node speaks: its topics, tables, metrics, delivery source, and the service that handles its messages. Listed only in the
/// composition root.
package protocol NodeProtocol: Sendable {
    /// The name shown in `admin status` and on the status page.
    var name: String { get }
    /// The number that identifies the protocol in stored rows.
    var number: ProtocolNumber { get }
    /// In metrics.
    var label: ProtocolLabel { get }
    var part: StorePart { get }
    var metrics: [MetricGroup] { get }
    /// Those of its counters that count lost messages: the status page lists them.
    var losses: [Counter] { get }
    /// The Waku topics that it listens on; none by default. Other endpoints are its service's: ``ProtocolService/run()``.
    var topics: any WakuTopics { get }

    /// What names a registrant in its rows, where all nodes of a cluster must know of registrants at once: see
    /// ``ProtocolService/registeredElsewhere(_:)``. nil by default.
    var registrants: (table: Table, column: Column)? { get }

    /// Makes the source through which delivery reads the protocol's devices and payloads.
    func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource

    /// Makes the service. Nothing runs yet; reading the store may block.
    ///
    /// - Throws: `StoreError`
    func makeService(_ node: NodeServices) throws -> any ProtocolService
}

/// The parts of a node that a protocol uses.
package struct NodeServices: Sendable {
    package let store: any Store
    package let delivery: DeliveryService
    /// Publishes replies.
    package let replies: any ReplyPublishing
    /// Messages that are not to be handled again after a restart.
    package let handled: HandledMessages
    package let drain: Drain
    /// nil: no other node has this one's identity.
    package let cluster: ClusterNode?
    package let counters: Counters
    package let logger: Logger
    /// For errors that can come with each message.
    package let errors: RepeatedErrors
    package let now: @Sendable () -> Timestamp
    /// See ``NodeConfiguration/workLimit``.
    package let workLimit: Int
    /// See ``NodeConfiguration/answerLimit``.
    package let answerLimit: Duration

    /// The same at all nodes of an identity, and nobody else can tell from it what it is of: 32 bytes.
    package func keyedHash(of bytes: [UInt8], for purpose: String) -> [UInt8] {
        store.sealer.lookUpHash(of: bytes, in: purpose)
    }
}

/// Topics of a protocol: a look-up on 4 bytes decides whether a message is processed.
package protocol WakuTopics: Sendable {
    /// The node's own topics, for registrations and requests. Missed messages on them are caught up.
    var own: [ContentTopic] { get }
    /// The number of other topics that the protocol listens on now.
    var otherCount: Int { get }
    /// Whether the protocol listens on this topic.
    func contains(_ tag: TopicTag) -> Bool
    /// The node's own topics, and others up to the limit.
    func contentTopics(limit: Int) -> [ContentTopic]
}

/// A running protocol.
package protocol ProtocolService: Sendable {
    /// Receives the messages on its topics; none by default.
    var receiver: any WakuReceiver { get }

    /// Background work, which includes listening on endpoints other than topics. Runs until cancelled; the store is open meanwhile.
    ///
    /// - Throws: ``NodeError`` if it can't run at all, for example because an address is in use: the node stops with this error.
    func run() async throws

    /// How long accepted deliveries must be known, and how many; nil: as long as the node remembers them for its own sake.
    var deliveryMemory: DeliveryMemory? { get }
    /// Called once a minute: deletes rows that are older than the cutoff.
    func prune(_ retention: Retention) async
    /// Called once a minute, on each of several nodes: counts what limits rest on.
    func recount() async
    /// Called once an hour: ends registrations that were not renewed.
    func expire(at now: Timestamp) async
    /// Called after another process changed the stored rows.
    ///
    /// - Throws: `StoreError`
    func reload() async throws(StoreError)

    /// A registrant's rows were changed by another node: its name, as in ``NodeProtocol/registrants``. It may be this node's own change.
    func registeredElsewhere(_ name: [UInt8])
    /// So many nodes share the messages from now on.
    func shared(by nodeCount: Int)
    /// Another node has taken from a limit that nodes count together: what it told by ``ClusterNode/tell(_:taken:)``.
    func takenElsewhere(_ name: String, cost: Int)
    /// This node has another share of what is divided by accounts from now on.
    func shared(as share: AccountShare)

    /// Its queues with their limits; nil for those without a limit of their own.
    var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] { get }
    /// Sets its gauges. Called when metrics are scraped.
    func updateGauges(_ counters: Counters) async
    /// Numbers of registered devices; nil if the protocol has none or they can't be read now.
    func registrations() async -> RegistrationCounts?
    /// Results of its checks at this moment: a failed one makes the node not ready; `admin status` and `doctor` list all.
    var findings: [Finding] { get }
    /// Additional lines for `admin status` and the status page: names and values without secrets.
    func facts() async -> [ProtocolFact]
}

/// Which accepted deliveries a protocol needs.
package struct DeliveryMemory: Sendable {
    package let duration: Duration
    /// The maximum number of rows, of all protocols together.
    package let rowLimit: Int

    package init(duration: Duration, rowLimit: Int) {
        (self.duration, self.rowLimit) = (duration, rowLimit)
    }
}

/// Which rows to keep when tables are pruned.
package struct Retention: Sendable {
    /// Deliveries and answers before this time are deleted.
    package let cutoff: Timestamp
    /// Maximum number of rows of each kind.
    package let rowLimit: Int
    /// The current time, for tables with a retention of their own.
    package let now: Timestamp

    /// Keeps what any of them needs, too.
    func covering(_ memories: [DeliveryMemory]) -> Retention {
        Retention(
            cutoff: memories.map { now - $0.duration }.reduce(cutoff, min), rowLimit: memories.map(\.rowLimit).reduce(rowLimit, max),
            now: now)
    }
}

package struct RegistrationCounts: Sendable {
    package var apn = 0
    package var firebase = 0
    /// Those with a token in doubt.
    package var inDoubt = 0
    package var unregistered = 0

    package init() {}
}

package struct ProtocolFact: Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

extension NodeProtocol {
    package var label: ProtocolLabel { .other }
    package var metrics: [MetricGroup] { [] }
    package var losses: [Counter] { [] }
    package var topics: any WakuTopics { NoTopics() }
    package var registrants: (table: Table, column: Column)? { nil }
}

private struct NoTopics: WakuTopics {
    let own: [ContentTopic] = []
}

/// Of a protocol that listens on no topic.
package struct NoReceiver: WakuReceiver {
    package init() {}
    package func take(_ incoming: [Incoming]) async {}
    package var isIdle: Bool { true }
    package var load: (depth: Int, limit: Int) { (0, 0) }
    package var waitingForKeys: Int { 0 }
}

extension WakuTopics {
    package var otherCount: Int { 0 }
    package func contains(_ tag: TopicTag) -> Bool { own.contains { $0.tag == tag } }
    package func contentTopics(limit: Int) -> [ContentTopic] { Array(own.prefix(limit)) }
}

extension ProtocolService {
    package var receiver: any WakuReceiver { NoReceiver() }
    package func run() async throws {}
    package var deliveryMemory: DeliveryMemory? { nil }
    package func prune(_ retention: Retention) async {}
    package func recount() async {}
    package func expire(at now: Timestamp) async {}
    package func reload() async throws(StoreError) {}
    package func registeredElsewhere(_ name: [UInt8]) {}
    package func shared(by nodeCount: Int) {}
    package func takenElsewhere(_ name: String, cost: Int) {}
    package func shared(as share: AccountShare) {}
    package var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] { [] }
    package func updateGauges(_ counters: Counters) async {}
    package func registrations() async -> RegistrationCounts? { nil }
    package var findings: [Finding] { [] }
    package func facts() async -> [ProtocolFact] { [] }
}
