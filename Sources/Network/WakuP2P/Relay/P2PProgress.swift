import Core
import Waku

/// The progress of receiving from the network: attachment and catching up, for each pubsub topic.
///
///     unknown ──(attached)──▶ attached ──(detached)──▶ detached ──(attached: a gap)──▶ attached
///
/// A topic is attached while there are peers in its mesh, or filter nodes that accepted this node's topics. Messages published while it is
/// detached are fetched from a store; so are those published after the last proof of a filter subscription that was found to be lost.
struct P2PProgress {
    struct Topic {
        var catchUp: StoreCatchUp
        /// Names the stores of ``catchUp``.
        var stores: StoreChoice
        var isAttached = false
        /// Whether it was attached in this run.
        var wasAttached = false
        /// The time up to which all messages were delivered, except for noted gaps; nil before the first attachment unless the previous run left a
        /// value.
        var seen: Moment?
    }

    /// The effect of a change of the attachment on messages.
    struct Losses: Hashable {
        /// Topics on which messages may have been lost during this run.
        var gapCount = 0
        /// Whether there is anything to fetch from a store: because of gaps, or since the previous run.
        var needsCatchUp = false
    }

    let pubsubTopics: [PubsubTopic]
    /// In the order of ``pubsubTopics``.
    var topics: [Topic]

    /// - Parameter lastSeen: The time up to which each topic was seen in the previous run. Topics without an entry have nothing to catch up with.
    init(
        pubsubTopics: [PubsubTopic], catchUp: StoreCatchUp.Configuration, stores: StoreChoice, lastSeen: [PubsubTopic: Timestamp],
        at now: Moment
    ) {
        self.pubsubTopics = pubsubTopics
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

    /// The topics without peers that had some before, in this run or the previous one.
    var interruptedTopics: [PubsubTopic] { zip(pubsubTopics, topics).filter { !$1.isAttached && $1.seen != nil }.map(\.0) }

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

    /// Records which topics have peers. Called regularly.
    ///
    /// - Parameter isHandedOver: Whether all received messages were delivered.
    mutating func note(hasPeers: [Bool], isHandedOver: Bool, at now: Moment) -> Losses {
        let isBack = !isAttached
        var losses = Losses()
        for index in topics.indices {
            note(index, hasPeers: hasPeers[index], isBack: isBack, heardUntil: now, isHandedOver: isHandedOver, at: now, &losses)
        }
        return losses
    }

    /// The same for a client of filter nodes: topics count as seen up to the last proof that a subscription works.
    mutating func note(_ standing: FilterPeers.Standing, isHandedOver: Bool, at now: Moment) -> Losses {
        let isBack = !isAttached
        var losses = Losses(needsCatchUp: standing.uncertainFrom != nil)
        if let uncertain = standing.uncertainFrom {
            for index in topics.indices { topics[index].catchUp.noteGap(from: uncertain, at: now) }
        }
        for index in topics.indices {
            note(
                index, hasPeers: standing.isAccepted, isBack: isBack, gapFrom: standing.gapFrom, heardUntil: standing.provenUntil ?? now,
                isHandedOver: isHandedOver, at: now, &losses)
        }
        return losses
    }

    /// - Parameters:
    ///   - gapFrom: The time since which messages may be lost, besides those published while the topic was detached.
    ///   - heardUntil: The time up to which all messages were received, if the topic has peers.
    private mutating func note(
        _ index: Int, hasPeers: Bool, isBack: Bool, gapFrom: Moment? = nil, heardUntil: Moment, isHandedOver: Bool, at now: Moment,
        _ losses: inout Losses
    ) {
        var isGap = topics[index].catchUp.noteClock(at: now)
        let seen = topics[index].seen
        var lostFrom = gapFrom
        if hasPeers, !topics[index].isAttached {
            if isBack { topics[index].catchUp.noteReconnection() }
            if let seen { lostFrom = lostFrom.map { .earliest($0, seen) } ?? seen }
        }
        if let lostFrom, topics[index].catchUp.noteGap(from: lostFrom, at: now) {
            // Before the first attachment, this run missed nothing: the time since the previous run is looked up.
            isGap = isGap || gapFrom != nil || topics[index].wasAttached
            losses.needsCatchUp = true
        }
        if isGap { (losses.gapCount, losses.needsCatchUp) = (losses.gapCount + 1, true) }
        // Undelivered messages are lost if the process ends. After one of two filter nodes left, the other one's proof may be older.
        if hasPeers, seen.map({ isHandedOver && $0.instant <= heardUntil.instant }) ?? true { topics[index].seen = heardUntil }
        topics[index].isAttached = hasPeers
        topics[index].wasAttached = topics[index].wasAttached || hasPeers
    }

    // MARK: Catching up

    mutating func noteReceived(_ messages: [ReceivedMessage]) {
        for index in topics.indices {
            topics[index].catchUp.noteReceived(messages.filter { $0.pubsubTopic == pubsubTopics[index] })
        }
    }
}
