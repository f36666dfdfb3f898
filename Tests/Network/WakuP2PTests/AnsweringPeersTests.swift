import LibP2P
import Testing
import WakuCrypto
@testable import WakuP2P

struct AnsweringPeersTests {
    private let peers = (0..<3).map { _ in NodeKey(PrivateKey.generate()).peerID }
    private var choice = AnsweringPeers()

    @Test("A peer that did not answer comes last, with one request at a time, until it answers")
    mutating func silentPeer() {
        #expect(choice.order(peers) == peers)
        choice.asked(peers[0])
        choice.finished(peers[0], isAnswered: false)
        let (last, without) = ([peers[1], peers[2], peers[0]], [peers[1], peers[2]])
        #expect(choice.order(peers) == last)
        choice.asked(peers[0])
        #expect(choice.order(peers) == without)
        choice.finished(peers[0], isAnswered: false)
        #expect(choice.order(peers) == last)
        choice.asked(peers[0])
        choice.finished(peers[0], isAnswered: true)
        #expect(choice.order(peers) == peers)
    }

    @Test("When no peer answers, all are asked")
    mutating func allSilent() {
        for peer in peers { choice.finished(peer, isAnswered: false) }
        choice.asked(peers[1])
        #expect(choice.order(peers) == peers)
    }

    @Test("A peer that left is forgotten")
    mutating func left() {
        choice.finished(peers[0], isAnswered: false)
        #expect(choice.order([peers[1]]) == [peers[1]])
        #expect(choice.order(peers) == peers)
    }
}
