import Testing
import Core
import Waku

@testable import LoopbackRelay

struct LoopbackStateTests {
    private static let now = Timestamp(rawValue: 1_800_000_000_000_000_001)
    private static let topic = ContentTopic(TopicTag(rawValue: 1))

    private func state(cache: Int = 50, count: Int = 100, bytes: Int = 1 << 20) -> LoopbackState {
        LoopbackState(limits: LoopbackState.Limits(cacheCapacity: cache, archiveCount: count, archiveByteCount: bytes))
    }

    private func message(
        _ number: UInt8, at offset: Duration = .zero, topic: ContentTopic = Self.topic, pubsub: PubsubTopic = .statusDefault,
        ephemeral: Bool = false
    ) -> ReceivedMessage {
        let message = WakuMessage(payload: [number], contentTopic: topic, timestamp: Self.now + offset, ephemeral: ephemeral)
        return ReceivedMessage(message: message, pubsubTopic: pubsub)
    }

    @Test func pollsTakeWhatTheyReturnInOrderOfArrival() {
        var state = state()
        state.subscribe(to: [.statusDefault])
        state.arrive(message(2, at: .seconds(1)), at: Self.now)
        state.arrive(message(1), at: Self.now)
        state.arrive(message(1), at: Self.now)
        let messages = state.poll(.statusDefault)
        #expect(messages == [message(2, at: .seconds(1)), message(1)])
        let messages2 = state.poll(.statusDefault)
        #expect(messages2 == [])
    }

    @Test func unsubscribedTopicsAreNotCached() {
        var state = state()
        state.arrive(message(1), at: Self.now)
        let messages = state.poll(.statusDefault)
        #expect(messages == nil)
        state.subscribe(to: [.statusDefault])
        let messages2 = state.poll(.statusDefault)
        #expect(messages2 == [])
        state.restart()
        let messages3 = state.poll(.statusDefault)
        #expect(messages3 == nil)
    }

    @Test func aFullCacheDropsTheSmallestTimestampOfAllTopics() {
        let other = PubsubTopic(rawValue: "/waku/2/rs/16/64")
        var state = state(cache: 2)
        state.subscribe(to: [.statusDefault, other])
        state.arrive(message(1, at: .seconds(2)), at: Self.now)
        state.arrive(message(2, at: .seconds(1), pubsub: other), at: Self.now)
        state.arrive(message(3), at: Self.now)
        let messages = state.poll(other)
        #expect(messages == [])
        let messages2 = state.poll(.statusDefault)
        #expect(messages2 == [message(1, at: .seconds(2)), message(3)])
    }

    @Test func theStoreRefusesEphemeralAndMisdated() {
        var state = state()
        state.arrive(message(1, ephemeral: true), at: Self.now)
        state.arrive(message(2, at: .seconds(21)), at: Self.now)
        state.arrive(message(3, at: .seconds(-21)), at: Self.now)
        state.arrive(message(4, at: .seconds(20)), at: Self.now)
        state.arrive(message(5, at: .seconds(-20)), at: Self.now)
        #expect(state.query(LoopbackQuery()).messages == [message(5, at: .seconds(-20)), message(4, at: .seconds(20))])
    }

    @Test func theStoreForgetsItsOldest() {
        var state = state(count: 2)
        for number in UInt8(1)...3 { state.arrive(message(number, at: .seconds(Int(number))), at: Self.now) }
        #expect(state.query(LoopbackQuery()).messages.map(\.message.payload) == [[2], [3]])
        let size = 1 + Self.topic.rawValue.utf8.count
        var small = self.state(bytes: 2 * size)
        for number in UInt8(1)...3 { small.arrive(message(number, at: .seconds(Int(number))), at: Self.now) }
        #expect(small.query(LoopbackQuery()).messages.map(\.message.payload) == [[2], [3]])
    }

    @Test func theStorePages() {
        var state = state()
        for number in UInt8(1)...5 { state.arrive(message(number, at: .seconds(Int(number))), at: Self.now) }
        for isAscending in [true, false] {
            var query = LoopbackQuery(isAscending: isAscending, pageSize: 2)
            var pages: [[UInt8]] = []
            repeat {
                let page = state.query(query)
                pages.append(page.messages.flatMap(\.message.payload))
                query.cursor = page.cursor
            } while query.cursor != nil
            #expect(pages == (isAscending ? [[1, 2], [3, 4], [5]] : [[4, 5], [2, 3], [1]]))
        }
    }

    @Test func theStoreFilters() {
        let other = ContentTopic(TopicTag(rawValue: 2))
        var state = state()
        state.arrive(message(1), at: Self.now)
        state.arrive(message(2, at: .seconds(1), topic: other), at: Self.now)
        state.arrive(message(3, at: .seconds(2), pubsub: PubsubTopic(rawValue: "/waku/2/rs/16/64")), at: Self.now)
        func found(_ query: LoopbackQuery) -> [UInt8] { state.query(query).messages.flatMap(\.message.payload) }
        #expect(found(LoopbackQuery(pubsubTopic: .statusDefault)) == [1, 2])
        #expect(found(LoopbackQuery(contentTopics: [other])) == [2])
        #expect(found(LoopbackQuery(startTime: Self.now + .seconds(1), endTime: Self.now + .seconds(1))) == [2])
        #expect(found(LoopbackQuery(hashes: [message(1).hash])) == [1])
    }
}
