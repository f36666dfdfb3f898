import LibP2P
import TestSupport
import Testing
import Core
import Waku

@testable import WakuP2P

@Suite("Receive progress")
struct P2PProgressTests {
    private static let day = Timestamp(rawValue: 1_800_000_000_000_000_000)
    private static let covered = TopicReception(hasPeers: true, isCovered: true)
    private static let empty = TopicReception()
    /// Its mesh has only peers that dialed this node.
    private static let strange = TopicReception(hasPeers: true)
    private let topic = PubsubTopic.statusDefault

    private func moment(_ seconds: Int) -> Moment { Moment(instant: .seconds(seconds), wallClock: Self.day + .seconds(seconds)) }

    private func progress(lastSeen: [PubsubTopic: Timestamp] = [:]) -> P2PProgress {
        P2PProgress(
            pubsubTopics: [topic], catchUp: .init(contentTopics: [ContentTopic(TopicTag(rawValue: 1))], settling: .zero),
            stores: StoreChoice(configured: [NodeKey.generate().peerID], findsPeers: false), lastSeen: lastSeen, at: moment(0))
    }

    @Test("seenUntil is unknown before the first attachment, then current")
    func fresh() {
        var progress = progress()
        #expect(progress.seenUntil(at: moment(1)).isEmpty && !progress.isAttached)
        #expect(progress.note([Self.empty], isHandedOver: true, at: moment(1)) == .init())
        #expect(progress.seenUntil(at: moment(1)).isEmpty && progress.detachedTopics == [topic])
        #expect(progress.note([Self.covered], isHandedOver: true, at: moment(2)) == .init())
        #expect(progress.isAttached && progress.detachedTopics.isEmpty)
        #expect(progress.note([Self.covered], isHandedOver: true, at: moment(9)) == .init())
        #expect(progress.seenUntil(at: moment(9)) == [topic: moment(9).wallClock])
        // Undelivered messages do not count as seen.
        _ = progress.note([Self.covered], isHandedOver: false, at: moment(12))
        #expect(progress.seenUntil(at: moment(12)) == [topic: moment(9).wallClock])
    }

    @Test("After a detachment the store is queried, and seenUntil waits for it")
    func gap() {
        var progress = progress()
        _ = progress.note([Self.covered], isHandedOver: true, at: moment(10))
        _ = progress.note([Self.empty], isHandedOver: true, at: moment(20))
        #expect(progress.seenUntil(at: moment(25)) == [topic: moment(10).wallClock])
        #expect(progress.topics[0].catchUp.next(at: moment(25)) == .idle)
        #expect(
            progress.note([Self.covered], isHandedOver: true, at: moment(30)) == .init(gapCount: 1, resumed: [topic], needsCatchUp: true))
        #expect(progress.seenUntil(at: moment(31)) == [topic: moment(10).wallClock])
        guard case .query(let query) = progress.topics[0].catchUp.next(at: moment(31)) else {
            Issue.record("the store is not asked")
            return
        }
        #expect(query.startTime == moment(10 - 60).wallClock && query.pubsubTopic == topic)
        #expect(progress.topics[0].catchUp.answered(StorePage(messages: [], hashes: [], cursor: nil)) != nil)
        _ = progress.note([Self.covered], isHandedOver: true, at: moment(32))
        #expect(progress.seenUntil(at: moment(33)) == [topic: moment(32).wallClock])
    }

    @Test("The time since a previous run is looked up at the first attachment, which is no gap; a future time is replaced")
    func earlierLife() {
        var progress = progress(lastSeen: [topic: Self.day - .seconds(500)])
        #expect(progress.seenUntil(at: moment(0)) == [topic: Self.day - .seconds(500)])
        #expect(
            progress.note([Self.covered], isHandedOver: true, at: moment(5)) == .init(gapCount: 0, resumed: [topic], needsCatchUp: true))
        #expect(progress.seenUntil(at: moment(5)) == [topic: Self.day - .seconds(500)])
        let isBehind = progress.isBehind(at: .seconds(6))
        #expect(isBehind)
        let future = self.progress(lastSeen: [topic: Self.day + .seconds(500)])
        #expect(future.seenUntil(at: moment(0)) == [topic: Self.day - .seconds(3600)])
    }

    @Test("Messages that come before the first attachment wait for a while after a previous run")
    func early() {
        var (later, first) = (progress(lastSeen: [topic: Self.day - .seconds(500)]), progress())
        let isBehind = [100, 101, 102].map { later.isBehind(at: .seconds($0)) }
        #expect(isBehind == [true, true, false])
        let isFirstBehind = first.isBehind(at: .seconds(100))
        #expect(!isFirstBehind)
    }

    /// The start of the window that the store is asked for, if it is asked.
    private func queryStart(_ progress: inout P2PProgress, at now: Moment) -> Timestamp? {
        guard case .query(let query) = progress.topics[0].catchUp.next(at: now) else { return nil }
        return query.startTime
    }

    @Test func aLostConnectionThatWasReplacedAtOnceIsAGap() {
        var progress = progress()
        _ = progress.note([Self.covered], isHandedOver: true, at: moment(99))
        _ = progress.note([Self.covered], isHandedOver: true, at: moment(100))
        var replaced = Self.covered
        replaced.lostFrom = .seconds(70)
        #expect(
            progress.note([replaced], isHandedOver: true, at: moment(101)) == .init(gapCount: 1, resumed: [topic], needsCatchUp: true))
        #expect(progress.seenUntil(at: moment(101)) == [topic: moment(70).wallClock])
        #expect(queryStart(&progress, at: moment(102)) == moment(70 - 60).wallClock)
    }

    @Test func aLostConnectionBeforeTheFirstCoverageIsNoGap() {
        var progress = progress()
        var replaced = Self.covered
        replaced.lostFrom = .seconds(0)
        #expect(progress.note([replaced], isHandedOver: true, at: moment(1)) == .init())
    }

    @Test func theTimeOfASuspensionIsAGap() {
        var progress = progress()
        _ = progress.note([Self.covered], isHandedOver: true, at: moment(10))
        #expect(progress.note([Self.covered], isHandedOver: true, at: moment(20)) == .init())
        #expect(
            progress.note([Self.covered], isHandedOver: true, at: moment(31)) == .init(gapCount: 1, resumed: [topic], needsCatchUp: true))
        #expect(queryStart(&progress, at: moment(32)) == moment(20 - 60).wallClock)
    }

    /// A node that can't push to a client may drop messages and keep the subscription, so a ping after the suspension proves nothing about before.
    @Test func theTimeOfASuspensionIsAGapOfAFilterClient() {
        var progress = progress()
        func standing(_ seconds: Int) -> FilterPeers.Standing { .init(isAccepted: true, provenUntil: moment(seconds)) }
        _ = progress.note(standing(8), isHandedOver: true, at: moment(10))
        #expect(progress.note(standing(12), isHandedOver: true, at: moment(12)) == .init())
        #expect(progress.note(standing(99), isHandedOver: true, at: moment(99)).needsCatchUp == true)
        #expect(queryStart(&progress, at: moment(100)) == moment(12 - 60).wallClock)
    }

    @Test func peersThatDialedThisNodeProveNothing() {
        var progress = progress()
        _ = progress.note([Self.covered], isHandedOver: true, at: moment(10))
        for second in 11...19 { #expect(progress.note([Self.strange], isHandedOver: true, at: moment(second)) == .init()) }
        #expect(progress.isAttached && progress.detachedTopics.isEmpty)
        #expect(progress.seenUntil(at: moment(19)) == [topic: moment(10).wallClock])
        #expect(
            progress.note([Self.covered], isHandedOver: true, at: moment(20)) == .init(gapCount: 1, resumed: [topic], needsCatchUp: true))
        #expect(queryStart(&progress, at: moment(21)) == moment(10 - 60).wallClock)
    }
}
