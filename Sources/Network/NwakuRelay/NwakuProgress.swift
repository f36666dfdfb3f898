import Core
import Waku

/// The progress of receiving from one node: polling, and catching up from the store, for each pubsub topic.
struct NwakuProgress {
    private(set) var pubsubTopics: [PubsubTopic]
    var attachment: NwakuAttachment
    /// In the order of the topics.
    var catchUps: [StoreCatchUp]

    /// - Parameter lastSeen: ``seenUntil(at:)`` of the previous run.
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

    /// For each topic, the local time up to which all messages were delivered. It stays unchanged while messages may be missing that were not
    /// fetched from the store yet.
    func seenUntil(at now: Moment) -> [PubsubTopic: Timestamp] {
        var seen: [PubsubTopic: Timestamp] = [:]
        for catchUp in catchUps {
            let polled = attachment.polledUntil(catchUp.pubsubTopic).earliestWallClock(at: now)
            seen[catchUp.pubsubTopic] = min(polled, catchUp.missingFrom(at: now) ?? polled)
        }
        return seen
    }

    /// Begins a run. After another one, which was cancelled, messages that it fetched may not have been delivered.
    mutating func begin() {
        for index in catchUps.indices { catchUps[index].noteCancellation() }
        if attachment.hasPolled { attachment.noteCancellation() }
    }

    /// Records the messages of one topic's poll.
    mutating func noteReceived(_ messages: [ReceivedMessage], on topicIndex: Int) {
        catchUps[topicIndex].noteReceived(messages)
    }

    /// What may have been lost: the number of topics on which that was during this run; and whether there is anything to fetch from the store.
    typealias Losses = (gapCount: Int, needsCatchUp: Bool)

    /// The first poll after a pause is being answered: see ``NwakuAttachment/resumed(by:)``.
    mutating func resumed(by sent: Moment, at now: Moment) -> Losses {
        note(isResumption: true, at: now) { $0.resumed(by: sent) }
    }

    /// All topics were polled and their messages were delivered.
    ///
    /// - Parameter sent: When the first of the requests was sent.
    mutating func polled(messageCount: Int, sent: Moment, at now: Moment) -> Losses {
        note(isResumption: false, at: now) { $0.polled(messageCount: messageCount, sent: sent) }
    }

    private mutating func note(
        isResumption: Bool, at now: Moment, _ change: (inout NwakuAttachment) -> [PubsubTopic: Moment]
    ) -> Losses {
        let isBack = attachment.state != .attached
        // Messages published before are looked up, but this run missed none of them.
        let isFirst = !attachment.hasPolled
        let lostFrom = change(&attachment)
        var (gapCount, needsCatchUp) = (0, false)
        for index in catchUps.indices {
            if isBack { catchUps[index].noteReconnection() }
            let isLost =
                lostFrom[catchUps[index].pubsubTopic]
                .map { catchUps[index].noteGap(from: $0, goesFirst: isResumption, at: now) } ?? false
            let isToRepeat = catchUps[index].noteClock(at: now)
            guard isLost || isToRepeat else { continue }
            needsCatchUp = true
            if isToRepeat || !isFirst { gapCount += 1 }
        }
        return (gapCount, needsCatchUp)
    }
}
