import Testing
import Waku

@testable import NwakuRelay

struct StoreCatchUpTests {
    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_001)
    private static let topic = ContentTopic(rawValue: "/waku/1/0x00000001/rfc26")

    private func moment(_ uptime: Duration) -> Moment {
        Moment(uptime: uptime, clock: Self.day + uptime)
    }

    private func catchUp(topicCount: Int = 1, pageLimit: Int = 1000, remembered: Int = 100) -> StoreCatchUp {
        let topics = (1...topicCount).map { ContentTopic(TopicTag(rawValue: UInt32($0))) }
        return StoreCatchUp(
            configuration: StoreCatchUp.Configuration(
                pubsubTopics: [.statusDefault], contentTopics: topics, pageLimit: pageLimit, rememberedHashCount: remembered))
    }

    private func query(_ action: StoreCatchUp.Action) throws -> StoreQuery {
        guard case .query(let query) = action else { throw NotAQuery(action: action) }
        return query
    }

    private struct NotAQuery: Error {
        let action: StoreCatchUp.Action
    }

    private func page(_ messages: [ReceivedMessage] = [], cursor: String? = nil) -> StorePage {
        StorePage(messages: messages, hashes: messages.map(\.hash), cursor: cursor)
    }

    private func message(_ number: UInt8) -> ReceivedMessage {
        let message = WakuMessage(payload: [number], contentTopic: Self.topic, timestamp: Self.day)
        return ReceivedMessage(message: message, pubsubTopic: .statusDefault)
    }

    @Test func isIdleWithoutAGapOrWithoutTopics() {
        var catchUp = catchUp()
        let action = catchUp.next(at: moment(.zero))
        #expect(action == .idle)
        var empty = StoreCatchUp(configuration: StoreCatchUp.Configuration(pubsubTopics: [.statusDefault], contentTopics: []))
        empty.noteGap(from: Self.day)
        let action2 = empty.next(at: moment(.zero))
        #expect(action2 == .idle)
        #expect(empty.missingFrom == nil)
    }

    @Test func asksFromBeforeTheGapToBeyondNow() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: Self.day)
        let query = try query(catchUp.next(at: moment(.seconds(3))))
        #expect(query.startTime == Self.day - .seconds(60))
        #expect(query.endTime == Self.day + .seconds(63))
        #expect(query.contentTopics == [Self.topic])
        #expect(query.pageSize == 100)
        #expect(catchUp.missingFrom == Self.day)
    }

    @Test func followsTheCursorThenIsDone() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: Self.day)
        _ = try query(catchUp.next(at: moment(.zero)))
        let summary = catchUp.answered(page(cursor: "0x01"))
        #expect(summary == nil)
        #expect(try query(catchUp.next(at: moment(.zero))).cursor == "0x01")
        let summary2 = catchUp.answered(page())
        #expect(summary2 == StoreCatchUp.Summary(messageCount: 0, pageCount: 2))
        let action = catchUp.next(at: moment(.zero))
        #expect(action == .idle)
        #expect(catchUp.missingFrom == nil)
    }

    @Test func asksForTenTopicsAtOnce() throws {
        var catchUp = catchUp(topicCount: 21)
        catchUp.noteGap(from: Self.day)
        var counts: [Int] = []
        while case .query(let query) = catchUp.next(at: moment(.zero)) {
            counts.append(query.contentTopics.count)
            _ = catchUp.answered(page())
        }
        #expect(counts == [10, 10, 1])
    }

    @Test func gapsDuringAWalkMakeOneMoreAWhileLater() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: Self.day)
        _ = try query(catchUp.next(at: moment(.zero)))
        catchUp.noteGap(from: Self.day + .seconds(2))
        catchUp.noteGap(from: Self.day + .seconds(1))
        _ = catchUp.answered(page())
        #expect(catchUp.missingFrom == Self.day + .seconds(1))
        let action = catchUp.next(at: moment(.seconds(4)))
        #expect(action == .wait(until: .seconds(5)))
        #expect(try query(catchUp.next(at: moment(.seconds(5)))).startTime == Self.day - .seconds(59))
    }

    @Test func aFailedWalkGoesOnWhereItWas() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: Self.day)
        _ = try query(catchUp.next(at: moment(.zero)))
        _ = catchUp.answered(page(cursor: "0x01"))
        let isFirst = catchUp.failed(at: moment(.zero), jitter: 1)
        #expect(isFirst)
        let action = catchUp.next(at: moment(.zero))
        #expect(action == .wait(until: .seconds(1)))
        let isFirst2 = catchUp.failed(at: moment(.seconds(1)), jitter: 1)
        #expect(!isFirst2)
        let action2 = catchUp.next(at: moment(.seconds(2)))
        #expect(action2 == .wait(until: .seconds(3)))
        #expect(try query(catchUp.next(at: moment(.seconds(3)))).cursor == "0x01")
        #expect(catchUp.missingFrom == Self.day)
    }

    @Test func aReconnectionEndsThePause() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: Self.day)
        _ = try query(catchUp.next(at: moment(.zero)))
        _ = catchUp.failed(at: moment(.zero), jitter: 1)
        catchUp.noteReconnection()
        _ = try query(catchUp.next(at: moment(.milliseconds(1))))
        let isFirst = catchUp.failed(at: moment(.milliseconds(1)), jitter: 1)
        #expect(isFirst)
    }

    @Test func handsOverAMessageOnce() {
        var catchUp = catchUp(remembered: 2)
        let fresh = catchUp.fresh([message(1), message(2), message(1)])
        #expect(fresh == [message(1), message(2)])
        let fresh2 = catchUp.fresh([message(2), message(3)])
        #expect(fresh2 == [message(3)])
        // Only two are remembered.
        let fresh3 = catchUp.fresh([message(1)])
        #expect(fresh3 == [message(1)])
    }

    @Test func leavesAStoreThatNeverEnds() throws {
        var catchUp = catchUp(pageLimit: 3)
        catchUp.noteGap(from: Self.day)
        var summary: StoreCatchUp.Summary?
        for number in 0..<3 {
            _ = try query(catchUp.next(at: moment(.zero)))
            summary = catchUp.answered(page(cursor: "0x0\(number)"))
        }
        #expect(summary == StoreCatchUp.Summary(messageCount: 0, pageCount: 3, isCutShort: true))
    }

    @Test func aRepeatedCursorIsTheEnd() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: Self.day)
        _ = try query(catchUp.next(at: moment(.zero)))
        _ = catchUp.answered(page(cursor: "0x01"))
        _ = try query(catchUp.next(at: moment(.zero)))
        let summary = catchUp.answered(page(cursor: "0x01"))
        #expect(summary != nil)
    }
}
