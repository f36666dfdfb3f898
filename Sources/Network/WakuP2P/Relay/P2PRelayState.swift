import LibP2P
import Core
import Waku

/// The mutable state of a ``P2PRelay``, all of it behind the relay's one lock. Pure: time comes in as a value.
///
/// Its parts decide on their own; the methods here involve several of them.
struct P2PRelayState {
    /// The result of ``updateAttachment(_:isInboxEmpty:at:)``.
    struct AttachmentUpdate: Hashable {
        var wasAttached: Bool
        var isAttached: Bool
        /// Gaps are events to report.
        var losses = P2PProgress.Losses()
        /// Whether queries were added to ``P2PRelayState/lookBack``.
        var needsLookBack = false
    }

    /// Whether this node receives from filter nodes instead of gossiping.
    let isFilterClient: Bool
    var progress: P2PProgress
    var finder: PeerFinder
    var filterPeers: FilterPeers
    var lookBack: QueryLookBack
    var lightpush = AnsweringPeers()
    var storePeers = AnsweringPeers()
    /// Why no messages are received, as far as that is known: one phrase for an operator.
    var detachedReason = "no peer was reached yet"

    /// Content topics of ``P2PRelay/watch(_:)``, the latest last.
    private(set) var watchedTopics: [ContentTopic] = []
    /// Topics that are no longer watched, but that filter nodes may still have.
    private(set) var droppedTopics: Set<ContentTopic> = []

    /// Connections that a task gossips or subscribes over.
    var handledConnections: Set<ObjectIdentifier> = []

    /// Any peer that dials this node may misbehave.
    var misbehaviourLog = LogAllowance()

    private var task: Task<Void, Never>?
    private var isListening = false
    private(set) var isClosed = false
    private var hasReportedTopicLimit = false
    /// The answers of connected peers.
    private(set) var metadata: [PeerID: WakuMetadata] = [:]
    /// Only nodes that this one dialed, and configured ones, are asked.
    private var unreadableStores: Set<PeerID> = []

    init(configuration: P2PRelay.Configuration, own peer: PeerID, at now: Moment) {
        isFilterClient = configuration.contentTopics != nil
        progress = P2PProgress(
            pubsubTopics: configuration.pubsubTopics,
            catchUp: .init(
                contentTopics: configuration.catchUpTopics, learned: configuration.learnedTopics,
                settling: configuration.catchUpSettling, shortestPeriod: configuration.catchUpPeriod),
            stores: configuration.stores,
            lastSeen: configuration.lastSeen, at: now)
        var limits = PeerFinder.Limits()
        limits.target = configuration.peerTarget
        finder = PeerFinder(own: peer, limits: limits)
        filterPeers = FilterPeers(
            pubsubTopicCount: configuration.pubsubTopics.count, ownTopics: configuration.catchUpTopics, timing: configuration.filter)
        lookBack = QueryLookBack(pubsubTopics: configuration.pubsubTopics, window: configuration.lookBackWindow)
    }

    // MARK: Lifecycle

    /// Starts the background task, once, unless the relay is closed.
    mutating func start(_ makeTask: () -> Task<Void, Never>) {
        guard task == nil, !isClosed else { return }
        task = makeTask()
    }

    /// - Returns: Whether this is the first call.
    mutating func startListening() -> Bool {
        defer { isListening = true }
        return !isListening
    }

    /// - Returns: The background task, to be cancelled.
    mutating func close() -> Task<Void, Never>? {
        isClosed = true
        return task
    }

    // MARK: Attachment

    var relayState: RelayState {
        if isClosed { return .detached("the relay was closed") }
        return progress.isAttached ? .attached : .detached(detachedReason)
    }

    /// Records which topics messages are received on, and notes gaps. Called regularly.
    ///
    /// - Parameters:
    ///   - receptions: For each pubsub topic, how it is received. Ignored for a filter client, for which ``filterPeers`` decides.
    ///   - isInboxEmpty: Whether all received messages were delivered.
    mutating func updateAttachment(_ receptions: [TopicReception], isInboxEmpty: Bool, at now: Moment) -> AttachmentUpdate {
        var update = AttachmentUpdate(wasAttached: progress.isAttached, isAttached: false)
        if isFilterClient {
            update.losses = progress.note(filterPeers.takeStanding(), isHandedOver: isInboxEmpty, at: now)
        } else {
            update.losses = progress.note(receptions, isHandedOver: isInboxEmpty, at: now)
            for topic in update.losses.resumed { lookBack.addGap(on: topic, at: now) }
            update.needsLookBack = !update.losses.resumed.isEmpty
        }
        update.isAttached = progress.isAttached
        if update.wasAttached, !update.isAttached { reachedPeer() }
        return update
    }

    /// Records that a peer was reached, which need not mean that it sends messages.
    mutating func reachedPeer() {
        detachedReason = isFilterClient ? "no filter node has accepted this node's topics" : "no peer gossips on a topic of this node"
    }

    /// - Parameters:
    ///   - answer: nil if the peer did not answer.
    ///   - connected: All connected peers: answers of others are forgotten.
    mutating func noteMetadata(_ answer: WakuMetadata?, of peer: PeerID, connected: Set<PeerID>) {
        metadata[peer] = answer
        metadata = metadata.filter { connected.contains($0.key) }
    }

    /// Records messages that peers sent, so that stores do not deliver them again.
    mutating func noteReceived(_ messages: [ReceivedMessage]) {
        progress.noteReceived(messages)
        lookBack.noteReceived(messages)
    }

    /// Records messages that a filter node pushed: each proves its subscription at the time of `moment`.
    mutating func notePushed(_ messages: [ReceivedMessage], by peer: PeerID, at moment: Moment) {
        for message in messages { filterPeers.pushed(by: peer, on: message.message.contentTopic, at: moment) }
    }

    /// Adds topics. Beyond the limit of filter nodes, the oldest are dropped.
    mutating func watch(_ topics: [ContentTopic]) {
        // The same topics again change nothing, however many there are.
        let topics = topics.suffix(filterPeers.watchedLimit)
        droppedTopics.subtract(topics)
        var known = Set(watchedTopics)
        watchedTopics += topics.filter { known.insert($0).inserted }
        let excess = watchedTopics.count - filterPeers.watchedLimit
        if excess > 0 { unwatch(Array(watchedTopics.prefix(excess))) }
    }

    /// Whether a filter node pushes messages on those of the topics that are still watched, of which there must be one.
    func isWatching(_ topics: [ContentTopic]) -> Bool {
        let kept = topics.count > 1 ? Array(Set(topics).intersection(watchedTopics)) : topics
        return kept.isEmpty == topics.isEmpty && filterPeers.areAccepted(kept)
    }

    mutating func unwatch(_ topics: [ContentTopic]) {
        let leaving = Set(topics)
        watchedTopics.removeAll { leaving.contains($0) }
        droppedTopics.formUnion(leaving)
        forgetDroppedTopics()
    }

    /// Keeps only topics that a filter node still has, which bounds them by the node's limit.
    mutating func forgetDroppedTopics() {
        if !droppedTopics.isEmpty { droppedTopics.formIntersection(filterPeers.topics) }
    }

    /// - Returns: Whether to log that a store has unreadable messages: once for each.
    mutating func shouldReportUnreadableStore(of peer: PeerID) -> Bool { unreadableStores.insert(peer).inserted }

    /// - Returns: Whether to log that there are more content topics than a filter node accepts: once.
    mutating func shouldReportTopicLimit() -> Bool {
        defer { hasReportedTopicLimit = true }
        return !hasReportedTopicLimit
    }
}
