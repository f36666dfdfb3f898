public import Delivery
public import NodeMetrics
public import RateLimits
public import Storage
public import Core
public import Waku
public import WakuCrypto

/// A message on a topic of the protocol.
public struct Incoming: Sendable {
    /// The message, with its pubsub topic.
    public let received: ReceivedMessage
    package let hash: MessageHash
    package let tag: TopicTag
    package let times: MessageTimes
    /// A retry: an earlier attempt, on this or another node, failed or has an unknown outcome, and may have consumed rate limits already.
    package var isRetry = false

    package init(received: ReceivedMessage, hash: MessageHash, tag: TopicTag, times: MessageTimes) {
        self.received = received
        self.hash = hash
        self.tag = tag
        self.times = times
    }

    /// Its share of the work limit, in units of 4 KiB.
    package var cost: Int { Self.cost(byteCount: received.message.payload.count) }

    static func cost(byteCount: Int) -> Int { 1 + byteCount / 4096 }
}

/// The symmetric keys that may decrypt a message.
public enum MessageKeys: Sendable {
    case known([SymmetricKey])
    /// The keys must be derived first, which takes about 7 ms each.
    case missing
    /// The keys must be derived first, unless the message can be decrypted with the node's own key.
    case missingUnlessOwn
}

/// A decoded message with its command.
public struct Decoded<Command: Sendable>: Sendable {
    /// The command that was decoded.
    public let command: Command
    package let kind: KindLabel
    /// The hash of the Waku message.
    public let hash: MessageHash
    /// nil: the message was not one of several segments.
    package let whole: ReassembledMessage?
    package let sentAt: Timestamp?
    package let pubsubTopic: PubsubTopic
    package let cost: Int
    /// The size of its Waku payload, or of the reassembled message.
    package let byteCount: Int
    /// When the message took each step, for metrics and traces.
    public let times: MessageTimes?

    /// - Parameter whole: the reassembled message, when `incoming` was its last segment.
    public init(_ command: Command, _ kind: KindLabel, from incoming: Incoming, whole: ReassembledMessage? = nil) {
        self.init(
            command, kind, hash: incoming.hash, whole: whole, sentAt: whole?.sentAt ?? incoming.received.message.timestamp,
            pubsubTopic: incoming.received.pubsubTopic, cost: whole.map { Incoming.cost(byteCount: $0.byteCount) } ?? incoming.cost,
            byteCount: whole?.byteCount ?? incoming.received.message.payload.count, times: incoming.times)
    }

    package init(
        _ command: Command, _ kind: KindLabel, hash: MessageHash, whole: ReassembledMessage? = nil, sentAt: Timestamp? = nil,
        pubsubTopic: PubsubTopic, cost: Int = 1, byteCount: Int = 512, times: MessageTimes? = nil
    ) {
        self.command = command
        self.kind = kind
        self.hash = hash
        self.whole = whole
        self.sentAt = sentAt
        self.pubsubTopic = pubsubTopic
        self.cost = cost
        self.byteCount = byteCount
        self.times = times
    }

    /// The hash of the reassembled message if there were segments, otherwise of the message: the same at every node.
    package var wholeHash: MessageHash { whole?.hash ?? hash }
}

/// How a protocol handles messages: the node calls it at each step.
///
/// A message of the kind `query` is answered from a snapshot and changes nothing. Registrations and requests are decided and committed in the
/// order in which they came in, except for large requests: they are committed in parts, which take turns. Under overload large requests are dropped
/// first, then queries, then other requests; registrations are never dropped.
public protocol WakuHandler: Sendable {
    associatedtype Command: Sendable
    associatedtype Outcome: Sendable

    /// The keys of a message's topic. Must not block.
    func keys(of tag: TopicTag) -> MessageKeys
    /// Derives the keys of a topic, or waits for a derivation that is in progress. Returns nil if it was displaced by others.
    func deriveKeys(of tag: TopicTag) async throws -> [SymmetricKey]?
    /// The payer of the derivation of a topic's keys, and of the room for the messages that wait for them.
    func charge(of tag: TopicTag, at now: Timestamp) -> Charge
    /// Called when a message was displaced while it waited.
    func displaced(_ limit: RateLimitTable.Refusal, _ standing: Standing)

    /// Decrypts, verifies signatures and parses. Does not read the store; called concurrently on any thread.
    ///
    /// - Throws: ``Drop``, with `Counter.droppedUndecryptable` when none of the keys decrypts it.
    func decode(_ incoming: Incoming, keys: [SymmetricKey], at now: Timestamp) throws(Drop) -> Decoded<Command>

    /// The changes of a registration or request, as a pure function of the rows that it reads.
    func change(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<Outcome>
    /// The notifications that a command put into the outbox.
    func queued(by outcome: Outcome) -> [QueuedDelivery]
    /// Called when the changes of a registration or request are durable, or have failed.
    func finish(_ message: Decoded<Command>, _ result: Result<Outcome, StoreError>)

    // Only for protocols with requests that are committed in parts.

    /// Whether this is a request that is too large to be committed at once.
    func isLarge(_ message: Decoded<Command>) -> Bool
    /// The payer of the next turn of a request that is committed in parts, and the largest number of devices in this part; nil for other messages. A
    /// payer that is not known yet is a stranger.
    ///
    /// - Parameter outcome: of the parts before; nil for the first one.
    func turns(of message: Decoded<Command>, after outcome: Outcome?, at now: Timestamp) -> (charge: Charge, size: Int)?
    /// The next part of a request that is not complete: a large one, or one that turned out to have more devices than a part may; nil when it is
    /// complete.
    ///
    /// - Parameter outcome: of the parts before, which are durable.
    func change(_ message: Decoded<Command>, after outcome: Outcome, at now: Timestamp) -> StoreCommand<Outcome>?
    /// Called when a part of such a request is durable, and its notifications are queued.
    func committed(_ message: Decoded<Command>, part outcome: Outcome)

    // Only for protocols with queries.

    /// The reply to a query; nil for none.
    func answer(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<Reply?>
    /// Called with the reply to a query before it is published.
    func answered(_ message: Decoded<Command>, _ reply: Reply?)
}

extension WakuHandler {
    public func keys(of tag: TopicTag) -> MessageKeys { .known([]) }
    public func deriveKeys(of tag: TopicTag) async throws -> [SymmetricKey]? { [] }
    public func charge(of tag: TopicTag, at now: Timestamp) -> Charge { .unattributed }
    public func displaced(_ limit: RateLimitTable.Refusal, _ standing: Standing) {}
    public func isLarge(_ message: Decoded<Command>) -> Bool { false }
    public func turns(of message: Decoded<Command>, after outcome: Outcome?, at now: Timestamp) -> (charge: Charge, size: Int)? { nil }
    public func change(_ message: Decoded<Command>, after outcome: Outcome, at now: Timestamp) -> StoreCommand<Outcome>? { nil }
    public func committed(_ message: Decoded<Command>, part outcome: Outcome) {}
    public func queued(by outcome: Outcome) -> [QueuedDelivery] { [] }
    public func answer(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<Reply?> { .done(nil) }
    public func answered(_ message: Decoded<Command>, _ reply: Reply?) {}
}

/// The reason for dropping a message, as the counter that is incremented.
public struct Drop: Error {
    package let counter: Counter
    /// Whether another node may handle the message, because its share of a limit is not used up.
    package let isLeftToOthers: Bool
    /// Set for a segment that was kept: the announced hash of the whole message.
    package let segmentOf: [UInt8]?

    /// A drop that is counted.
    public init(_ counter: Counter, isLeftToOthers: Bool = false, segmentOf: [UInt8]? = nil) {
        self.counter = counter
        self.isLeftToOthers = isLeftToOthers
        self.segmentOf = segmentOf
    }
}

/// Receives messages on a protocol's topics.
public protocol WakuReceiver: Sendable {
    /// Returns when all messages have been submitted to the store, except those waiting for topic keys: later commits come after them.
    func take(_ incoming: [Incoming]) async
    /// Whether no message is being processed.
    var isIdle: Bool { get }
    /// Messages that are accepted and not yet stored, in units of 4 KiB, and the limit.
    var load: (depth: Int, limit: Int) { get }
    /// Messages that wait for topic keys, and the limit, in the same units.
    var waitingForKeys: (depth: Int, limit: Int) { get }
}

/// The receiver of a protocol without topics.
package struct NoReceiver: WakuReceiver {
    package init() {}

    package func take(_ incoming: [Incoming]) async {}
    package var isIdle: Bool { true }
    package var load: (depth: Int, limit: Int) { (0, 0) }
    package var waitingForKeys: (depth: Int, limit: Int) { (0, 0) }
}
