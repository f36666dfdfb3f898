import Waku

/// How far the network was listened to: what gossip brought, and what stores have yet to tell, for each pubsub topic.
///
///     unknown ──(attached)──▶ attached ──(detached)──▶ detached ──(attached: a gap)──▶ attached
///
/// A topic is attached while there are peers in its mesh, or filter nodes that took this node's topics. What is published while it is not, a
/// store must tell; and what was published after the last proof of a filter node's subscription that turned out to be gone.
struct P2PProgress {
    private struct Topic {
        var catchUp: StoreCatchUp
        var isAttached = false
        /// Until when all was handed over, but for the gaps that were noted; nil before the first attachment, unless an earlier life tells.
        var seen: Moment?
    }

    let pubsubTopics: [PubsubTopic]
    private var topics: [Topic]

    /// - Parameter lastSeen: Until when all was seen, in an earlier life. On a topic that is not among them nothing can have been missed.
    init(pubsubTopics: [PubsubTopic], catchUp: StoreCatchUp.Configuration, lastSeen: [PubsubTopic: Timestamp], at now: Moment) {
        self.pubsubTopics = pubsubTopics
        topics = pubsubTopics.map { topic in
            var configuration = catchUp
            configuration.pubsubTopic = topic
            let seen = lastSeen[topic].map { seen in now - (seen <= now.wallClock ? now.wallClock.since(seen) : StoreCatchUp.clockLookBack)
            }
            return Topic(catchUp: StoreCatchUp(configuration: configuration), seen: seen)
        }
    }

    var isAttached: Bool { topics.contains { $0.isAttached } }

    /// Of those that nobody is there for.
    var detachedTopics: [PubsubTopic] { zip(pubsubTopics, topics).filter { !$1.isAttached }.map(\.0) }

    /// Until when, by the local clock, everything was handed over. It stands still while messages may be missing that no store has told.
    func seenUntil(at now: Moment) -> [PubsubTopic: Timestamp] {
        var result: [PubsubTopic: Timestamp] = [:]
        for (name, topic) in zip(pubsubTopics, topics) {
            guard let seen = topic.seen?.earliestWallClock(at: now) else { continue }
            result[name] = min(seen, topic.catchUp.missingFrom(at: now) ?? seen)
        }
        return result
    }

    /// To be told now and then: who is there.
    /// - Parameters:
    ///   - hasPeers: For each of the topics.
    ///   - isHandedOver: Whether nothing of what came waits to be taken.
    /// - Returns: On how many topics messages may be lost that a store is to be asked for.
    mutating func note(hasPeers: [Bool], isHandedOver: Bool, at now: Moment) -> Int {
        let isBack = !isAttached
        return topics.indices.count {
            note($0, hasPeers: hasPeers[$0], isBack: isBack, heardUntil: now, isHandedOver: isHandedOver, at: now)
        }
    }

    /// The same for a client of filter nodes: nothing counts as seen after the last proof that a subscription works.
    mutating func note(_ standing: FilterPeers.Standing, isHandedOver: Bool, at now: Moment) -> Int {
        let isBack = !isAttached
        if let uncertain = standing.uncertainFrom {
            for index in topics.indices { topics[index].catchUp.noteGap(from: uncertain, at: now) }
        }
        return topics.indices.count {
            note(
                $0, hasPeers: standing.isAccepted, isBack: isBack, gapFrom: standing.gapFrom, heardUntil: standing.provenUntil ?? now,
                isHandedOver: isHandedOver, at: now)
        }
    }

    /// - Parameters:
    ///   - gapFrom: Messages since then may be lost, beside those that came while nobody was there.
    ///   - heardUntil: Up to when all that there was has come, if somebody is there.
    private mutating func note(
        _ index: Int, hasPeers: Bool, isBack: Bool, gapFrom: Moment? = nil, heardUntil: Moment, isHandedOver: Bool, at now: Moment
    ) -> Bool {
        var isGap = topics[index].catchUp.noteClock(at: now)
        let seen = topics[index].seen
        var lostFrom = gapFrom
        if hasPeers, !topics[index].isAttached {
            if isBack { topics[index].catchUp.noteReconnection() }
            if let seen { lostFrom = lostFrom.map { .earliest($0, seen) } ?? seen }
        }
        if let lostFrom, topics[index].catchUp.noteGap(from: lostFrom, at: now) { isGap = true }
        // What waits may still be lost with this process. Of two filter nodes one may be proven later than the other that remains.
        if hasPeers, seen.map({ isHandedOver && $0.instant <= heardUntil.instant }) ?? true { topics[index].seen = heardUntil }
        topics[index].isAttached = hasPeers
        return isGap
    }

    // MARK: Catching up

    mutating func next(on index: Int, at now: Moment) -> StoreCatchUp.Action { topics[index].catchUp.next(at: now) }

    mutating func brought(_ messages: [ReceivedMessage]) {
        for index in topics.indices {
            topics[index].catchUp.noteReceived(messages.filter { $0.pubsubTopic == pubsubTopics[index] })
        }
    }

    mutating func fresh(_ messages: [ReceivedMessage], on index: Int) -> [ReceivedMessage] { topics[index].catchUp.fresh(messages) }

    mutating func answered(_ page: StorePage, on index: Int) -> StoreCatchUp.Summary? { topics[index].catchUp.answered(page) }

    mutating func failed(on index: Int, isTooMuch: Bool, at now: Moment, jitter: Double) -> Bool {
        topics[index].catchUp.failed(isTooMuch: isTooMuch, at: now, jitter: jitter)
    }
}
