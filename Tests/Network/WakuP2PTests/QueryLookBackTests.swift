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
        while let query = lookBack.next(at: .seconds(100)) { queries.append(query) }
        #expect(queries.map(\.contentTopics.count) == [10, 10, 5] && queries.flatMap(\.contentTopics) == topics)
        #expect(queries.allSatisfy { $0.startTime == moment(95).wallClock && $0.pubsubTopic == .statusDefault })
    }

    @Test func queriesExpireAndEndAfterAFailure() {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        lookBack.add(Array(topics[..<10]), at: moment(0))
        lookBack.add(Array(topics[10..<20]), at: moment(4))
        #expect(lookBack.next(at: .seconds(5))?.contentTopics == Array(topics[10..<20]))
        lookBack.add(topics, at: moment(6))
        #expect(lookBack.next(at: .seconds(6)) != nil)
        lookBack.failed()
        #expect(lookBack.next(at: .seconds(6)) == nil)
    }

    @Test func pendingQueriesAreBounded() {
        var lookBack = QueryLookBack(pubsubTopics: [.statusDefault])
        for _ in 0..<1000 { lookBack.add(topics, at: moment(0)) }
        var count = 0
        while lookBack.next(at: .zero) != nil { count += 1 }
        #expect(count == 200)
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
