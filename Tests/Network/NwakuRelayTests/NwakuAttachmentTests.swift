import Core
import TestSupport
import Testing
import Waku

@testable import NwakuRelay

struct NwakuAttachmentTests {
    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_001)

    /// Both clocks, some time after the start.
    private func moment(_ uptime: Duration) -> Moment {
        Moment(instant: Instant(sinceEpoch: uptime), wallClock: Self.day + uptime)
    }

    private static let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")

    private func attachment(
        lastSeen: [PubsubTopic: Timestamp] = [:], pubsubTopics: [PubsubTopic] = [.statusDefault]
    ) -> NwakuAttachment {
        NwakuAttachment(
            configuration: NwakuAttachment.Configuration(pubsubTopics: pubsubTopics), lastSeen: lastSeen, at: moment(.zero))
    }

    /// Attached by a poll at the given time.
    private func attached(at uptime: Duration = .zero, pubsubTopics: [PubsubTopic] = [.statusDefault]) -> NwakuAttachment {
        var attachment = attachment(pubsubTopics: pubsubTopics)
        attachment.subscribed(at: moment(uptime))
        _ = attachment.polled(messageCount: 0, sent: moment(uptime))
        return attachment
    }

    @Test func subscribesThenPollsThenIsAttached() {
        var attachment = attachment()
        let action = attachment.next(at: moment(.zero))
        #expect(action == .subscribe)
        attachment.subscribed(at: moment(.milliseconds(5)))
        let action2 = attachment.next(at: moment(.milliseconds(5)))
        #expect(action2 == .poll)
        #expect(attachment.state != .attached)
        let lostFrom = attachment.polled(messageCount: 3, sent: moment(.milliseconds(5)))
        #expect(lostFrom == [:])
        #expect(attachment.state == .attached)
        #expect(attachment.polledUntil(.statusDefault) == moment(.milliseconds(5)))
    }

    /// A poll of it may have emptied the node's cache.
    @Test func aCancelledRunMayHaveLostMessages() {
        var attachment = attached()
        attachment.noteCancellation()
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.milliseconds(300)))
        #expect(lostFrom == [.statusDefault: moment(.zero)])
    }

    @Test func pollsAtTheInterval() {
        let attachment = attached()
        let action = attachment.next(at: moment(.milliseconds(299)))
        #expect(action == .wait(until: .milliseconds(300)))
        let action2 = attachment.next(at: moment(.milliseconds(300)))
        #expect(action2 == .poll)
    }

    @Test func pollsABusyNodeAtOnce() {
        var attachment = attached()
        let lostFrom = attachment.polled(messageCount: 25, sent: moment(.milliseconds(300)))
        #expect(lostFrom == [:])
        let action = attachment.next(at: moment(.milliseconds(301)))
        #expect(action == .poll)
    }

    @Test func aFullCacheMayHaveLostSinceThePollBefore() {
        var attachment = attached()
        let lostFrom = attachment.polled(messageCount: 49, sent: moment(.milliseconds(300)))
        #expect(lostFrom == [:])
        let lostFrom2 = attachment.polled(messageCount: 50, sent: moment(.milliseconds(600)))
        #expect(lostFrom2 == [.statusDefault: moment(.milliseconds(300))])
        let lostFrom3 = attachment.polled(messageCount: 0, sent: moment(.milliseconds(900)))
        #expect(lostFrom3 == [:])
    }

    @Test func messagesMayBeLostAfterALongTimeWithoutPoll() {
        var attachment = attached()
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.seconds(2)))
        #expect(lostFrom == [:])
        let lostFrom2 = attachment.polled(messageCount: 0, sent: moment(.milliseconds(4001)))
        #expect(lostFrom2 == [.statusDefault: moment(.seconds(2))])
    }

    @Test func theMaximumPollGapScalesWithTheInterval() {
        let configuration = NwakuAttachment.Configuration(pollInterval: .seconds(1))
        #expect(configuration.maximumPollGap == .seconds(3))
    }

    @Test func aLostSubscriptionIsRenewedAtOnceAndMakesAGap() {
        var attachment = attached()
        attachment.subscriptionLost(at: moment(.milliseconds(300)), jitter: 1)
        #expect(attachment.state == .detached("the node lost its subscriptions"))
        let action = attachment.next(at: moment(.milliseconds(300)))
        #expect(action == .subscribe)
        attachment.subscribed(at: moment(.milliseconds(310)))
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.milliseconds(310)))
        #expect(lostFrom == [.statusDefault: moment(.zero)])
    }

    @Test func repeatedlyLostSubscriptionsBackOff() {
        var attachment = attached()
        attachment.subscriptionLost(at: moment(.milliseconds(300)), jitter: 1)
        attachment.subscribed(at: moment(.milliseconds(310)))
        attachment.subscriptionLost(at: moment(.milliseconds(320)), jitter: 1)
        let action = attachment.next(at: moment(.milliseconds(321)))
        #expect(action == .wait(until: .milliseconds(820)))
        let action2 = attachment.next(at: moment(.milliseconds(820)))
        #expect(action2 == .subscribe)
    }

    @Test func aFailureBacksOffThenSubscribesAgain() {
        var attachment = attached()
        attachment.failed("gone", at: moment(.seconds(1)), jitter: 1)
        #expect(attachment.state == .detached("gone"))
        let action = attachment.next(at: moment(.milliseconds(1249)))
        #expect(action == .wait(until: .milliseconds(1250)))
        let action2 = attachment.next(at: moment(.milliseconds(1250)))
        #expect(action2 == .subscribe)
        attachment.subscribed(at: moment(.milliseconds(1250)))
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.milliseconds(1250)))
        #expect(lostFrom == [.statusDefault: moment(.zero)])
    }

    @Test func aGoodPollEndsTheBackoff() {
        var attachment = attached()
        for _ in 0..<5 { attachment.failed("gone", at: moment(.seconds(1)), jitter: 1) }
        attachment.subscribed(at: moment(.seconds(9)))
        _ = attachment.polled(messageCount: 0, sent: moment(.seconds(9)))
        attachment.failed("gone", at: moment(.seconds(10)), jitter: 1)
        let action = attachment.next(at: moment(.seconds(10)))
        #expect(action == .wait(until: .milliseconds(10_250)))
    }

    @Test func gapsAreKnownBeforeTheFirstMessagesAreDelivered() {
        let hourAgo = moment(.seconds(-3600))
        var attachment = attachment(lastSeen: [.statusDefault: hourAgo.wallClock])
        attachment.subscribed(at: moment(.zero))
        let sent = moment(.milliseconds(10))
        let gaps = attachment.resumed(by: sent)
        #expect(gaps == [.statusDefault: hourAgo])
        let repeated = attachment.resumed(by: sent)
        let polled = attachment.polled(messageCount: 1, sent: sent)
        let attached = attachment.resumed(by: moment(.seconds(300)))
        #expect(repeated.isEmpty && polled.isEmpty && attached.isEmpty)
        attachment.failed("gone", at: moment(.seconds(1)), jitter: 0)
        let again = attachment.resumed(by: moment(.seconds(2)))
        #expect(again == [.statusDefault: sent])
    }

    @Test func aPreviousRunMakesAGapOnItsTopics() {
        let hourAgo = moment(.seconds(-3600))
        var attachment = attachment(lastSeen: [.statusDefault: hourAgo.wallClock], pubsubTopics: [.statusDefault, Self.other])
        #expect(attachment.polledUntil(.statusDefault) == hourAgo)
        #expect(attachment.polledUntil(Self.other) == moment(.zero))
        attachment.subscribed(at: moment(.zero))
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.zero))
        #expect(lostFrom == [.statusDefault: hourAgo])
        let lostFrom2 = attachment.polled(messageCount: 0, sent: moment(.milliseconds(300)))
        #expect(lostFrom2 == [:])
    }

    /// A Waku node that starts later than this one, or answers late; with and without a previous run.
    @Test func beforeTheFirstPollNothingIsMissedThoughItIsLookedUp() {
        for lastSeen in [[:], [PubsubTopic.statusDefault: moment(.seconds(-3600)).wallClock]] {
            var progress = NwakuProgress(
                attachment: NwakuAttachment.Configuration(),
                catchUp: StoreCatchUp.Configuration(contentTopics: [ContentTopic(TopicTag(rawValue: 1))]),
                lastSeen: lastSeen,
                at: moment(.zero))
            progress.attachment.failed("gone", at: moment(.seconds(1)), jitter: 1)
            progress.attachment.subscribed(at: moment(.seconds(20)))
            let first = progress.polled(messageCount: 0, sent: moment(.seconds(20)), at: moment(.seconds(20)))
            #expect(first.needsCatchUp && first.gapCount == 0)
            progress.attachment.failed("gone", at: moment(.seconds(21)), jitter: 1)
            progress.attachment.subscribed(at: moment(.seconds(22)))
            let second = progress.polled(messageCount: 0, sent: moment(.seconds(22)), at: moment(.seconds(22)))
            #expect(second.needsCatchUp && second.gapCount == 1)
        }
    }

    @Test func aFailureBeforeTheFirstPollIsAGapOnEveryTopic() {
        let hourAgo = moment(.seconds(-3600))
        var attachment = attachment(lastSeen: [.statusDefault: hourAgo.wallClock], pubsubTopics: [.statusDefault, Self.other])
        attachment.failed("gone", at: moment(.seconds(1)), jitter: 1)
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.seconds(2)))
        #expect(lostFrom == [.statusDefault: hourAgo, Self.other: moment(.zero)])
    }

    @Test func aFutureTimeOfThePreviousRunIsReplaced() {
        let attachment = attachment(lastSeen: [.statusDefault: Self.day + .seconds(5)])
        #expect(attachment.polledUntil(.statusDefault) == moment(.seconds(-3600)))
    }

    @Test func topicsShareACacheThatMayBeEmptiedInTwoPolls() {
        var attachment = attached(pubsubTopics: [.statusDefault, Self.other])
        let lostFrom = attachment.polled(messageCount: 5, sent: moment(.milliseconds(300)))
        #expect(lostFrom == [:])
        // While the second topic was polled, 45 messages arrived on the first, and evicted some of the second.
        let lostFrom2 = attachment.polled(messageCount: 45, sent: moment(.milliseconds(600)))
        #expect(lostFrom2 == [.statusDefault: moment(.zero), Self.other: moment(.zero)])
    }

    @Test func aClockThatWasSetBackDoesNotHideAGap() {
        var attachment = attached()
        let sent = Moment(instant: .seconds(600), wallClock: Self.day - .seconds(100))
        let lostFrom = attachment.polled(messageCount: 50, sent: sent)
        #expect(lostFrom == [.statusDefault: moment(.zero)])
        // Ten minutes ago, by the present clock.
        #expect(moment(.zero).earliestWallClock(at: sent) == sent.wallClock - .seconds(600))
        #expect(attachment.polledUntil(.statusDefault) == sent)
    }

    @Test(arguments: [(1, 0.0, 125), (1, 1, 250), (2, 1, 500), (6, 1, 8000), (7, 1, 10_000), (1000, 1, 10_000), (1000, 0, 5000)])
    func backoff(failures: Int, jitter: Double, milliseconds: Int) {
        #expect(ExponentialBackoff().delay(afterFailures: failures, jitter: jitter) == .milliseconds(milliseconds))
    }
}
