import LibP2P
import Testing

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

    @Test func onlyAConfiguredPeerIsExpected() {
        let choice = StoreChoice(configured: [peers[0]], findsPeers: true)
        #expect(choice.isExpected(at: 0, identified: [peers[1]]) && !choice.isExpected(at: 0, identified: [peers[0]]))
        #expect(!choice.isExpected(at: 1, identified: []))
    }
}
