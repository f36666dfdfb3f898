package import Delivery
package import Logging
package import NodeMetrics
package import Storage
package import Waku

/// A protocol that a node speaks, as one value: what it listens on, its tables, its metrics, what its deliveries mean, and the service that
/// handles what comes in. Listed in the composition root, and nowhere else.
package protocol NodeProtocol: Sendable {
    /// For operators: in `admin status` and on the page.
    var name: String { get }
    /// In stored rows.
    var number: ProtocolNumber { get }
    /// In metrics.
    var label: ProtocolLabel { get }
    var part: StorePart { get }
    var metrics: [MetricGroup] { get }
    /// Of its counters, those of what was lost: the page lists them.
    var losses: [Counter] { get }
    /// What it listens on, over Waku.
    var topics: any WakuTopics { get }

    /// What delivery knows of it.
    func makeDeliverySource(_ sealer: Sealer) -> any DeliverySource

    /// Puts the service together. Nothing runs yet; reading the store may block.
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
    /// Messages that need no second look after a restart.
    package let handled: HandledMessages
    package let drain: Drain
    package let counters: Counters
    package let logger: Logger
    package let now: @Sendable () -> Timestamp
    /// See ``NodeConfiguration/workLimit``.
    package let workLimit: Int
}

/// Topics of a protocol: one look-up on 4 bytes decides whether a message is worth anything more.
package protocol WakuTopics: Sendable {
    /// The node's own, where registrations and requests come in: what was missed there is worth catching up.
    var own: [ContentTopic] { get }
    /// Others that messages are wanted on at present.
    var otherCount: Int { get }
    /// Whether a message on this topic concerns the protocol.
    func contains(_ tag: TopicTag) -> Bool
    /// The node's own, and as many of the others as there is room for.
    func contentTopics(limit: Int) -> [ContentTopic]
}

/// A protocol at work.
package protocol ProtocolService: Sendable {
    /// Takes the messages on its topics.
    var receiver: any WakuReceiver { get }

    /// What goes on beside the messages; runs until cancelled.
    func run() async

    /// Once a minute: forgets what was remembered before `cutoff`.
    func prune(_ forgetting: Forgetting) async
    /// Once an hour: ends what was not renewed.
    func expire(at now: Timestamp) async
    /// Another process changed the stored rows.
    ///
    /// - Throws: `StoreError`
    func reload() async throws(StoreError)

    /// What waits inside of it, with the limit; nil: none of its own.
    var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] { get }
    /// Sets its gauges: when metrics are scraped.
    func updateGauges(_ counters: Counters) async
    /// Registered devices; nil when it has none or they can't be read now.
    func registrations() async -> RegistrationCounts?
    /// Lines for `admin status` and the page, beside what all protocols have: names and values that are nobody's secrets.
    func facts() async -> [ProtocolFact]
}

/// Until when and how much is remembered.
package struct Forgetting: Sendable {
    /// Deliveries and answers from before are forgotten.
    package let cutoff: Timestamp
    /// Rows of each kind at most.
    package let rowLimit: Int
    /// The time by which tables are pruned that have a memory of their own.
    package let now: Timestamp
}

package struct RegistrationCounts: Sendable {
    package var apn = 0
    package var firebase = 0
    /// Of these, with a token in doubt.
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
}

extension WakuTopics {
    package var otherCount: Int { 0 }
    package func contains(_ tag: TopicTag) -> Bool { own.contains { $0.tag == tag } }
    package func contentTopics(limit: Int) -> [ContentTopic] { Array(own.prefix(limit)) }
}

extension ProtocolService {
    package func run() async {}
    package func prune(_ forgetting: Forgetting) async {}
    package func expire(at now: Timestamp) async {}
    package func reload() async throws(StoreError) {}
    package var queues: [(queue: QueueLabel, depth: Int, limit: Int?)] { [] }
    package func updateGauges(_ counters: Counters) async {}
    package func registrations() async -> RegistrationCounts? { nil }
    package func facts() async -> [ProtocolFact] { [] }
}
