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

    @Test("A message after a ping restarts the timeout")
    func speaksAgain() {
        #expect(actions(heardAt: { $0 < 15 ? 0 : 15 }, isOutbound: true).keys.sorted() == [10, 25, 35])
    }
}
