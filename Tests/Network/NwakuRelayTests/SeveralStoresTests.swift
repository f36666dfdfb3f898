import Core
import TestSupport
import Testing

@testable import Waku

/// Stores that differ: each is walked on its own.
struct SeveralStoresTests {
    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private static let topic = ContentTopic(rawValue: "/waku/1/0x00000001/rfc26")
    private let end = StorePage(messages: [], hashes: [], cursor: nil)
    private let endless = StorePage(messages: [], hashes: [], cursor: "0x01")
    private let loss = RelayEvent.catchUpCutShort("the store repeats a page")

    private func moment(_ seconds: Int) -> Moment { Moment(instant: .seconds(seconds), wallClock: Self.day + .seconds(seconds)) }

    private func catchUp(storeCount: Int = 2) -> StoreCatchUp {
        StoreCatchUp(configuration: StoreCatchUp.Configuration(contentTopics: [Self.topic], storeCount: storeCount, settling: .zero))
    }

    private func message(_ number: UInt8) -> ReceivedMessage {
        ReceivedMessage(
            message: WakuMessage(payload: [number], contentTopic: Self.topic, timestamp: Self.day), pubsubTopic: .statusDefault)
    }

    private func isQuery(_ action: StoreCatchUp.Action) -> Bool {
        if case .query = action { true } else { false }
    }

    @Test func eachStoreIsWalkedForAGap() {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(0), at: moment(10))
        for store in 0...1 {
            let action = catchUp.next(at: moment(10), store: store)
            #expect(isQuery(action))
            // Until the last one has been read.
            #expect(catchUp.missingFrom(at: moment(10)) == moment(0).wallClock)
            let summary = catchUp.answered(end, store: store)
            #expect(summary != nil)
            let next = catchUp.next(at: moment(10), store: store)
            #expect(next == .idle)
        }
        #expect(catchUp.missingFrom(at: moment(10)) == nil)
    }

    @Test func aMessageOfTwoStoresIsFreshOnce() {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(0), at: moment(10))
        for store in 0...1 { _ = catchUp.next(at: moment(10), store: store) }
        let first = catchUp.fresh([message(1), message(2)], store: 0)
        let second = catchUp.fresh([message(2), message(3)], store: 1)
        #expect(first == [message(1), message(2)] && second == [message(3)])
        let counts = [1, 0].map { catchUp.answered(end, store: $0)?.messageCount }
        #expect(counts == [1, 2])
    }

    @Test func aStoreThatFailsDoesNotKeepTheGapOpen() {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(0), at: moment(10))
        for store in 0...1 { _ = catchUp.next(at: moment(10), store: store) }
        _ = catchUp.failed(store: 0, at: moment(10), jitter: 1)
        #expect(catchUp.missingFrom(at: moment(10)) == moment(0).wallClock)
        _ = catchUp.answered(end, store: 1)
        #expect(catchUp.missingFrom(at: moment(10)) == nil)
        // It is asked again nevertheless.
        let action = catchUp.next(at: moment(20), store: 0)
        #expect(isQuery(action))
    }

    /// The one that failed longer would name a time that the other one has looked up.
    @Test func theLatestGapCountsWhileAllStoresFail() {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(0), at: moment(10))
        for store in 0...1 { _ = catchUp.next(at: moment(10), store: store) }
        _ = catchUp.failed(store: 0, at: moment(10), jitter: 1)
        _ = catchUp.answered(end, store: 1)
        catchUp.noteGap(from: moment(100), at: moment(110))
        _ = catchUp.next(at: moment(110), store: 1)
        _ = catchUp.failed(store: 1, at: moment(110), jitter: 1)
        #expect(catchUp.missingFrom(at: moment(110)) == moment(100).wallClock)
    }

    @Test func failuresAreReportedWhenAllStoresFail() {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(0), at: moment(10))
        var (logged, loggedForOne): ([Int], [Int]) = ([], [])
        var reported: [Int] = []
        for (number, store) in [0, 0, 0, 0, 1, 1, 1, 0, 1].enumerated() {
            let now = moment(100 * (number + 1))
            _ = catchUp.next(at: now, store: store)
            switch catchUp.failed(store: store, at: now, jitter: 1) {
            case .all: logged.append(number)
            case .one: loggedForOne.append(number)
            case nil: break
            }
            if catchUp.isFailureToReport { reported.append(number) }
        }
        #expect(logged == [4] && loggedForOne == [0] && reported == [6, 7, 8])
    }

    @Test func anEndlessStoreIsNoFailureBesidesOneThatWasRead() {
        for isEndlessFirst in [true, false] {
            var catchUp = catchUp()
            catchUp.noteGap(from: moment(0), at: moment(10))
            var events: [RelayEvent?] = []
            for store in isEndlessFirst ? [0, 1] : [1, 0] {
                walk(&catchUp, store: store, isEndless: store == 0, at: moment(10))
                events.append(catchUp.event(at: moment(10)))
            }
            #expect(events == [nil, .caughtUp])
        }
    }

    /// Walks a store to the end of its first query, or until it repeats a page.
    private func walk(_ catchUp: inout StoreCatchUp, store: Int, isEndless: Bool, at now: Moment) {
        for page in isEndless ? [endless, endless] : [end] {
            _ = catchUp.next(at: now, store: store)
            _ = catchUp.answered(page, store: store)
        }
    }

    @Test func whatNoStoreWasReadToTheEndForIsLost() {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(0), at: moment(10))
        var events: [RelayEvent?] = []
        for store in 0...1 {
            walk(&catchUp, store: store, isEndless: true, at: moment(10))
            events.append(catchUp.event(at: moment(10)))
        }
        #expect(events == [nil, loss])
        // A later gap begins behind it.
        catchUp.noteGap(from: moment(100), at: moment(110))
        for store in 0...1 { walk(&catchUp, store: store, isEndless: false, at: moment(110)) }
        let event = catchUp.event(at: moment(110))
        #expect(event == .caughtUp)
    }

    @Test func aWalkOfALaterGapDoesNotMakeUpForOneThatWasCutShort() {
        var catchUp = catchUp(storeCount: 1)
        catchUp.noteGap(from: moment(0), at: moment(10))
        _ = catchUp.next(at: moment(10))
        catchUp.noteGap(from: moment(100), at: moment(110))
        walk(&catchUp, store: 0, isEndless: true, at: moment(110))
        let first = catchUp.event(at: moment(110))
        #expect(first == nil)
        walk(&catchUp, store: 0, isEndless: false, at: moment(120))
        let events = [catchUp.event(at: moment(120)), catchUp.event(at: moment(120))]
        #expect(events == [loss, .caughtUp])
    }

    @Test func aLossIsReportedOnceTheOtherStoreFails() {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(0), at: moment(10))
        walk(&catchUp, store: 0, isEndless: true, at: moment(10))
        _ = catchUp.next(at: moment(10), store: 1)
        var losses = [catchUp.loss(at: moment(10))]
        for _ in 0..<2 {
            _ = catchUp.failed(store: 1, at: moment(10), jitter: 1)
            losses.append(catchUp.loss(at: moment(10)))
        }
        #expect(losses == [nil, loss, nil])
    }

    @Test func gapsOfAMissingStoreAreDroppedOnceAnotherWasRead() {
        var catchUp = catchUp()
        catchUp.noteGap(from: moment(0), at: moment(10))
        for store in 0...1 { _ = catchUp.next(at: moment(10), store: store) }
        let isDropped = catchUp.dropGaps(ofMissing: 0, at: moment(10))
        #expect(!isDropped)
        _ = catchUp.failed(store: 0, at: moment(10), jitter: 1)
        _ = catchUp.answered(end, store: 1)
        let isDropped2 = catchUp.dropGaps(ofMissing: 0, at: moment(20))
        #expect(isDropped2)
        let action = catchUp.next(at: moment(20), store: 0)
        #expect(action == .idle)
        // It is asked without a pause after the next gap.
        catchUp.noteGap(from: moment(20), at: moment(21))
        let next = catchUp.next(at: moment(21), store: 0)
        #expect(isQuery(next))
    }
}
