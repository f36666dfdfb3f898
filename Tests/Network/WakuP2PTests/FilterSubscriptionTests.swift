import Core
import TestSupport
import LibP2P
import Testing
import Waku

@testable import WakuP2P

/// Requests to a filter node, and the time until which its subscription is known to have worked.
struct FilterSubscriptionTests {
    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private let own = [ContentTopic(TopicTag(of: "personal")), ContentTopic(TopicTag(of: "partitioned"))]
    private let others = (0..<1200).map { ContentTopic(TopicTag(of: "topic \($0)")) }

    private func moment(_ seconds: Double) -> Moment {
        Moment(instant: .milliseconds(Int(seconds * 1000)), wallClock: Self.day + .milliseconds(Int(seconds * 1000)))
    }

    private func time(_ seconds: Double) -> Instant { moment(seconds).instant }

    private func subscription(_ timing: FilterTiming = FilterTiming()) -> FilterSubscription {
        FilterSubscription(ownTopics: own, pubsubTopicCount: 1, topicLimit: 1000, timing: timing, at: .zero)
    }

    /// A subscription accepted at 0 s, with the client's own topics and these.
    private func accepted(_ topics: ArraySlice<ContentTopic> = [], _ timing: FilterTiming = FilterTiming()) -> FilterSubscription {
        var subscription = subscription(timing)
        while case .ask(.subscribe) = subscription.next(wanted: own + topics, at: .zero) {
            _ = subscription.subscribed(sent: moment(0))
        }
        return subscription
    }

    @Test func eachSubscribeRequestHasUpToAHundredTopicsWithTheOwnOnes() {
        var subscription = subscription()
        var parts: [[ContentTopic]] = []
        while case .ask(.subscribe(let part)) = subscription.next(wanted: own + others[..<200], at: .zero) {
            parts.append(part)
            _ = subscription.subscribed(sent: moment(0))
        }
        #expect(parts.map(\.count) == [100, 100, 6])
        #expect(parts.allSatisfy { Array($0.prefix(2)) == own })
        #expect(parts.flatMap { $0.dropFirst(2) } == Array(others[..<200]))
    }

    @Test func aRequestIsTheSameUntilItIsAnswered() {
        var subscription = subscription()
        let first = subscription.next(wanted: own, at: .zero)
        #expect(first == .ask(.subscribe(own)))
        #expect(subscription.next(wanted: own + others, at: time(1)) == first)
    }

    @Test func aNodeIsPingedFiveSecondsAfterTheLastPush() {
        var subscription = accepted(others[..<1])
        #expect(subscription.next(wanted: own, at: time(4.5)) == .wait(until: time(5)))
        subscription.pushed(on: others[0], at: moment(4.6))
        #expect(subscription.next(wanted: own, at: time(9.5)) == .wait(until: time(9.6)))
        #expect(subscription.next(wanted: own, at: time(9.6)) == .ask(.ping))
        subscription.pinged(sent: moment(9.6), at: time(9.7))
        #expect(subscription.next(wanted: own, at: time(14.5)) == .wait(until: time(14.6)))
        #expect(subscription.next(wanted: own, at: time(14.6)) == .ask(.ping))
    }

    @Test func onlyPushesAndSuccessfulPingsAreProofs() {
        var subscription = accepted(others[..<1])
        #expect(subscription.proven == moment(0))
        // A ping proves the state at the time when it was sent.
        subscription.pinged(sent: moment(5), at: time(5.8))
        #expect(subscription.proven == moment(5))
        subscription.pushed(on: others[0], at: moment(6))
        #expect(subscription.proven == moment(6))
        // A message on a topic that was not subscribed may be for another client.
        subscription.pushed(on: others[1], at: moment(7))
        subscription.refusedForNow(.ping, sent: time(11), at: time(11.1))
        // A late message, as from a delayed stream.
        subscription.pushed(on: others[0], at: moment(3))
        #expect(subscription.proven == moment(6))
        #expect(subscription.next(wanted: own, at: time(15.9)) == .wait(until: time(16)))
        #expect(subscription.next(wanted: own, at: time(16)) == .ask(.ping))
    }

    @Test func aForgottenSubscriptionIsRenewedAtOnce() {
        var subscription = accepted(others[..<1])
        subscription.pinged(sent: moment(5), at: time(5.1))
        subscription.forgotten(at: time(10.1))
        #expect(subscription.proven == nil && subscription.topics.isEmpty)
        #expect(subscription.next(wanted: own + others[..<2], at: time(10.1)) == .ask(.subscribe(own + others[..<2])))
        #expect(subscription.subscribed(sent: moment(10.1)) == nil)
        #expect(subscription.proven == moment(10.1))
    }

    @Test func repeatedRenewalsRespectThePace() {
        var subscription = subscription()
        let wanted = own + others[..<900]
        var (requestCount, now) = (0, Instant.zero)
        while now < .seconds(600) {
            switch subscription.next(wanted: wanted, at: now) {
            case .ask(.ping):
                requestCount += 1
                subscription.forgotten(at: now)
            case .ask(.subscribe):
                requestCount += 1
                _ = subscription.subscribed(sent: Moment(instant: now, wallClock: Self.day + now.sinceEpoch))
            case .ask(.unsubscribe): Issue.record("nothing was dropped")
            case .wait(let until):
                #expect(until > now)
                now = until
            }
        }
        // 30 a minute, plus an initial burst of 30.
        #expect(requestCount <= 330, "\(requestCount)")
        #expect(requestCount > 100)
    }

    /// A client that looks something up and then asks a question does not wait between them.
    @Test func firstTopicsAreAddedAtOnce() {
        var subscription = accepted(others[..<1])
        var now = 0.1
        for count in 2...3 {
            #expect(subscription.next(wanted: own + others[..<count], at: time(now)) == .ask(.ping))
            subscription.pinged(sent: moment(now), at: time(now))
            #expect(subscription.next(wanted: own + others[..<count], at: time(now)) == .ask(.subscribe(own + others[count - 1..<count])))
            _ = subscription.subscribed(sent: moment(now))
            now += 0.1
        }
        #expect(subscription.next(wanted: own + others[..<4], at: time(now)) == .wait(until: time(now + 1)))
    }

    /// 30 requests a minute, pings included.
    @Test func topicsThatAreAddedWithoutEndStayBelowTheRateLimit() {
        var subscription = accepted(others[..<1])
        var (times, now, count) = ([0.0], 0.0, 2)
        while now < 300 {
            switch subscription.next(wanted: own + others[..<count], at: time(now)) {
            case .ask(.ping):
                times.append(now)
                subscription.pinged(sent: moment(now), at: time(now))
            case .ask(.subscribe):
                times.append(now)
                _ = subscription.subscribed(sent: moment(now))
                count += 1
            case .ask(.unsubscribe): Issue.record("nothing was dropped")
            case .wait: now += 0.1
            }
        }
        let counts = times.map { begin in times.count { $0 >= begin && $0 < begin + 60 } }
        #expect(counts.max().map { $0 <= 30 && $0 > 20 } == true, "\(counts)")
    }

    @Test func topicsAreAddedAfterAPingAndWithinThePace() {
        var timing = FilterTiming()
        timing.burst = .zero
        var subscription = accepted([], timing)
        #expect(subscription.next(wanted: own + others[..<1], at: time(1)) == .wait(until: time(2)))
        #expect(subscription.next(wanted: own + others[..<1], at: time(2.5)) == .ask(.ping))
        subscription.pinged(sent: moment(2.5), at: time(2.6))
        #expect(subscription.next(wanted: own + others[..<1], at: time(2.6)) == .ask(.subscribe(own + others[..<1])))
        // The node may have forgotten this client after the ping, which the answer would not show.
        #expect(subscription.subscribed(sent: moment(2.6)) == moment(2.5))
        #expect(subscription.proven == moment(2.5))
        // A ping and a request use five seconds of the rate limit.
        #expect(subscription.next(wanted: own + others[..<2], at: time(7.2)) == .wait(until: time(7.5)))
        #expect(subscription.next(wanted: own + others[..<2], at: time(7.5)) == .ask(.ping))
    }

    @Test func aForgottenSubscriptionIsDetectedBeforeTopicsAreAdded() {
        var subscription = accepted(others[..<1])
        #expect(subscription.next(wanted: own + others[..<2], at: time(2.5)) == .ask(.ping))
        subscription.forgotten(at: time(2.6))
        #expect(subscription.next(wanted: own + others[..<2], at: time(2.6)) == .ask(.subscribe(own + others[..<2])))
    }

    @Test func rateLimitedTopicsAreSentLater() {
        var subscription = accepted(others[..<200])
        subscription.pinged(sent: moment(20), at: time(20))
        guard case .ask(.subscribe(let part)) = subscription.next(wanted: own + others[..<201], at: time(20)) else {
            Issue.record("not told")
            return
        }
        subscription.refusedForNow(.subscribe(part), sent: time(20), at: time(20))
        // Topics accepted before stay.
        #expect(subscription.proven != nil && subscription.topics == Set(own + others[..<200]))
        subscription.pinged(sent: moment(34), at: time(34))
        #expect(subscription.next(wanted: own + others[..<201], at: time(34.5)) == .wait(until: time(35.5)))
        #expect(subscription.next(wanted: own + others[..<201], at: time(37.5)) == .ask(.ping))
        subscription.pinged(sent: moment(37.5), at: time(37.5))
        #expect(subscription.next(wanted: own + others[..<201], at: time(37.5)) == .ask(.subscribe(own + others[200..<201])))
    }

    // MARK: Dropped topics

    @Test func manyDroppedTopicsAreUnsubscribedFromAtOnce() {
        var subscription = accepted(others[..<300])
        let dropped = Set(others[..<150])
        let wanted = own + others[150..<300]
        // After a pause for the rate limit: a subscription of 300 topics took four requests.
        #expect(subscription.next(wanted: wanted, dropped: dropped, at: time(9)) == .ask(.ping))
        subscription.pinged(sent: moment(9), at: time(9))
        var gone: Set<ContentTopic> = []
        for second in [12.5, 15.0] {
            guard case .ask(.unsubscribe(let part)) = subscription.next(wanted: wanted, dropped: dropped, at: time(second)) else {
                Issue.record("not unsubscribed at \(second)")
                return
            }
            #expect(part.count == (second == 12.5 ? 100 : 50))
            // The request is repeated until it is answered; meanwhile these topics don't count as accepted.
            #expect(subscription.next(wanted: wanted, dropped: dropped, at: time(second)) == .ask(.unsubscribe(part)))
            #expect(!subscription.hasAccepted([part[0]]))
            subscription.unsubscribed(sent: moment(second))
            gone.formUnion(part)
        }
        #expect(gone == dropped && subscription.topics == Set(wanted) && subscription.proven == moment(15))
    }

    @Test func aFewDroppedTopicsWaitForOthers() {
        var subscription = accepted(others[..<3])
        var now = 0.0
        while now < 60 {
            switch subscription.next(wanted: own + others[1..<3], dropped: [others[0]], at: time(now)) {
            case .ask(.ping): subscription.pinged(sent: moment(now), at: time(now))
            case .ask(.unsubscribe(let part)):
                #expect(part == [others[0]] && now >= 30 && now < 32)
                return
            case .ask(.subscribe): Issue.record("nothing is new")
            case .wait(let until): now = Double(until.sinceEpoch / .milliseconds(1)) / 1000
            }
        }
        Issue.record("not unsubscribed")
    }

    @Test func droppedTopicsMakeRoomForNewOnes() {
        var subscription = accepted(others[..<998])
        let (dropped, wanted) = (Set(others[..<10]), own + others[10..<1001])
        var (unsubscribed, now) = (Set<ContentTopic>(), 26.0)
        while !subscription.hasAccepted(wanted), now < 60 {
            switch subscription.next(wanted: wanted, dropped: dropped, at: time(now)) {
            case .ask(.ping): subscription.pinged(sent: moment(now), at: time(now))
            case .ask(.unsubscribe(let part)):
                unsubscribed.formUnion(part)
                subscription.unsubscribed(sent: moment(now))
            case .ask(.subscribe): _ = subscription.subscribed(sent: moment(now))
            case .wait: now += 0.5
            }
        }
        #expect(unsubscribed == dropped && subscription.topics == Set(wanted))
    }

    @Test func ownAndWantedTopicsAndTheLastOneAreKept() {
        var subscription = accepted(others[..<60])
        let dropped = Set(own + others[..<60])
        guard case .ask(.unsubscribe(let part)) = subscription.next(wanted: own + others[..<10], dropped: dropped, at: time(40)) else {
            Issue.record("not unsubscribed")
            return
        }
        #expect(Set(part) == Set(others[10..<60]))

        var foreign = FilterSubscription(ownTopics: [], pubsubTopicCount: 1, topicLimit: 1000, timing: FilterTiming(), at: .zero)
        while case .ask(.subscribe) = foreign.next(wanted: Array(others[..<60]), at: .zero) { _ = foreign.subscribed(sent: moment(0)) }
        guard case .ask(.unsubscribe(let most)) = foreign.next(wanted: [], dropped: Set(others[..<60]), at: time(40)) else {
            Issue.record("not unsubscribed")
            return
        }
        #expect(most.count == 59)
        foreign.unsubscribed(sent: moment(40))
        #expect(foreign.proven == moment(40))
        for second in 41..<200 {
            if case .ask(.unsubscribe) = foreign.next(wanted: [], dropped: Set(others[..<60]), at: time(Double(second))) {
                Issue.record("nothing would be left")
            }
            foreign.pinged(sent: moment(Double(second)), at: time(Double(second)))
        }
    }

    @Test func aTopicThatIsWantedAgainIsSubscribedAgain() {
        var subscription = accepted(others[..<60])
        guard case .ask(.unsubscribe) = subscription.next(wanted: own, dropped: Set(others[..<60]), at: time(40)) else {
            Issue.record("not unsubscribed")
            return
        }
        // The topic is wanted again while that request is pending.
        #expect(!subscription.hasAccepted([others[0]]))
        subscription.unsubscribed(sent: moment(40))
        subscription.pinged(sent: moment(43), at: time(43))
        #expect(
            subscription.next(wanted: own + others[..<1], dropped: Set(others[1..<60]), at: time(43))
                == .ask(.subscribe(own + others[..<1])))
    }

    @Test func unsubscribingRespectsThePaceAndRateLimits() {
        var subscription = accepted(others[..<300])
        let dropped = Set(others[..<300])
        guard case .ask(.unsubscribe(let part)) = subscription.next(wanted: own, dropped: dropped, at: time(40)) else {
            Issue.record("not unsubscribed")
            return
        }
        subscription.refusedForNow(.unsubscribe(part), sent: time(40), at: time(40))
        #expect(subscription.topics.count == 302 && subscription.hasAccepted([part[0]]))
        subscription.pinged(sent: moment(50), at: time(50))
        #expect(subscription.next(wanted: own, dropped: dropped, at: time(54)) == .wait(until: time(55)))
        subscription.pushed(on: others[0], at: moment(57))
        #expect(subscription.next(wanted: own, dropped: dropped, at: time(57.6)) == .ask(.unsubscribe(part)))
        // The node no longer knows the client.
        subscription.forgotten(at: time(58))
        #expect(subscription.topics.isEmpty)
        #expect(subscription.next(wanted: own, dropped: dropped, at: time(60)) == .ask(.subscribe(own)))
    }

    @Test func topicsAreLimitedToWhatTheNodeAccepts() {
        let subscription = accepted(others[...])
        #expect(subscription.topics.count == 1000)
        #expect(subscription.topics.isSuperset(of: own))
    }
}

/// The time since when messages may be lost, over all filter nodes.
struct FilterPeersTests {
    private final class Life: Sendable {}

    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private let own = [ContentTopic(TopicTag(of: "own"))]
    private let query = ContentTopic(TopicTag(of: "query"))
    private let one = NodeKey.generate().peerID
    private let two = NodeKey.generate().peerID
    private let first = Life()
    private let second = Life()

    private func moment(_ seconds: Int) -> Moment { Moment(instant: .seconds(seconds), wallClock: Self.day + .seconds(seconds)) }

    private func peers() -> FilterPeers { FilterPeers(pubsubTopicCount: 1, ownTopics: own) }

    /// Subscribes over the first connection, unless `life` is given.
    /// - Returns: Topics that were not received before.
    @discardableResult
    private func tell(_ peers: inout FilterPeers, _ peer: PeerID, over life: Life? = nil, at second: Int) -> [ContentTopic] {
        let connection = ObjectIdentifier(life ?? first)
        _ = peers.begin(peer, over: connection, at: .seconds(second))
        guard case .ask(let request)? = peers.next(peer, over: connection, wanted: own + [query], at: .seconds(second)) else { return [] }
        return peers.succeeded(request, peer, over: connection, sent: moment(second), at: .seconds(second))
    }

    @Test func pubsubTopicsShareTheTopicLimit() {
        #expect(FilterPeers(pubsubTopicCount: 1).topicLimit == 1000 && FilterPeers(pubsubTopicCount: 3).topicLimit == 333)
        // A request on the last pubsub topic repeats the own topics.
        let two = [query] + own
        #expect(FilterPeers(pubsubTopicCount: 1, ownTopics: two).topicLimit == 998)
        #expect(FilterPeers(pubsubTopicCount: 3, ownTopics: two).topicLimit == 332)
    }

    @Test func aGapIsReportedOnceAfterResubscribing() {
        var peers = peers()
        #expect(peers.takeStanding() == .init())
        tell(&peers, one, at: 0)
        #expect(peers.takeStanding() == .init(isAccepted: true, provenUntil: moment(0)))
        peers.pushed(by: one, on: query, at: moment(7))
        peers.forgotten(one, over: ObjectIdentifier(first), at: .seconds(12))
        #expect(peers.takeStanding() == .init() && peers.accepted.isEmpty)
        tell(&peers, one, at: 13)
        #expect(peers.takeStanding() == .init(isAccepted: true, provenUntil: moment(13), gapFrom: moment(7)))
        #expect(peers.takeStanding().gapFrom == nil)
    }

    @Test func anEndedConnectionMakesAGap() {
        var peers = peers()
        tell(&peers, one, at: 0)
        peers.end(one, over: ObjectIdentifier(first))
        #expect(!peers.isSubscribed(at: one))
        tell(&peers, one, over: second, at: 3)
        #expect(peers.takeStanding().gapFrom == moment(0))
        // It was replaced before its end was noticed, and that end does not affect its successor.
        tell(&peers, one, over: first, at: 9)
        peers.end(one, over: ObjectIdentifier(second))
        #expect(peers.isSubscribed(at: one) && peers.takeStanding().gapFrom == moment(3))
    }

    @Test func aGapAtOneNodeIsReportedWhileAnotherIsSubscribed() {
        var peers = peers()
        tell(&peers, one, at: 0)
        tell(&peers, two, at: 1)
        peers.pushed(by: two, on: query, at: moment(8))
        peers.forgotten(one, over: ObjectIdentifier(first), at: .seconds(9))
        #expect(peers.takeStanding() == .init(isAccepted: true, provenUntil: moment(8), gapFrom: moment(0)))
    }

    @Test func newTopicsAreThoseThatNoNodeHadBefore() {
        var peers = peers()
        #expect(tell(&peers, one, at: 0) == [query])
        #expect(tell(&peers, two, at: 1) == [])
        peers.forgotten(one, over: ObjectIdentifier(first), at: .seconds(9))
        #expect(tell(&peers, one, at: 10) == [])
        for peer in [one, two] { peers.forgotten(peer, over: ObjectIdentifier(first), at: .seconds(30)) }
        #expect(tell(&peers, two, at: 31) == [query])
    }

    @Test func responsesOverAnEarlierConnectionAreIgnored() {
        var peers = peers()
        tell(&peers, one, over: second, at: 0)
        let old = ObjectIdentifier(first)
        #expect(peers.next(one, over: old, wanted: own, at: .seconds(100)) == nil)
        #expect(peers.succeeded(.subscribe([query]), one, over: old, sent: moment(1), at: .seconds(1)).isEmpty)
        peers.forgotten(one, over: old, at: .seconds(2))
        peers.end(one, over: old)
        #expect(peers.accepted == [one])
        let isNew = peers.begin(one, over: ObjectIdentifier(second), at: .seconds(3))
        #expect(!isNew)
    }

    @Test func addedSubscriptionsAreUncertainSinceTheLastProof() {
        var peers = peers()
        tell(&peers, one, at: 0)
        let connection = ObjectIdentifier(first)
        let wanted = own + [query, ContentTopic(TopicTag(of: "new"))]
        #expect(peers.next(one, over: connection, wanted: wanted, at: .seconds(10)) == .ask(.ping))
        _ = peers.succeeded(.ping, one, over: connection, sent: moment(10), at: .seconds(10))
        guard case .ask(let request)? = peers.next(one, over: connection, wanted: wanted, at: .seconds(10)) else {
            Issue.record("not told")
            return
        }
        #expect(peers.succeeded(request, one, over: connection, sent: moment(10), at: .seconds(11)) == [wanted[2]])
        #expect(peers.takeStanding() == .init(isAccepted: true, provenUntil: moment(10), uncertainFrom: moment(10)))
    }
}
