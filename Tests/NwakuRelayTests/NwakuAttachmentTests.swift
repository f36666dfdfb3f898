import Testing
import Waku

@testable import NwakuRelay

struct NwakuAttachmentTests {
    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_001)

    /// Both clocks, some time after the start.
    private func moment(_ uptime: Duration) -> Moment {
        Moment(uptime: uptime, clock: Self.day + uptime)
    }

    private func attachment(lastSeen: Timestamp? = nil) -> NwakuAttachment {
        NwakuAttachment(configuration: NwakuAttachment.Configuration(), lastSeen: lastSeen, at: moment(.zero))
    }

    /// Attached by a poll at the given time.
    private func attached(at uptime: Duration = .zero) -> NwakuAttachment {
        var attachment = attachment()
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
        #expect(lostFrom == nil)
        #expect(attachment.state == .attached)
        #expect(attachment.polledUntil == moment(.milliseconds(5)).clock)
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
        #expect(lostFrom == nil)
        let action = attachment.next(at: moment(.milliseconds(301)))
        #expect(action == .poll)
    }

    @Test func aFullCacheMayHaveLostSinceThePollBefore() {
        var attachment = attached()
        let lostFrom = attachment.polled(messageCount: 49, sent: moment(.milliseconds(300)))
        #expect(lostFrom == nil)
        let lostFrom2 = attachment.polled(messageCount: 50, sent: moment(.milliseconds(600)))
        #expect(lostFrom2 == moment(.milliseconds(300)).clock)
        let lostFrom3 = attachment.polled(messageCount: 0, sent: moment(.milliseconds(900)))
        #expect(lostFrom3 == nil)
    }

    @Test func aLongSilenceMayHaveLost() {
        var attachment = attached()
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.seconds(2)))
        #expect(lostFrom == nil)
        let lostFrom2 = attachment.polled(messageCount: 0, sent: moment(.milliseconds(4001)))
        #expect(lostFrom2 == moment(.seconds(2)).clock)
    }

    @Test func aSlowPollerHasLongerSilences() {
        let configuration = NwakuAttachment.Configuration(pollInterval: .seconds(1))
        #expect(configuration.longestSilence == .seconds(3))
    }

    @Test func aForgottenSubscriptionIsRenewedAtOnceAndTellsAGap() {
        var attachment = attached()
        attachment.forgotten(at: moment(.milliseconds(300)), jitter: 1)
        #expect(attachment.state == .detached("the node lost its subscriptions"))
        let action = attachment.next(at: moment(.milliseconds(300)))
        #expect(action == .subscribe)
        attachment.subscribed(at: moment(.milliseconds(310)))
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.milliseconds(310)))
        #expect(lostFrom == moment(.zero).clock)
    }

    @Test func aNodeThatForgetsAgainIsNotHammered() {
        var attachment = attached()
        attachment.forgotten(at: moment(.milliseconds(300)), jitter: 1)
        attachment.subscribed(at: moment(.milliseconds(310)))
        attachment.forgotten(at: moment(.milliseconds(320)), jitter: 1)
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
        #expect(lostFrom == moment(.zero).clock)
    }

    @Test func aGoodPollEndsTheBackOff() {
        var attachment = attached()
        for _ in 0..<5 { attachment.failed("gone", at: moment(.seconds(1)), jitter: 1) }
        attachment.subscribed(at: moment(.seconds(9)))
        _ = attachment.polled(messageCount: 0, sent: moment(.seconds(9)))
        attachment.failed("gone", at: moment(.seconds(10)), jitter: 1)
        let action = attachment.next(at: moment(.seconds(10)))
        #expect(action == .wait(until: .milliseconds(10_250)))
    }

    @Test func anEarlierLifeIsAGap() {
        let lastSeen = Self.day - .seconds(3600)
        var attachment = attachment(lastSeen: lastSeen)
        #expect(attachment.polledUntil == lastSeen)
        attachment.subscribed(at: moment(.zero))
        let lostFrom = attachment.polled(messageCount: 0, sent: moment(.zero))
        #expect(lostFrom == lastSeen)
        let lostFrom2 = attachment.polled(messageCount: 0, sent: moment(.milliseconds(300)))
        #expect(lostFrom2 == nil)
    }

    @Test func aClockThatWasSetBackDoesNotHideAGap() {
        var attachment = attached()
        let sent = Moment(uptime: .milliseconds(300), clock: Self.day - .seconds(100))
        let lostFrom = attachment.polled(messageCount: 50, sent: sent)
        #expect(lostFrom == sent.clock)
        #expect(attachment.polledUntil == sent.clock)
    }

    @Test(arguments: [(1, 0.0, 125), (1, 1, 250), (2, 1, 500), (6, 1, 8000), (7, 1, 10_000), (1000, 1, 10_000), (1000, 0, 5000)])
    func backOff(failures: Int, jitter: Double, milliseconds: Int) {
        #expect(BackOff().delay(failures: failures, jitter: jitter) == .milliseconds(milliseconds))
    }
}
