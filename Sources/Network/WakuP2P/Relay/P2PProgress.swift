import Core
import Waku

/// The progress of receiving from the network: attachment and catching up, for each pubsub topic.
///
///     unknown ──(covered)──▶ covered ──(not covered, suspended)──▶ interrupted ──(covered: a gap)──▶ covered
///
/// A topic is attached while peers that subscribed to it are connected, or filter nodes accepted this node's topics. It is covered while the mesh has a
/// peer that this node chose: any other may be there to keep messages back, and a peer outside of the mesh need not announce every message.
/// Messages published while it is not covered are fetched from a store; so are those published since the last proof of ``TopicCoverage``, while this process was suspended, between two runs, and after the last
/// proof of a filter subscription that was found to be lost.
struct P2PProgress {
    struct Topic {
        var catchUp: StoreCatchUp
        /// Names the stores of ``catchUp``.
        var stores: StoreChoice
        var isAttached = false
        var isCovered = false
        /// Whether it was covered in this run.
        var wasCovered = false
        /// The time up to which all messages were delivered, except for noted gaps; nil before it is first covered unless the previous run left a
        /// value.
        var seen: Moment?
    }

    /// The effect of a change of the attachment on messages.
    struct Losses: Hashable {
        /// Topics on which messages may have been lost during this run.
        var gapCount = 0
        /// Topics that are covered again, since the previous run included.
        var resumed: [PubsubTopic] = []
        /// Whether there is anything to fetch from a store: because of gaps, or since the previous run.
        var needsCatchUp = false
    }

    /// The time between two notes from which the process counts as suspended: peers may have given it up meanwhile.
    static let longestPause = Duration.seconds(10)

    let pubsubTopics: [PubsubTopic]
    private var lastNote: Instant?
    /// See ``StoreCatchUp/Configuration/liveWaitLimit``.
    let liveWaitLimit: Duration
    /// When the first message of this run came, if its topic was not covered yet.
    private var heardEarly: Instant?
    /// In the order of ``pubsubTopics``.
    var topics: [Topic]

    /// - Parameter lastSeen: The time up to which each topic was seen in the previous run. Topics without an entry have nothing to catch up with.
    init(
        pubsubTopics: [PubsubTopic], catchUp: StoreCatchUp.Configuration, stores: StoreChoice, lastSeen: [PubsubTopic: Timestamp],
        at now: Moment
    ) {
        self.pubsubTopics = pubsubTopics
        liveWaitLimit = catchUp.liveWaitLimit
        topics = pubsubTopics.map { topic in
            var configuration = catchUp
            configuration.pubsubTopic = topic
            configuration.storeCount = stores.count
            let seen = lastSeen[topic].map { seen in now - (seen <= now.wallClock ? now.wallClock.since(seen) : StoreCatchUp.clockLookBack)
            }
            return Topic(catchUp: StoreCatchUp(configuration: configuration), stores: stores, seen: seen)
        }
    }

    var isAttached: Bool { topics.contains { $0.isAttached } }

    /// The topics without peers.
    var detachedTopics: [PubsubTopic] { zip(pubsubTopics, topics).filter { !$1.isAttached }.map(\.0) }

    /// For each topic, the local time up to which all messages were delivered. It stays unchanged while messages may be missing that were not
    /// fetched from a store yet.
    func seenUntil(at now: Moment) -> [PubsubTopic: Timestamp] {
        var result: [PubsubTopic: Timestamp] = [:]
        for (name, topic) in zip(pubsubTopics, topics) {
            guard let seen = topic.seen?.earliestWallClock(at: now) else { continue }
            result[name] = min(seen, topic.catchUp.missingFrom(at: now) ?? seen)
        }
        return result
    }

    /// Records how each topic is received. Called regularly.
    ///
    /// - Parameter isHandedOver: Whether all received messages were delivered.
    mutating func note(_ receptions: [TopicReception], isHandedOver: Bool, at now: Moment) -> Losses {
        let isBack = begin(at: now)
        var losses = Losses()
        for index in topics.indices {
            let reception = receptions[index]
            // Before it is first covered, this run missed nothing.
            let lostFrom = topics[index].wasCovered ? reception.lostFrom.map { now - (now.instant - $0) } : nil
            note(index, reception, isBack: isBack, gapFrom: lostFrom, heardUntil: now, isHandedOver: isHandedOver, at: now, &losses)
        }
        return losses
    }

    /// The same for a client of filter nodes: topics count as seen up to the last proof that a subscription works.
    mutating func note(_ standing: FilterPeers.Standing, isHandedOver: Bool, at now: Moment) -> Losses {
        let isBack = begin(at: now)
        var losses = Losses(needsCatchUp: standing.uncertainFrom != nil)
        if let uncertain = standing.uncertainFrom {
            for index in topics.indices { topics[index].catchUp.noteGap(from: uncertain, at: now) }
        }
        let reception = TopicReception(hasPeers: standing.isAccepted, isCovered: standing.isAccepted)
        for index in topics.indices {
            note(
                index, reception, isBack: isBack, gapFrom: standing.gapFrom, heardUntil: standing.provenUntil ?? now,
                isHandedOver: isHandedOver, at: now, &losses)
        }
        return losses
    }

    /// Begins another run after one was cancelled: messages published after ``Topic/seen`` are missing.
    mutating func beginAgain() {
        interrupt()
        for index in topics.indices { topics[index].catchUp.noteCancellation() }
    }

    private mutating func interrupt() {
        for index in topics.indices { topics[index].isCovered = false }
    }

    /// - Returns: Whether no topic is covered before this note.
    private mutating func begin(at now: Moment) -> Bool {
        if let lastNote, now.instant - lastNote > Self.longestPause { interrupt() }
        lastNote = now.instant
        return !topics.contains { $0.isCovered }
    }

    /// - Parameters:
    ///   - gapFrom: The time since which messages may be lost, besides those published while the topic was not covered.
    ///   - heardUntil: The time up to which all messages were received, if the topic is covered.
    private mutating func note(
        _ index: Int, _ reception: TopicReception, isBack: Bool, gapFrom: Moment?, heardUntil: Moment, isHandedOver: Bool, at now: Moment,
        _ losses: inout Losses
    ) {
        var isGap = topics[index].catchUp.noteClock(at: now)
        let seen = topics[index].seen
        var lostFrom = gapFrom
        let isResumption = reception.isCovered && !topics[index].isCovered
        if isResumption {
            if isBack { topics[index].catchUp.noteReconnection() }
            if let seen { lostFrom = lostFrom.map { .earliest($0, seen) } ?? seen }
        }
        if let lostFrom {
            losses.resumed.append(pubsubTopics[index])
            if topics[index].catchUp.noteGap(from: lostFrom, goesFirst: isResumption, at: now) {
                // Before it is first covered, this run missed nothing: the time since the previous run is looked up.
                isGap = isGap || gapFrom != nil || topics[index].wasCovered
                losses.needsCatchUp = true
            }
        }
        if isGap { (losses.gapCount, losses.needsCatchUp) = (losses.gapCount + 1, true) }
        // Undelivered messages are lost if the process ends. After one of two filter nodes left, the other one's proof may be older.
        if reception.isCovered, seen.map({ isHandedOver && $0.instant <= heardUntil.instant }) ?? true { topics[index].seen = heardUntil }
        topics[index].isAttached = reception.hasPeers
        topics[index].isCovered = reception.isCovered
        topics[index].wasCovered = topics[index].wasCovered || reception.isCovered
    }

    // MARK: Catching up

    /// Whether to let missed messages go first: see ``StoreCatchUp/isBehind(at:)``. After a previous run, messages may come before a gap is noted.
    mutating func isBehind(at now: Instant) -> Bool {
        if topics.contains(where: { $0.catchUp.isBehind(at: now) }) { return true }
        guard topics.contains(where: { !$0.wasCovered && $0.seen != nil }) else { return false }
        heardEarly = heardEarly ?? now
        return heardEarly.map { now < $0 + liveWaitLimit } ?? false
    }

    mutating func noteReceived(_ messages: [ReceivedMessage]) {
        for index in topics.indices {
            topics[index].catchUp.noteReceived(messages.filter { $0.pubsubTopic == pubsubTopics[index] })
        }
    }
}
