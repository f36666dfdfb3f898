import TestSupport
import Testing
import Core
import Waku

@testable import WakuP2P

struct QueryLookBackTests {
    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private let topics = (0..<25).map { ContentTopic(TopicTag(of: "topic \($0)")) }

    private func moment(_ seconds: Int) -> Moment { Moment(instant: .seconds(seconds), wallClock: Self.day + .seconds(seconds)) }

    @Test func theLastFiveSecondsAreQueriedTenTopicsAtATime() throws {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        lookBack.add(topics, at: moment(100))
        var queries: [StoreQuery] = []
        while case .query(let query) = lookBack.next(at: .seconds(100)) { queries.append(query) }
        #expect(queries.map(\.contentTopics.count) == [10, 10, 5] && queries.flatMap(\.contentTopics) == topics)
        #expect(queries.allSatisfy { $0.startTime == moment(95).wallClock && $0.pubsubTopic == .statusDefault })
    }

    @Test func queriesExpireAndEndAfterAFailure() {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        lookBack.add(Array(topics[..<10]), at: moment(0))
        lookBack.add(Array(topics[10..<20]), at: moment(4))
        let later = StoreQuery(
            pubsubTopic: .statusDefault, contentTopics: Array(topics[10..<20]), startTime: moment(-1).wallClock)
        #expect(lookBack.next(at: .seconds(5)) == .query(later))
        lookBack.add(topics, at: moment(6))
        #expect(lookBack.next(at: .seconds(6)) != nil)
        lookBack.failed(at: .seconds(6))
        #expect(lookBack.next(at: .seconds(6)) == nil)
    }

    @Test func pendingQueriesAreBounded() {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        for _ in 0..<1000 { lookBack.add(topics, at: moment(0)) }
        var count = 0
        while lookBack.next(at: .zero) != nil { count += 1 }
        #expect(count == 200)
    }

    /// All content topics of the last seconds are queried at once, page by page, and once more when the store has had a second.
    @Test func aGapOfGossipIsQueriedTwicePageByPage() {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        lookBack.addGap(on: .statusDefault, at: moment(99))
        lookBack.addGap(on: .statusDefault, at: moment(100))
        var query = StoreQuery(pubsubTopic: .statusDefault, contentTopics: [], startTime: moment(95).wallClock)
        #expect(lookBack.next(at: .seconds(100)) == .query(query))
        lookBack.answered(StorePage(messages: [], hashes: [], cursor: "01"))
        query.cursor = "01"
        #expect(lookBack.next(at: .seconds(100)) == .query(query))
        lookBack.answered(StorePage(messages: [], hashes: [], cursor: "01"))
        query.cursor = nil
        #expect(lookBack.next(at: .seconds(100)) == .wait(until: .seconds(101)))
        #expect(lookBack.next(at: .seconds(101)) == .query(query))
        lookBack.answered(StorePage(messages: [], hashes: [], cursor: nil))
        #expect(lookBack.next(at: .seconds(101)) == nil)
    }

    @Test func pagesOfAGapAreBounded() {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        lookBack.addGap(on: .statusDefault, at: moment(0))
        var count = 0
        while case .query = lookBack.next(at: .seconds(2)) {
            count += 1
            lookBack.answered(StorePage(messages: [], hashes: [], cursor: "\(count)"))
        }
        #expect(count == 20)
    }

    /// The store may be reached a moment after the first gossip peer.
    @Test func aGapIsQueriedUntilAStoreAnswersOrTheWindowHasPassed() {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        lookBack.addGap(on: .statusDefault, at: moment(0))
        var (now, count) = (Instant.zero, 0)
        while let action = lookBack.next(at: now) {
            switch action {
            case .wait(let until): now = until
            case .query:
                count += 1
                lookBack.failed(at: now)
            }
        }
        #expect(now == .seconds(5) && count == 10)
    }

    @Test func receivedMessagesAreNotFresh() {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        let messages = (0..<3).map { number in
            ReceivedMessage(
                message: WakuMessage(payload: [UInt8(number)], contentTopic: topics[0], timestamp: Self.day), pubsubTopic: .statusDefault)
        }
        lookBack.noteReceived([messages[0]])
        let fresh = lookBack.fresh(Array(messages[..<2]))
        #expect(fresh == [messages[1]])
        let fresher = lookBack.fresh(messages)
        #expect(fresher == [messages[2]])
    }
}
