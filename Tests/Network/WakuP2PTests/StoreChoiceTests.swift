import LibP2P
import Testing
import Waku

@testable import WakuP2P

/// Which peers' stores are asked for missed messages.
struct StoreChoiceTests {
    private let peers = (0..<5).map { _ in NodeKey.generate().peerID }

    @Test func eachConfiguredPeerHasAPlace() {
        var choice = StoreChoice(configured: [peers[0], peers[1], peers[0]], findsPeers: false)
        #expect(choice.count == 2)
        let asked = (0..<2).map { choice.candidates(at: $0, among: peers) }
        #expect(Set(asked) == [[peers[0]], [peers[1]]])
        let others = (0..<2).map { choice.candidates(at: $0, among: Array(peers[2...])) }
        #expect(others == [[], []])
    }

    @Test func twoFoundPeersAreAskedBesidesTheConfiguredOne() {
        var choice = StoreChoice(configured: [peers[0]], findsPeers: true)
        #expect(choice.count == 3)
        #expect(choice.candidates(at: 0, among: peers) == [peers[0]])
        #expect(choice.candidates(at: 1, among: peers) == Array(peers[1...]))
        // The walk at place 1 is at the first one.
        #expect(choice.candidates(at: 2, among: peers) == Array(peers[2...]))
        #expect(choice.candidates(at: 2, among: [peers[0], peers[1]]) == [])
    }

    @Test func aWalkContinuesAtThePeerThatAnswered() {
        var choice = StoreChoice(configured: [], findsPeers: true)
        #expect(choice.candidates(at: 0, among: peers) == peers)
        choice.answered(peers[3], at: 0)
        #expect(choice.candidates(at: 0, among: peers) == [peers[3], peers[0], peers[1], peers[2], peers[4]])
        #expect(choice.candidates(at: 1, among: peers) == [peers[0], peers[1], peers[2], peers[4]])
        choice.ended(at: 0)
        #expect(choice.candidates(at: 0, among: peers) == Array(peers[1...]))
    }

    @Test("A peer of other shards has no messages on a topic, unless it gossips on it; one of unknown shards may have some")
    func shards() {
        let (topic, other) = (PubsubTopic(rawValue: "/waku/2/rs/16/32"), PubsubTopic(rawValue: "/waku/2/rs/16/64"))
        func mayStore(_ metadata: WakuMetadata?, _ subscriptions: PubsubTopic...) -> Bool {
            StoreChoice.mayStore(topic, metadata, subscriptions: subscriptions.map(\.rawValue))
        }
        #expect(!mayStore(WakuMetadata(clusterID: 16, shards: [64, 128]), other))
        #expect(mayStore(WakuMetadata(clusterID: 16, shards: [64, 32])))
        #expect(mayStore(WakuMetadata(clusterID: 16, shards: [64]), other, topic))
        #expect(mayStore(nil) && mayStore(WakuMetadata(clusterID: 16, shards: [])) && mayStore(WakuMetadata(clusterID: nil, shards: [64])))
        let named = PubsubTopic(rawValue: "/waku/2/default-waku/proto")
        #expect(StoreChoice.mayStore(named, WakuMetadata(clusterID: 16, shards: [64]), subscriptions: []))
    }

    @Test func onlyAConfiguredPeerIsExpected() {
        let choice = StoreChoice(configured: [peers[0]], findsPeers: true)
        #expect(choice.isExpected(at: 0, identified: [peers[1]]) && !choice.isExpected(at: 0, identified: [peers[0]]))
        #expect(!choice.isExpected(at: 1, identified: []))
    }
}
