public import Core

/// A connection to the Waku network: nwaku's REST API, libp2p, or a network inside the process.
///
/// It combines a transport for messages with diagnostics for operators.
public protocol Relay: RelayTransport, RelayDiagnostics {}

/// A message that was received, and its pubsub topic.
public struct ReceivedMessage: Hashable, Sendable {
    /// The message, as its sender published it.
    public let message: WakuMessage
    /// The pubsub topic on which it was received.
    public let pubsubTopic: PubsubTopic

    /// - Parameter pubsubTopic: The pubsub topic on which it was received.
    public init(message: WakuMessage, pubsubTopic: PubsubTopic) {
        self.message = message
        self.pubsubTopic = pubsubTopic
    }

    /// The deterministic message hash. Computed on each access: most messages on a shard are for others and never need it.
    public var hash: MessageHash { message.hash(on: pubsubTopic) }
}

extension RelayTransport {
    /// Receives messages, as ``RelayTransport/run(deliver:)`` does, for as long as the sequence is read. Read once at a time.
    ///
    /// - Parameter limit: How many unread messages are held. Beyond that the oldest are dropped: a program that must miss none, and rather slows
    ///   down the senders, calls ``RelayTransport/run(deliver:)``.
    public func messages(limit: Int = 10_000) -> AsyncStream<ReceivedMessage> {
        AsyncStream(bufferingPolicy: .bufferingNewest(limit)) { messages in
            let running = Task {
                await run { batch in for message in batch { messages.yield(message) } }
                messages.finish()
            }
            messages.onTermination = { _ in running.cancel() }
        }
    }
}

/// Whether a relay receives messages.
public enum RelayState: Hashable, Sendable {
    /// Messages on at least one pubsub topic are received.
    case attached
    /// No messages are received, for this reason: one phrase for an operator.
    case detached(String)
}

/// An event that a relay reports to be counted.
public enum RelayEvent: Hashable, Sendable {
    /// Messages on unwanted content topics; they were not delivered.
    case foreign(Int)
    /// Messages may have been lost on a pubsub topic while this process was running.
    case gap
    /// Missed messages could not be looked up in a store, for this reason: one phrase for an operator. Attempts continue. Reported
    /// from the third failure in a row on.
    case catchUpFailed(String)
    /// Missed messages were not all looked up, for this reason: one phrase for an operator. There are no further attempts.
    case catchUpCutShort(String)
    /// Everything that was missed on a pubsub topic, as far as stores have it, was looked up.
    case caughtUp
    /// Messages that were not received live, but fetched from a store.
    case recovered(Int)
    /// A peer's connection was refused or closed in favor of another: the peer's /24 or /64, nil if it has no address.
    case connectionRefused(AddressRange?)
}

/// Why a message was not published or not looked up.
public struct RelayError: Error, Hashable, CustomStringConvertible {
    /// Whether another attempt is worthwhile.
    public enum Code: Hashable, Sendable {
        /// The node is unreachable, starting, or without peers: worth another attempt.
        case unavailable
        /// The node refuses the request and will refuse it again.
        case refused
    }

    /// Whether another attempt is worthwhile.
    public let code: Code
    /// The reason, one phrase for an operator.
    public let message: String

    /// Creates an error with its reason, one phrase for an operator.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// The reason, without the code.
    public var description: String { message }
}
