import Testing

@testable import SessionProtocol

/// The bytes of storage servers that wait.
@Suite struct UnreceivedLimitsTests {
    private func excess(_ limits: UnreceivedLimits, _ counts: [UInt64: Int]) -> [UInt64] {
        let counts = counts.map { (ConnectionNumber(rawValue: $0.key), $0.value) }
        return limits.excess(Dictionary(uniqueKeysWithValues: counts)).map(\.rawValue)
    }

    @Test func connectionsShareALimit() {
        let limits = UnreceivedLimits(each: 100, free: 10, common: 150)
        #expect(excess(limits, [1: 100, 2: 60, 3: 20, 4: 10]).isEmpty)
        #expect(excess(limits, [1: 101, 2: 60]) == [1])
        // 90 + 60 + 20 + 1 beyond the free bytes: the one that holds most ends.
        #expect(excess(limits, [1: 70, 2: 100, 3: 30, 4: 11]) == [2])
        #expect(excess(limits, [1: 100, 2: 100, 3: 100, 4: 100]) == [4, 3, 2])
        // Any number of connections with the usual amount.
        #expect(excess(limits, Dictionary(uniqueKeysWithValues: (0..<3000).map { ($0, 10) })).isEmpty)
        #expect(excess(UnreceivedLimits(each: 5, free: 10, common: 150), [1: 6, 2: 5]) == [1])
    }
}
