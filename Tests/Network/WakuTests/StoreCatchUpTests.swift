import Core
import TestSupport
import Testing

@testable import Waku

struct StoreCatchUpTests {
    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_001)
    private static let topic = ContentTopic(rawValue: "/waku/1/0x00000001/rfc26")

    private func moment(_ uptime: Duration) -> Moment {
        Moment(instant: Instant(sinceEpoch: uptime), wallClock: Self.day + uptime)
    }

    private func catchUp(
        topicCount: Int = 1, messageLimit: Int = 100_000, pageLimit: Int = 1000, remembered: Int = 100
    ) -> StoreCatchUp {
        let topics = (1...topicCount).map { ContentTopic(TopicTag(rawValue: UInt32($0))) }
        return StoreCatchUp(
            configuration: StoreCatchUp.Configuration(
                contentTopics: topics, settling: .zero, messageLimit: messageLimit, pageLimit: pageLimit,
                rememberedHashCount: remembered))
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
        var empty = StoreCatchUp(configuration: StoreCatchUp.Configuration(contentTopics: []))
        let matters = empty.noteGap(from: moment(.zero), at: moment(.zero))
        #expect(!matters)
        let action2 = empty.next(at: moment(.zero))
        #expect(action2 == .idle)
        #expect(empty.missingFrom(at: moment(.seconds(4))) == nil)
    }

    @Test func liveMessagesWaitForTheFirstWalkAfterAPauseForAWhile() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        #expect(!catchUp.isBehind(at: .zero))
        catchUp.noteGap(from: moment(.zero), goesFirst: true, at: moment(.seconds(1)))
        #expect(catchUp.isBehind(at: .seconds(1)))
        #expect(catchUp.isBehind(at: .milliseconds(2499)))
        #expect(!catchUp.isBehind(at: .milliseconds(2500)))
        _ = try query(catchUp.next(at: moment(.seconds(2))))
        let summary = catchUp.answered(page())
        #expect(summary != nil && !catchUp.isBehind(at: .seconds(1)))
    }

    @Test func windowsStartBeforeTheGap() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        let query = try query(catchUp.next(at: moment(.seconds(3))))
        #expect(query.startTime == Self.day - .seconds(60))
        // The local clock may be behind.
        #expect(query.endTime == nil)
        #expect(query.contentTopics == [Self.topic])
        #expect(query.pageSize == 100)
        #expect(catchUp.missingFrom(at: moment(.seconds(4))) == Self.day)
    }

    @Test func followsTheCursorToTheLastPage() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        _ = try query(catchUp.next(at: moment(.zero)))
        let summary = catchUp.answered(page(cursor: "0x01"))
        #expect(summary == nil)
        #expect(try query(catchUp.next(at: moment(.zero))).cursor == "0x01")
        let summary2 = catchUp.answered(page())
        #expect(summary2 == StoreCatchUp.Summary(messageCount: 0, pageCount: 2))
        let action = catchUp.next(at: moment(.zero))
        #expect(action == .idle)
        #expect(catchUp.missingFrom(at: moment(.seconds(4))) == nil)
    }

    /// A peer with a store may be found seconds after the first attachment.
    @Test func failuresAreReportedFromTheThirdInARowOn() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        _ = try query(catchUp.next(at: moment(.zero)))
        let reported = (1...5).filter { failure in
            _ = catchUp.failed(at: moment(.seconds(failure * 60)), jitter: 1)
            return catchUp.isFailureToReport
        }
        #expect(reported == [3, 4, 5])
        catchUp.noteReconnection()
        #expect(!catchUp.isFailureToReport)
    }

    @Test func asksForTenTopicsAtOnce() throws {
        var catchUp = catchUp(topicCount: 21)
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        var counts: [Int] = []
        while case .query(let query) = catchUp.next(at: moment(.zero)) {
            counts.append(query.contentTopics.count)
            _ = catchUp.answered(page())
        }
        #expect(counts == [10, 10, 1])
    }

    @Test func gapsDuringAWalkAreMergedIntoOneLaterWalk() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        _ = try query(catchUp.next(at: moment(.zero)))
        catchUp.noteGap(from: moment(.seconds(2)), at: moment(.seconds(3)))
        catchUp.noteGap(from: moment(.seconds(1)), at: moment(.seconds(3)))
        _ = catchUp.answered(page())
        #expect(catchUp.missingFrom(at: moment(.seconds(4))) == Self.day + .seconds(1))
        let action = catchUp.next(at: moment(.seconds(4)))
        #expect(action == .wait(until: .seconds(5)))
        #expect(try query(catchUp.next(at: moment(.seconds(5)))).startTime == Self.day - .seconds(59))
    }

    @Test func aFailedWalkIsResumed() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        _ = try query(catchUp.next(at: moment(.zero)))
        _ = catchUp.answered(page(cursor: "0x01"))
        let first = catchUp.failed(at: moment(.zero), jitter: 1)
        #expect(first == .all)
        let action = catchUp.next(at: moment(.zero))
        #expect(action == .wait(until: .seconds(1)))
        let second = catchUp.failed(at: moment(.seconds(1)), jitter: 1)
        #expect(second == nil)
        let action2 = catchUp.next(at: moment(.seconds(2)))
        #expect(action2 == .wait(until: .seconds(3)))
        // No page has reported progress: the query starts from the beginning.
        let query = try query(catchUp.next(at: moment(.seconds(3))))
        #expect(query.cursor == nil)
        #expect(query.startTime == Self.day - .seconds(60))
        #expect(catchUp.missingFrom(at: moment(.seconds(4))) == Self.day)
    }

    /// Other participants' large messages must not block progress.
    @Test func pageSizeShrinksAfterOversizedResponsesAndGrowsAgain() throws {
        var catchUp = catchUp(messageLimit: 200)
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        func size(_ second: Int) throws -> Int { try query(catchUp.next(at: moment(.seconds(second)))).pageSize }
        #expect(try size(0) == 100)
        _ = catchUp.failed(at: moment(.seconds(0)), jitter: 0)
        #expect(try size(10) == 100)
        for expected in [10, 1, 1] {
            _ = catchUp.failed(isTooMuch: true, at: moment(.seconds(10)), jitter: 0)
            #expect(try size(100) == expected)
        }
        // Ten messages, then a hundred, then a whole page: more than the limit.
        var sizes: [Int] = []
        while case .query(let query) = catchUp.next(at: moment(.seconds(1000))) {
            sizes.append(query.pageSize)
            let hashes = Array(repeating: message(1).hash, count: query.pageSize)
            let summary = catchUp.answered(StorePage(messages: [], hashes: hashes, cursor: "0x0\(sizes.count)"))
            #expect(summary?.cutShort == (sizes.count == 21 ? .messageLimit : nil))
        }
        #expect(sizes == [Int](repeating: 1, count: 10) + [Int](repeating: 10, count: 10) + [100])
    }

    @Test func aReconnectionEndsThePause() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        _ = try query(catchUp.next(at: moment(.zero)))
        _ = catchUp.failed(at: moment(.zero), jitter: 1)
        catchUp.noteReconnection()
        _ = try query(catchUp.next(at: moment(.milliseconds(1))))
        let next = catchUp.failed(at: moment(.milliseconds(1)), jitter: 1)
        #expect(next == .all)
    }

    @Test func aMessageIsFreshOnce() {
        var catchUp = catchUp(remembered: 2)
        let fresh = catchUp.fresh([message(1), message(2), message(1)])
        #expect(fresh == [message(1), message(2)])
        let fresh2 = catchUp.fresh([message(2), message(3), message(4), message(5)])
        #expect(fresh2 == [message(3), message(4), message(5)])
        // At most twice as many messages are remembered.
        let fresh3 = catchUp.fresh([message(1)])
        #expect(fresh3 == [message(1)])
    }

    @Test func anEndlessStoreIsLimited() throws {
        var catchUp = catchUp(pageLimit: 3)
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        var summary: StoreCatchUp.Summary?
        for number in 0..<3 {
            _ = try query(catchUp.next(at: moment(.zero)))
            summary = catchUp.answered(page(cursor: "0x0\(number)"))
        }
        #expect(summary == StoreCatchUp.Summary(messageCount: 0, pageCount: 3, cutShort: .pageLimit))
        let event = catchUp.event(at: moment(.zero))
        #expect(event == .catchUpCutShort("the store returns page after page without an end"))
    }

    /// - Returns: the result of a walk, in which each page has two messages, and is `step` later than the one before.
    private func walk(pages: Int, step: Duration, fullPartLimit: Int = 100) throws -> StoreCatchUp.Summary? {
        var configuration = StoreCatchUp.Configuration(contentTopics: [Self.topic], settling: .zero, messageLimit: 4)
        configuration.fullPartLimit = fullPartLimit
        var catchUp = StoreCatchUp(configuration: configuration)
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        for number in 1...pages {
            _ = try query(catchUp.next(at: moment(.zero)))
            let time = Self.day + step * number
            let messages = [UInt8(1), 2].map { number in
                ReceivedMessage(
                    message: WakuMessage(payload: [number], contentTopic: Self.topic, timestamp: time), pubsubTopic: .statusDefault)
            }
            if let summary = catchUp.answered(page(messages, cursor: number < pages ? "0x\(number)" : nil)) { return summary }
        }
        return nil
    }

    @Test("Messages over the limit are read if they are of a longer time, up to a number of limits")
    func manyMessages() throws {
        #expect(try walk(pages: 50, step: .seconds(31)) == StoreCatchUp.Summary(pageCount: 50))
        // The second part is of a minute, the first of two: its window begins earlier.
        #expect(try walk(pages: 50, step: .seconds(30)) == StoreCatchUp.Summary(pageCount: 4, cutShort: .messageLimit))
        #expect(try walk(pages: 50, step: .seconds(31), fullPartLimit: 3) == StoreCatchUp.Summary(pageCount: 8, cutShort: .messageLimit))
    }

    @Test("Each query has the number of messages for itself")
    func partsOfQueries() throws {
        var configuration = StoreCatchUp.Configuration(
            contentTopics: (1...11).map { ContentTopic(TopicTag(rawValue: $0)) }, settling: .zero, messageLimit: 1)
        configuration.fullPartLimit = 1
        var catchUp = StoreCatchUp(configuration: configuration)
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        var summary: StoreCatchUp.Summary?
        for (number, hasMore) in [true, false, true, false].enumerated() {
            _ = try query(catchUp.next(at: moment(.zero)))
            let message = WakuMessage(payload: [1], contentTopic: Self.topic, timestamp: Self.day + .seconds(1))
            let received = ReceivedMessage(message: message, pubsubTopic: .statusDefault)
            summary = catchUp.answered(page([received], cursor: hasMore ? "0x0\(number)" : nil))
        }
        #expect(summary == StoreCatchUp.Summary(pageCount: 4))
    }

    /// Ten messages a page are no endless store.
    @Test func smallPagesAreReadToTheEnd() throws {
        var catchUp = catchUp(messageLimit: 1000)
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        var summary: StoreCatchUp.Summary?
        for number in 1...90 {
            _ = try query(catchUp.next(at: moment(.zero)))
            let hashes = Array(repeating: message(1).hash, count: 10)
            summary = catchUp.answered(StorePage(messages: [], hashes: hashes, cursor: number < 90 ? "0x\(number)" : nil))
        }
        #expect(summary == StoreCatchUp.Summary(messageCount: 0, pageCount: 90))
        let event = catchUp.event(at: moment(.zero))
        #expect(event == .caughtUp)
    }

    @Test func aRepeatedCursorIsNoRegularEnd() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        _ = try query(catchUp.next(at: moment(.zero)))
        _ = catchUp.answered(page(cursor: "0x01"))
        _ = try query(catchUp.next(at: moment(.zero)))
        let summary = catchUp.answered(page(cursor: "0x01"))
        #expect(summary?.cutShort == .repeatedCursor)
    }

    @Test func aGapIsWalkedAtOnceAndAgainAfterSettling() throws {
        var catchUp = StoreCatchUp(configuration: StoreCatchUp.Configuration(contentTopics: [Self.topic]))
        catchUp.noteGap(from: moment(.seconds(10)), at: moment(.seconds(12)))
        #expect(try query(catchUp.next(at: moment(.seconds(12)))).startTime == moment(.seconds(-50)).wallClock)
        _ = catchUp.answered(page())
        let action = catchUp.next(at: moment(.seconds(12)))
        #expect(action == .wait(until: .seconds(17)))
        #expect(catchUp.missingFrom(at: moment(.seconds(12))) == moment(.seconds(10)).wallClock)
        catchUp.noteGap(from: moment(.seconds(15)), at: moment(.milliseconds(16_000)))
        catchUp.noteGap(from: moment(.seconds(16)), at: moment(.milliseconds(16_500)))
        #expect(try query(catchUp.next(at: moment(.seconds(17)))).startTime == moment(.seconds(-50)).wallClock)
        _ = catchUp.answered(page())
        // The first gap has expired, the later ones have not.
        #expect(catchUp.missingFrom(at: moment(.seconds(17))) == moment(.seconds(15)).wallClock)
        #expect(try query(catchUp.next(at: moment(.seconds(22)))).startTime == moment(.seconds(-45)).wallClock)
        _ = catchUp.answered(page())
        let action2 = catchUp.next(at: moment(.seconds(22)))
        #expect(action2 == .idle)
    }

    @Test func liveMessagesAreNotFresh() {
        var catchUp = catchUp()
        catchUp.noteReceived([message(1)])
        let fresh = catchUp.fresh([message(1), message(2)])
        #expect(fresh == [message(2)])
    }

    @Test func gapsAreFoundAfterTheClockWasSet() throws {
        for step in [-1000, 1000] {
            var catchUp = catchUp()
            catchUp.noteGap(from: moment(.seconds(10)), at: moment(.seconds(20)))
            let now = Moment(instant: .seconds(30), wallClock: moment(.seconds(30 + step)).wallClock)
            let start = moment(.seconds(10 + min(step, 0))).wallClock
            #expect(catchUp.missingFrom(at: now) == start)
            #expect(try query(catchUp.next(at: now)).startTime == start - .seconds(60))
        }
    }

    @Test func walksWithAClockAheadAreRepeatedOnce() throws {
        var catchUp = catchUp()
        func ahead(_ uptime: Duration) -> Moment {
            Moment(instant: Instant(sinceEpoch: uptime), wallClock: moment(uptime + .seconds(500)).wallClock)
        }
        catchUp.noteGap(from: ahead(.seconds(100)), at: ahead(.seconds(200)))
        _ = try query(catchUp.next(at: ahead(.seconds(200))))
        _ = catchUp.answered(page())
        let isGap = catchUp.noteClock(at: ahead(.seconds(300)))
        #expect(!isGap)
        let isGap2 = catchUp.noteClock(at: moment(.seconds(301)))
        #expect(isGap2)
        #expect(try query(catchUp.next(at: moment(.seconds(301)))).startTime == moment(.seconds(40)).wallClock)
        _ = catchUp.answered(page())
        // Neither the same step nor a forward step creates another gap.
        let isGap3 = catchUp.noteClock(at: moment(.seconds(302)))
        let isGap4 = catchUp.noteClock(at: ahead(.seconds(303)))
        #expect(!isGap3 && !isGap4)
        let action = catchUp.next(at: ahead(.seconds(400)))
        #expect(action == .idle)
    }

    @Test func repeatedClockChangesDoNotGrowWindows() throws {
        var catchUp = catchUp()
        var longest = Duration.zero
        for round in 1...500 {
            let uptime = Duration.seconds(round * 20)
            let now = Moment(instant: Instant(sinceEpoch: uptime), wallClock: moment(uptime + .seconds(round % 2 * 300)).wallClock)
            // A gap while the clock is ahead; when it was set back, the walk of that gap is repeated.
            if round % 2 == 1 { catchUp.noteGap(from: now, at: now) }
            let start = try #require(try query(catchUp.next(at: now)).startTime)
            longest = max(longest, now.wallClock.since(start))
            _ = catchUp.answered(page())
        }
        // An hour and the overlap.
        #expect(longest == .seconds(3600 + 60))
    }

    @Test func aDeadCursorIsReplacedByATimestamp() throws {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        _ = try query(catchUp.next(at: moment(.zero)))
        _ = catchUp.answered(page([message(1)], cursor: "0x01"))
        _ = catchUp.failed(at: moment(.zero), jitter: 1)
        #expect(try query(catchUp.next(at: moment(.seconds(1)))).cursor == "0x01")
        _ = catchUp.failed(at: moment(.seconds(1)), jitter: 1)
        let query = try query(catchUp.next(at: moment(.seconds(3))))
        #expect(query.cursor == nil)
        #expect(query.startTime == message(1).message.timestamp)
    }

    // MARK: Learned topics

    private struct Learned: LearnedContentTopics {
        let all: [ContentTopic]
        func contains(_ topic: ContentTopic) -> Bool { all.contains(topic) }
        func topics(limit: Int) -> [ContentTopic]? { all.count > limit ? nil : all }
    }

    private func catchUp(learned count: Int, contentTopics: [ContentTopic] = [topic]) -> (StoreCatchUp, [ContentTopic]) {
        let learned = (0..<count).map { ContentTopic(rawValue: "/chat/1/\($0)/proto") }
        return (
            StoreCatchUp(configuration: .init(contentTopics: contentTopics, learned: Learned(all: learned), settling: .zero)), learned
        )
    }

    private func message(on topic: ContentTopic) -> ReceivedMessage {
        ReceivedMessage(message: WakuMessage(payload: [1], contentTopic: topic, timestamp: Self.day), pubsubTopic: .statusDefault)
    }

    @Test func learnedTopicsAreQueriedAfterTheNodesOwn() throws {
        var (catchUp, learned) = catchUp(learned: 11)
        catchUp.noteReceived([message(on: learned[3]), message(on: ContentTopic(rawValue: "/chat/1/other/proto"))])
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        var asked: [[ContentTopic]] = []
        while case .query(let query) = catchUp.next(at: moment(.zero)) {
            asked.append(query.contentTopics)
            // The message that came live is left out.
            let fresh = catchUp.fresh([message(on: learned[3])])
            #expect(fresh.isEmpty)
            _ = catchUp.answered(page())
        }
        #expect(asked == [[Self.topic], Array(learned[..<10]), Array(learned[10...])])
    }

    @Test func manyLearnedTopicsAreFoundAmongAllMessages() throws {
        var (catchUp, learned) = catchUp(learned: StoreCatchUp.learnedTopicLimit + 1)
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        #expect(try query(catchUp.next(at: moment(.zero))).contentTopics == [Self.topic])
        _ = catchUp.answered(page())
        let query = try query(catchUp.next(at: moment(.zero)))
        #expect(query.contentTopics.isEmpty)
        #expect(query.pubsubTopic == .statusDefault)
        let fresh = catchUp.fresh([message(on: learned[100]), message(on: ContentTopic(rawValue: "/chat/1/other/proto")), message(1)])
        #expect(fresh.map(\.message.contentTopic) == [learned[100], Self.topic])
        let summary = catchUp.answered(page())
        #expect(summary == StoreCatchUp.Summary(messageCount: 2, pageCount: 2))
    }

    @Test func nothingIsQueriedBeforeATopicIsLearned() {
        var (catchUp, _) = catchUp(learned: 0, contentTopics: [])
        catchUp.noteGap(from: moment(.zero), at: moment(.zero))
        let action = catchUp.next(at: moment(.zero))
        #expect(action == .idle)
        #expect(catchUp.missingFrom(at: moment(.seconds(4))) == nil)
    }
}
