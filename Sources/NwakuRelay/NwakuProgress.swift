import Waku

/// How far a node was listened to: what polling saw, and what the store has yet to tell, for each pubsub topic.
struct NwakuProgress {
    private(set) var pubsubTopics: [PubsubTopic]
    var attachment: NwakuAttachment
    /// In the order of the topics.
    var catchUps: [StoreCatchUp]

    /// - Parameters:
    ///   - catchUp: For each of the attachment's topics.
    ///   - lastSeen: In an earlier life, see ``seenUntil(at:)``.
    init(
        attachment: NwakuAttachment.Configuration, catchUp: StoreCatchUp.Configuration, lastSeen: [PubsubTopic: Timestamp], at now: Moment
    ) {
        pubsubTopics = attachment.pubsubTopics
        self.attachment = NwakuAttachment(configuration: attachment, lastSeen: lastSeen, at: now)
        catchUps = pubsubTopics.map { topic in
            var configuration = catchUp
            configuration.pubsubTopic = topic
            return StoreCatchUp(configuration: configuration)
        }
    }

    /// Until when, by the local clock, everything was handed over. It stands still while messages may be missing that the store has not told.
    func seenUntil(at now: Moment) -> [PubsubTopic: Timestamp] {
        var seen: [PubsubTopic: Timestamp] = [:]
        for catchUp in catchUps {
            let polled = attachment.polledUntil(catchUp.pubsubTopic).earliestWallClock(at: now)
            seen[catchUp.pubsubTopic] = min(polled, catchUp.missingFrom(at: now) ?? polled)
        }
        return seen
    }

    /// A topic was polled, before the others perhaps fail.
    mutating func brought(_ messages: [ReceivedMessage], on topicIndex: Int) {
        catchUps[topicIndex].noteReceived(messages)
    }

    /// All topics were polled, and what they brought was handed over.
    /// - Returns: On how many topics messages may be lost that the store is to be asked for.
    mutating func polled(messageCount: Int, sent: Moment, at now: Moment) -> Int {
        let isBack = attachment.state != .attached
        let lostFrom = attachment.polled(messageCount: messageCount, sent: sent)
        var gapCount = 0
        for index in catchUps.indices {
            if isBack { catchUps[index].noteReconnection() }
            let isLost = lostFrom[catchUps[index].pubsubTopic].map { catchUps[index].noteGap(from: $0, at: now) } ?? false
            let isToRepeat = catchUps[index].noteClock(at: now)
            if isLost || isToRepeat { gapCount += 1 }
        }
        return gapCount
    }
}
