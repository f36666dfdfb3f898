import NodeMetrics
import Testing

@Suite("Throttled readings")
struct ThrottledReadingTests {
    @Test("An expensive figure is read once for all callers, and again after its pause")
    func pacedReading() async {
        let count = Counters([.messages])
        let reading = ThrottledReading(pause: .seconds(3600)) {
            count.add(.received)
            return count.count(.received)
        }
        let values = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<20 { group.addTask { await reading.value() } }
            return await group.reduce(into: [Int?]()) { $0.append($1) }
        }
        #expect(values == Array(repeating: 1, count: 20))
        let quick = ThrottledReading(pause: .zero, restFactor: 0) { () throws -> Int in
            count.add(.ours)
            if count.count(.ours) == 2 { throw CancellationError() }
            return count.count(.ours)
        }
        #expect(await quick.value() == 1)
        while await quick.value() ?? 0 <= 2, !Task.isCancelled {}
        #expect(count.count(.ours) > 2)
    }

    @Test(
        "The rest after a slow reading is limited, and there is none after one that failed", .timeLimit(.minutes(1)),
        arguments: [true, false])
    func limitedRest(fails: Bool) async {
        let count = Counters([.messages])
        // Without a limit each reading would be the last.
        let limit: Duration = fails ? .seconds(3600) : .zero
        let reading = ThrottledReading(pause: .zero, restFactor: 1_000_000_000, restLimit: limit) { () throws -> Int in
            count.add(.received)
            if fails { throw CancellationError() }
            return count.count(.received)
        }
        while count.count(.received) < 3, !Task.isCancelled { _ = await reading.value() }
        #expect(count.count(.received) >= 3)
    }
}
