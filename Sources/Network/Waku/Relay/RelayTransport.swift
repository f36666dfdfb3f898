public import Core

/// Receives and publishes messages, and looks them up in stores.
///
/// A transport delivers the messages of its pubsub topics at least once: the same message may arrive several times. It recovers by itself:
/// failures are retried with backoff until ``run(deliver:)`` is cancelled, and messages that may have been missed are fetched from a store
/// where there is one.
public protocol RelayTransport: Sendable {
    // MARK: Receiving

    /// Receives messages until the task is cancelled; may be called again then. A relay serves one caller at a time: the relays of this package let another
    /// call wait until the first has ended.
    ///
    /// - Parameter deliver: Called with batches of messages, from several tasks at once where a relay has several sources. A source is not read
    ///   while it runs, which slows down the senders.
    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async

    /// Adds content topics on which messages are to be received. A relay that receives all content topics ignores it.
    func watch(_ contentTopics: [ContentTopic])

    /// Removes content topics added by ``watch(_:)``: messages on them need not be received any longer. A relay that receives all content topics
    /// ignores it.
    func unwatch(_ contentTopics: [ContentTopic])

    /// Whether messages are received at present.
    var state: RelayState { get }

    /// For each pubsub topic, the time by the local clock up to which no message was missed. Topics for which that is unknown, or for which missed
    /// messages do not matter, are absent. The caller stores it and passes it to the relay after a restart, to catch up from there.
    var seenUntil: [PubsubTopic: Timestamp] { get }

    // MARK: Publishing

    /// Publishes a message.
    ///
    /// - Returns: The known progress of the publication, once a node accepted the message.
    @discardableResult
    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication

    /// Publishes a message again, through another relay than before where there are several.
    ///
    /// - Parameter avoided: Indices of relays to try last, from ``PlacedPublication/places`` of the earlier publication.
    func publish(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, avoiding avoided: Set<Int>
    ) async throws(RelayError) -> PlacedPublication

    /// Records whether publications were confirmed. Where there are several relays, one whose publications never arrive loses its rank.
    func note(_ verdicts: [RelayVerdict])

    // MARK: Stores

    /// Looks up which of these messages are in a store.
    ///
    /// - Parameter hashes: At most ``Publication/lookUpLimit``.
    /// - Throws: ``RelayError``, with `refused` when there is no store.
    func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash>

    /// Looks up which of these messages are in which relay's store.
    ///
    /// - Parameter hashes: At most ``Publication/lookUpLimit``.
    /// - Throws: ``RelayError``, when no store answered.
    func findings(_ hashes: [MessageHash]) async throws(RelayError) -> StoreFindings

    // MARK: Closing

    /// Closes the connections, which outlive ``run(deliver:)`` so that pending answers can still be published. Nothing is published
    /// afterwards.
    func close() async
}

/// Defaults for a single relay that receives all content topics, has no store, and holds no connections.
extension RelayTransport {
    /// No effect: all content topics are received.
    public func watch(_ contentTopics: [ContentTopic]) {}
    /// No effect: all content topics are received.
    public func unwatch(_ contentTopics: [ContentTopic]) {}
    /// Empty: missed messages are not caught up with.
    public var seenUntil: [PubsubTopic: Timestamp] { [:] }

    /// Publishes through the only relay there is, place 0.
    public func publish(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, avoiding avoided: Set<Int>
    ) async throws(RelayError) -> PlacedPublication {
        PlacedPublication(try await publish(message, on: pubsubTopic), places: [0])
    }

    /// No effect: a single relay has no rank to lose.
    public func note(_ verdicts: [RelayVerdict]) {}

    /// Throws `refused`: there is no store.
    public func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        throw RelayError(code: .refused, message: "this relay keeps no messages to look up")
    }

    /// The result of ``lookUp(_:)``, as found at place 0.
    public func findings(_ hashes: [MessageHash]) async throws(RelayError) -> StoreFindings {
        StoreFindings(found: [0: try await lookUp(hashes)])
    }

    /// No effect: there are no connections.
    public func close() async {}
}
