import Core
import TestSupport
import Testing

@testable import SessionProtocol

/// The bytes of storage servers that wait in libzmq.
@Suite struct UnreceivedBytesTests {
    /// Of sizes at which the form of the header changes.
    @Test(arguments: [(0, 35), (222, 257), (223, 265), (76_800, 76_842)])
    func partHasTheSizeThatCURVEGivesIt(size: Int, wire: Int) {
        #expect(ZeroMQSocket.wireByteCount(ofPart: size) == wire)
    }

    /// Received messages that were counted too large must not hide the bytes of a later one.
    @Test func receivedMessagesGiveNoCreditToLaterOnes() {
        var bytes = UnreceivedBytes()
        bytes.connected(0, at: .zero)
        bytes.received(1_000_000)
        let counts = [900_000, 950_000].map { bytes.count(ofTotal: $0, at: .seconds(1)) }
        #expect(counts == [0, 50_000])
    }

    /// An old connection has no more allowance for heartbeats than a new one.
    @Test func allowanceForHeartbeatsIsNotSaved() {
        var bytes = UnreceivedBytes()
        bytes.connected(0, at: .zero)
        let day = 86_400
        let counts = (1...day).map { bytes.count(ofTotal: 10 * $0, at: .seconds($0)) }
        #expect(counts.allSatisfy { $0 == 0 })
        let later = bytes.count(ofTotal: 10 * day + 100_000, at: .seconds(day))
        #expect(later == 100_000)
    }

    @Test func connectionsShareALimit() {
        let limits = UnreceivedLimits(each: 100, free: 10, common: 150)
        #expect(limits.excess([1: 100, 2: 60, 3: 20, 4: 10]).isEmpty)
        #expect(limits.excess([1: 101, 2: 60]) == [1])
        // 90 + 60 + 20 + 1 beyond the free bytes: the one that holds most ends.
        #expect(limits.excess([1: 70, 2: 100, 3: 30, 4: 11]) == [2])
        #expect(limits.excess([1: 100, 2: 100, 3: 100, 4: 100]) == [4, 3, 2])
        // Any number of connections with the usual amount.
        #expect(limits.excess(Dictionary(uniqueKeysWithValues: (0..<3000).map { ($0, 10) })).isEmpty)
        #expect(UnreceivedLimits(each: 5, free: 10, common: 150).excess([1: 6, 2: 5]) == [1])
    }
}
