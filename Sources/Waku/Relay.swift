/// A message that came in, and where.
public struct ReceivedMessage: Hashable, Sendable {
    public let message: WakuMessage
    public let pubsubTopic: PubsubTopic

    public init(message: WakuMessage, pubsubTopic: PubsubTopic) {
        self.message = message
        self.pubsubTopic = pubsubTopic
    }

    /// Computed anew each time: most messages on a shard concern others, and are not worth it.
    public var hash: MessageHash { message.hash(on: pubsubTopic) }
}

/// A way onto the Waku network: nwaku's REST API, or a network in this very process.
///
/// It hands over what arrives on its pubsub topics, the same message perhaps more than once, and publishes. It heals itself: what it can't
/// do now it tries again, with back-off, until it is cancelled.
public protocol Relay: Sendable {
    /// Stays attached until the task is cancelled. While `deliver` runs, nothing more is fetched: that is the back-pressure.
    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async

    /// Returns when a node took the message for publication.
    /// - Throws: ``RelayError``
    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError)

    /// Whether messages can come in at present.
    var state: RelayState { get }

    /// Up to when nothing was missed, by this machine's clock; nil when that is not known, or of no concern.
    var seenUntil: Timestamp? { get }

    /// Messages on these content topics are wanted. A relay that brings everything need not be told.
    func watch(_ contentTopics: [ContentTopic])
}

extension Relay {
    public var seenUntil: Timestamp? { nil }
    public func watch(_ contentTopics: [ContentTopic]) {}
}

public enum RelayState: Hashable, Sendable {
    case attached
    /// Not now, and why: one phrase for an operator.
    case detached(String)
}

/// Why a message was not published.
public struct RelayError: Error, Hashable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// The node can't be reached, is starting, or has no peers: worth another try.
        case unavailable
        /// The node refuses this message: it will refuse it again.
        case refused
    }

    public let code: Code
    public let message: String

    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
