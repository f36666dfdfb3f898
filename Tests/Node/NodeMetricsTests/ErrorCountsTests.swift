import Core
import Testing

@testable import NodeMetrics

@Suite struct ErrorCountsTests {
    private func at(_ seconds: Int) -> Instant { Instant(sinceEpoch: .seconds(seconds)) }

    @Test func eachKindHasOneLineAMinute() {
        var counts = ErrorCounts()
        #expect(counts.add(1, of: "message not stored", "away", at: at(0)) == .log(.init(count: 1, reason: "away")))
        #expect(counts.add(1, of: "message not stored", "away", at: at(1)) == .logLater(at(60)))
        for second in 2..<60 { #expect(counts.add(10, of: "message not stored", "silent", at: at(second)) == .counted) }
        #expect(counts.add(1, of: "query not answered", "away", at: at(59)) == .log(.init(count: 1, reason: "away")))
        let late = counts.take("message not stored", at: at(60))
        #expect(late?.line == .init(count: 581, reason: "silent"))
        #expect(late?.age == .seconds(1))
        #expect(counts.take("message not stored", at: at(60)) == nil)
        #expect(counts.add(1, of: "message not stored", "away", at: at(61)) == .logLater(at(120)))
    }

    @Test func anErrorAfterAQuietMinuteIsLoggedAtOnce() {
        var counts = ErrorCounts()
        _ = counts.add(1, of: "message not stored", "away", at: at(0))
        #expect(counts.add(3, of: "message not stored", "away", at: at(60)) == .log(.init(count: 3, reason: "away")))
    }

    @Test func errorsWhoseCauseHasEndedAreDroppedAndTheNextIsLoggedAtOnce() {
        var counts = ErrorCounts()
        for second in 0..<3 { _ = counts.add(1, of: "message not stored", "away", at: at(second)) }
        counts.ended("message not stored")
        #expect(counts.take("message not stored", at: at(60)) == nil)
        #expect(counts.add(1, of: "message not stored", "full", at: at(4)) == .log(.init(count: 1, reason: "full")))
    }
}
