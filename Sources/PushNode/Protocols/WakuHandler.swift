package import Delivery
package import NodeMetrics
package import Storage
package import Waku
package import WakuCrypto

/// A message on a topic of a protocol's.
package struct Incoming: Sendable {
    package let received: ReceivedMessage
    package let hash: MessageHash
    package let tag: TopicTag
    package let times: MessageTimes

    package init(received: ReceivedMessage, hash: MessageHash, tag: TopicTag, times: MessageTimes) {
        self.received = received
        self.hash = hash
        self.tag = tag
        self.times = times
    }

    /// The room that it takes, in units of 4 KiB.
    package var cost: Int { 1 + received.message.payload.count / 4096 }
}

/// The symmetric keys that may open a message.
package enum MessageKeys: Sendable {
    case known([SymmetricKey])
    /// They must be derived first, which takes its time.
    case missing
    /// They must be derived first, unless it opens without them.
    case missingUnlessOwn
}

/// A message that was decoded, and what it asks for.
package struct Decoded<Command: Sendable>: Sendable {
    package let command: Command
    package let kind: KindLabel
    package let hash: MessageHash
    package let pubsubTopic: PubsubTopic
    let cost: Int
    package let times: MessageTimes?

    package init(_ command: Command, _ kind: KindLabel, from incoming: Incoming) {
        self.init(
            command, kind, hash: incoming.hash, pubsubTopic: incoming.received.pubsubTopic, cost: incoming.cost, times: incoming.times)
    }

    package init(
        _ command: Command, _ kind: KindLabel, hash: MessageHash, pubsubTopic: PubsubTopic, cost: Int = 1, times: MessageTimes? = nil
    ) {
        self.command = command
        self.kind = kind
        self.hash = hash
        self.pubsubTopic = pubsubTopic
        self.cost = cost
        self.times = times
    }
}

/// How a protocol handles messages: ``WakuIntake`` calls it at each step.
///
/// A message of the kind `query` is answered from a snapshot, and changes nothing; registrations and requests are decided and committed in the
/// order in which they came. When the node has more to do than it can, queries are dropped first, then requests, registrations never.
package protocol WakuHandler: Sendable {
    associatedtype Command: Sendable
    associatedtype Outcome: Sendable

    /// The keys of a message's topic, at once.
    func keys(of tag: TopicTag) -> MessageKeys
    /// Derives the keys of a topic, or waits for whoever does.
    func deriveKeys(of tag: TopicTag) async throws -> [SymmetricKey]

    /// Decrypts, checks signatures and parses. Needs nothing stored; called on any core.
    ///
    /// - Throws: ``Drop``, with ``NodeMetrics/Counter/droppedUndecryptable`` when none of the keys opens it.
    func decode(_ incoming: Incoming, keys: [SymmetricKey], at now: Timestamp) throws(Drop) -> Decoded<Command>

    /// What a registration or request changes: a pure function of the rows that it reads.
    func change(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<Outcome>
    /// Notifications that an outcome put into the outbox.
    func queued(by outcome: Outcome) -> [QueuedDelivery]
    /// Called once what a registration or request changed is durable, or nothing was kept.
    func finish(_ message: Decoded<Command>, _ result: Result<Outcome, StoreError>)

    /// What a query is answered; nil: nothing.
    func answer(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<Reply?>
    /// Called with the answer to a query before it is published.
    func answered(_ message: Decoded<Command>, _ reply: Reply?)
}

extension WakuHandler {
    package func keys(of tag: TopicTag) -> MessageKeys { .known([]) }
    package func deriveKeys(of tag: TopicTag) async throws -> [SymmetricKey] { [] }
    package func queued(by outcome: Outcome) -> [QueuedDelivery] { [] }
    package func answer(_ message: Decoded<Command>, at now: Timestamp) -> StoreCommand<Reply?> { .done(nil) }
    package func answered(_ message: Decoded<Command>, _ reply: Reply?) {}
}

/// Why a message ends here.
package struct Drop: Error {
    package let counter: Counter

    package init(_ counter: Counter) {
        self.counter = counter
    }
}

/// Takes messages on a protocol's topics.
package protocol WakuReceiver: Sendable {
    /// Returns when all have their place in the order of commits: what is committed from then on is durable after them. Some may follow
    /// later: those whose keys are not at hand.
    func take(_ incoming: [Incoming]) async
    /// Nothing is on its way.
    var isIdle: Bool { get }
    /// What was taken and is not yet stored, in units of 4 KiB, and its limit.
    var load: (depth: Int, limit: Int) { get }
    /// What waits for keys of topics, in the same units.
    var waitingForKeys: Int { get }
}
