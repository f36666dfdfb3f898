import TestSupport
import LibP2P
import Testing

@testable import WakuP2P

@Suite("Silent peers")
struct SilenceWatchTests {
    private let peer = NodeKey.generate().peerID
    private var limits: SilenceLimits {
        var limits = SilenceLimits()
        limits.probe = .seconds(10)
        limits.leave = .seconds(35)
        return limits
    }

    private func actions(heardAt: (Int) -> Int, isOutbound: Bool) -> [Int: [SilenceWatch.Action]] {
        var watch = SilenceWatch(limits: limits)
        var result: [Int: [SilenceWatch.Action]] = [:]
        for second in 0...40 {
            let heard = SilenceWatch.Heard(peer: peer, at: .seconds(heardAt(second)), isOutbound: isOutbound)
            let actions = watch.look(at: [heard], now: .seconds(second))
            if !actions.isEmpty { result[second] = actions }
        }
        return result
    }

    @Test("Peers that send are not pinged")
    func heard() {
        #expect(actions(heardAt: { $0 / 9 * 9 }, isOutbound: true).isEmpty)
    }

    @Test("Silent peers are pinged periodically, and outbound ones disconnected in the end")
    func silent() {
        let outbound = actions(heardAt: { _ in 0 }, isOutbound: true)
        #expect(outbound[10] == [.probe(peer)] && outbound[20] == [.probe(peer)] && outbound[30] == [.probe(peer)])
        #expect(outbound.keys.sorted() == [10, 20, 30] + Array(35...40))
        #expect(outbound[35] == [.leave(peer)])
        let inbound = actions(heardAt: { _ in 0 }, isOutbound: false)
        #expect(inbound == [10: [.probe(peer)], 20: [.probe(peer)], 30: [.probe(peer)], 40: [.probe(peer)]])
    }

    @Test func silentPeersAreLeftOneAfterTheOther() {
        var watch = SilenceWatch(limits: limits)
        let others = [NodeKey.generate().peerID, NodeKey.generate().peerID]
        func look(at times: [Int], _ second: Int) -> [SilenceWatch.Action] {
            let heard = zip([peer] + others, times).map { SilenceWatch.Heard(peer: $0, at: .seconds($1), isOutbound: true) }
            return watch.look(at: heard, now: .seconds(second)).filter { if case .leave = $0 { true } else { false } }
        }
        #expect(look(at: [1, 0, 1], 34).isEmpty)
        #expect(look(at: [1, 0, 1], 36) == [.leave(others[0])])
        #expect(look(at: [1, 37, 1], 37) == [.leave(peer)])
        #expect(look(at: [38, 37, 1], 38) == [.leave(others[1])])
        #expect(look(at: [38, 37, 39], 39).isEmpty)
    }

    @Test("A configured peer without subscriptions is reported once until it subscribes, and left after twice as long, over and over")
    func unsubscribed() {
        var limits = limits
        limits.probe = .seconds(100)
        limits.unsubscribed = .seconds(10)
        var watch = SilenceWatch(limits: limits)
        func actions(_ second: Int, connectedAt start: Int, lacksSubscription: Bool = true) -> [SilenceWatch.Action] {
            let heard = SilenceWatch.Heard(
                peer: peer, at: .seconds(start), isOutbound: false, lacksSubscription: lacksSubscription)
            return watch.look(at: [heard], now: .seconds(second))
        }
        #expect(actions(9, connectedAt: 0).isEmpty)
        #expect(actions(10, connectedAt: 0) == [.report(peer)])
        #expect(actions(19, connectedAt: 0).isEmpty)
        #expect(actions(20, connectedAt: 0) == [.leave(peer)])
        #expect(actions(31, connectedAt: 21).isEmpty)
        #expect(actions(41, connectedAt: 21) == [.leave(peer)])
        #expect(actions(60, connectedAt: 42, lacksSubscription: false).isEmpty)
        #expect(actions(75, connectedAt: 65) == [.report(peer)])
    }

    @Test("A message after a ping restarts the timeout")
    func speaksAgain() {
        #expect(actions(heardAt: { $0 < 15 ? 0 : 15 }, isOutbound: true).keys.sorted() == [10, 25, 35])
    }
}
