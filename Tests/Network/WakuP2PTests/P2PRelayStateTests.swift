import LibP2P
import Core
import TestSupport
import Testing
import Waku

@testable import WakuP2P

/// Methods that involve several parts of the relay's state.
@Suite struct P2PRelayStateTests {
    private static let day = Timestamp(rawValue: 1_700_000_000_000_000_000)
    private static let topic = ContentTopic(TopicTag(rawValue: 7))
    private let peer = NodeKey.generate().peerID
    private let connection = ObjectIdentifier(Token())

    private final class Token {}

    private func moment(_ seconds: Int) -> Moment { Moment(instant: .seconds(seconds), wallClock: Self.day + .seconds(seconds)) }

    private func state(isFilterClient: Bool) -> P2PRelayState {
        var configuration = P2PRelay.Configuration(key: .generate(), catchUpTopics: [Self.topic])
        if isFilterClient { configuration.contentTopics = { _ in [Self.topic] } }
        return P2PRelayState(configuration: configuration, own: configuration.key.peerID, at: moment(0))
    }

    @Test func attachmentFollowsTheMesh() {
        var state = state(isFilterClient: false)
        #expect(state.relayState == .detached("no peer was reached yet"))
        state.reachedPeer()
        #expect(state.relayState == .detached("no peer gossips on a topic of this node"))
        #expect(
            state.updateAttachment([.init(hasPeers: true, isCovered: true)], isInboxEmpty: true, at: moment(1))
                == .init(wasAttached: false, isAttached: true))
        #expect(state.relayState == .attached)
        let lost = state.updateAttachment([.init()], isInboxEmpty: true, at: moment(10))
        #expect(lost.wasAttached && !lost.isAttached)
        #expect(state.relayState == .detached("no peer gossips on a topic of this node"))
    }

    @Test func aGapIsNotedWhenTheMeshIsBack() {
        var state = state(isFilterClient: false)
        _ = state.updateAttachment([.init(hasPeers: true, isCovered: true)], isInboxEmpty: true, at: moment(1))
        _ = state.updateAttachment([.init()], isInboxEmpty: true, at: moment(10))
        let back = state.updateAttachment([.init(hasPeers: true, isCovered: true)], isInboxEmpty: true, at: moment(60))
        #expect(back.losses == .init(gapCount: 1, resumed: [.statusDefault], needsCatchUp: true) && back.needsLookBack)
        guard case .query(let query) = state.progress.topics[0].catchUp.next(at: moment(61)) else {
            Issue.record("no store query after a gap")
            return
        }
        #expect(query.contentTopics == [Self.topic])
    }

    /// The mesh says nothing about a filter client: an accepted subscription does.
    @Test func aFilterClientIsAttachedByASubscription() {
        var state = state(isFilterClient: true)
        #expect(state.updateAttachment([], isInboxEmpty: true, at: moment(1)).isAttached == false)
        #expect(state.filterPeers.begin(peer, over: connection, at: .seconds(1)) == true)
        guard case .ask(let request)? = state.filterPeers.next(peer, over: connection, wanted: [Self.topic], at: .seconds(1)) else {
            Issue.record("nothing to subscribe to")
            return
        }
        _ = state.filterPeers.succeeded(request, peer, over: connection, sent: moment(1), at: .seconds(1))
        #expect(state.updateAttachment([], isInboxEmpty: true, at: moment(2)).isAttached == true)
        state.filterPeers.end(peer, over: connection)
        #expect(state.updateAttachment([], isInboxEmpty: true, at: moment(3)).isAttached == false)
        #expect(state.relayState == .detached("no filter node has accepted this node's topics"))
    }

    /// Pushed messages prove the subscription up to when they were received, not up to when they were delivered.
    @Test func aPushedMessageProvesTheSubscription() {
        var state = state(isFilterClient: true)
        _ = state.filterPeers.begin(peer, over: connection, at: .seconds(1))
        guard case .ask(let request)? = state.filterPeers.next(peer, over: connection, wanted: [Self.topic], at: .seconds(1)) else {
            Issue.record("nothing to subscribe to")
            return
        }
        _ = state.filterPeers.succeeded(request, peer, over: connection, sent: moment(1), at: .seconds(1))
        let message = ReceivedMessage(
            message: WakuMessage(payload: [1], contentTopic: Self.topic, timestamp: Self.day), pubsubTopic: .statusDefault)
        state.notePushed([message], by: peer, at: moment(8))
        _ = state.updateAttachment([], isInboxEmpty: true, at: moment(20))
        #expect(state.progress.seenUntil(at: moment(20)) == [.statusDefault: moment(8).wallClock])
    }

    @Test func unreadableMessagesOfAStoreAreReportedOnce() {
        var state = state(isFilterClient: false)
        let other = NodeKey.generate().peerID
        let reports = [peer, other, peer, other].map { state.shouldReportUnreadableStore(of: $0) }
        #expect(reports == [true, true, false, false])
    }

    @Test func messagesFromPeersAreNotFetchedAgain() {
        var state = state(isFilterClient: true)
        let message = ReceivedMessage(
            message: WakuMessage(payload: [1], contentTopic: Self.topic, timestamp: Self.day), pubsubTopic: .statusDefault)
        state.noteReceived([message])
        #expect(state.progress.topics[0].catchUp.fresh([message]) == [])
        #expect(state.lookBack.fresh([message]) == [])
        // The run that received it was cancelled, perhaps before it was delivered.
        state.progress.beginAgain()
        #expect(state.progress.topics[0].catchUp.fresh([message]) == [message])
    }

    @Test func watchedAndDroppedTopicsAreBounded() {
        var state = state(isFilterClient: true)
        let topics = (0..<3000).map { ContentTopic(TopicTag(rawValue: UInt32($0))) }
        // Topics that no node has are not dropped.
        state.watch(Array(topics[..<2000]))
        // Of 1,000 topics at a node, one is the own topic, and another its repetition in each request.
        #expect(state.watchedTopics == Array(topics[1002..<2000]) && state.droppedTopics.isEmpty)
        _ = state.filterPeers.begin(peer, over: connection, at: .zero)
        _ = state.filterPeers.next(peer, over: connection, wanted: state.watchedTopics, at: .zero)
        state.unwatch(Array(topics[1000..<1500]))
        #expect(state.watchedTopics == Array(topics[1500..<2000]) && state.droppedTopics == Set(topics[1002..<1500]))
        // Some topics are watched again; topics left out of a full list are dropped.
        state.watch(Array(topics[1000..<1100]))
        #expect(state.droppedTopics == Set(topics[1100..<1500]))
        state.watch(Array(topics[2000..<3000]))
        #expect(state.watchedTopics == Array(topics[2002...]) && state.droppedTopics.count <= 1000)
        state.filterPeers.end(peer, over: connection)
        state.unwatch([])
        #expect(state.droppedTopics.isEmpty)
    }

    @Test func lifecycleStepsHappenOnce() async {
        var state = state(isFilterClient: false)
        #expect(state.startListening() == true)
        #expect(state.startListening() == false)
        #expect(state.shouldReportTopicLimit() == true)
        #expect(state.shouldReportTopicLimit() == false)
        var starts = 0
        for _ in 0..<2 {
            state.start {
                starts += 1
                return Task {}
            }
        }
        #expect(starts == 1)
        #expect(state.close() != nil)
    }

    @Test func aClosedRelayDoesNotStart() {
        var state = state(isFilterClient: false)
        #expect(state.close() == nil)
        state.start {
            Issue.record("started after close")
            return Task {}
        }
    }
}
