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
/// do now it tries again, with backoff, until it is cancelled.
public protocol Relay: Sendable {
    /// Stays attached until the task is cancelled. While `deliver` runs, nothing more is fetched: that is the back-pressure.
    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async

    /// Returns when a node took the message for publication, and tells how far that goes.
    /// - Throws: ``RelayError``
    @discardableResult
    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication

    /// The same, by another relay than these where there are several and another takes it.
    /// - Parameters:
    ///   - message: What is published.
    ///   - pubsubTopic: Where.
    ///   - avoided: Places of relays, as an earlier publication told them.
    /// - Throws: ``RelayError``
    func publish(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, avoiding avoided: Set<Int>
    ) async throws(RelayError) -> PlacedPublication

    /// Which of these messages the network keeps.
    /// - Parameter hashes: At most ``Publication/lookUpLimit``.
    /// - Throws: ``RelayError``, with `refused` when there is nothing to look them up in.
    func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash>

    /// The same, store by store.
    /// - Throws: ``RelayError``, when no store could be asked.
    func findings(_ hashes: [MessageHash]) async throws(RelayError) -> StoreFindings

    /// What became of publications: a relay whose publications never arrive is no longer the first choice.
    func note(_ verdicts: [RelayVerdict])

    /// For logs and alarms.
    var name: String { get }

    /// Names of relays that are no longer the first choice because none of their publications is confirmed.
    var demotedRelays: [String] { get }

    /// Whether messages can come in at present.
    var state: RelayState { get }

    /// For each pubsub topic up to when nothing was missed, by this machine's clock; without those of which that is not known, or of no
    /// concern.
    var seenUntil: [PubsubTopic: Timestamp] { get }

    /// Messages on these content topics are wanted. A relay that brings everything need not be told.
    func watch(_ contentTopics: [ContentTopic])

    /// Whom it is connected to, where there are several.
    var peers: [RelayPeer] { get }
    var traffic: RelayTraffic { get }
    /// Where others dial it, with who is there.
    var ownAddresses: [String] { get }

    /// Ends its connections, which outlive ``run(deliver:)`` so that what was asked before can still be answered. Nothing is published after.
    func close() async
}

extension Relay {
    public func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        throw RelayError(code: .refused, message: "this relay keeps no messages to look up")
    }

    public func publish(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, avoiding avoided: Set<Int>
    ) async throws(RelayError) -> PlacedPublication {
        PlacedPublication(try await publish(message, on: pubsubTopic), places: [0])
    }

    public func findings(_ hashes: [MessageHash]) async throws(RelayError) -> StoreFindings {
        StoreFindings(found: [0: try await lookUp(hashes)])
    }

    public func note(_ verdicts: [RelayVerdict]) {}
    public var name: String { "relay" }
    public var demotedRelays: [String] { [] }
    public var seenUntil: [PubsubTopic: Timestamp] { [:] }
    public func watch(_ contentTopics: [ContentTopic]) {}
    public var peers: [RelayPeer] { [] }
    public var traffic: RelayTraffic { RelayTraffic() }
    public var ownAddresses: [String] { [] }
    public func close() async {}
}

/// How far a publication got.
public enum Publication: Hashable, Sendable {
    /// To a peer at least.
    case confirmed
    /// To a node, which does not tell whether it went any further. It may show by ``Relay/lookUp(_:)``, where there is something to look in.
    case unconfirmed(canBeLookedUp: Bool)

    /// How many messages are looked up at once: with more, a store's page ends, and so does the room for a node's HTTP headers.
    public static let lookUpLimit = 100
}

/// A publication, and which of several relays took the message.
public struct PlacedPublication: Hashable, Sendable {
    public let publication: Publication
    /// Of the relays, in the operator's order; 0 is a single one.
    public let places: Set<Int>
    /// Whether another relay's store may tell more than the word of the relay that took it.
    public let canBeChecked: Bool

    public init(_ publication: Publication, places: Set<Int>, canBeChecked: Bool = false) {
        self.publication = publication
        self.places = places
        self.canBeChecked = canBeChecked
    }
}

/// What stores keep of the messages that were looked up.
public struct StoreFindings: Hashable, Sendable {
    /// By the places of the relays whose stores were asked, and answered.
    public var found: [Int: Set<MessageHash>]
    /// The places of those whose stores did not answer now, and may later.
    public var unavailable: Set<Int>
    /// Of all relays, asked or not.
    public var relayCount: Int

    public init(found: [Int: Set<MessageHash>], unavailable: Set<Int> = [], relayCount: Int = 1) {
        self.found = found
        self.unavailable = unavailable
        self.relayCount = relayCount
    }
}

/// What a relay tells to be counted.
public enum RelayEvent: Hashable, Sendable {
    /// Messages that nobody wanted, and that were not handed over.
    case foreign(Int)
    /// Messages may have been lost on a pubsub topic.
    case gap
    /// Messages that came from the store alone.
    case recovered(Int)
}

public enum RelayState: Hashable, Sendable {
    case attached
    /// Not now, and why: one phrase for an operator.
    case detached(String)
}

/// Why a message was not published, or not looked up.
public struct RelayError: Error, Hashable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// The node can't be reached, is starting, or has no peers: worth another try.
        case unavailable
        /// The node refuses this: it will refuse it again.
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
