import Primitives
import Testing

@testable import PushNode

@Suite struct WaitingQueriesTests {
    private let interval = Duration.milliseconds(60)

    private func at(_ milliseconds: Int) -> Instant { Instant(sinceEpoch: .seconds(1000) + .milliseconds(milliseconds)) }

    @Test func whatComesBeforeTheReadBeginsIsAnsweredByIt() {
        var waiting = WaitingQueries<Int>()
        #expect(waiting.add([1, 2], interval: .zero, at: at(0)) == .zero)
        #expect(waiting.add([3], interval: .zero, at: at(1)) == nil)
        #expect(waiting.take(at: at(2)).queries == [1, 2, 3])
        #expect(waiting.add([4], interval: .zero, at: at(2)) == .zero)
        #expect(waiting.take(at: at(3)).queries == [4])
        #expect(waiting.take(at: at(4)).queries.isEmpty)
    }

    @Test func aReadAnswersABoundedNumber() {
        var waiting = WaitingQueries<Int>()
        let limit = WaitingQueries<Int>.limit
        _ = waiting.add(Array(0..<limit + 1), interval: .zero, at: at(0))
        let first = waiting.take(at: at(0))
        #expect(first.queries == Array(0..<limit) && first.isMore)
        let second = waiting.take(at: at(0))
        #expect(second.queries == [limit] && !second.isMore)
    }

    @Test func withSeveralNodesReadsBeginAnIntervalApartUnderLoad() {
        var waiting = WaitingQueries<Int>()
        // After a quiet time, none waits.
        for number in 0..<Pacing.burst {
            #expect(waiting.add([number], interval: interval, at: at(number)) == .zero)
            _ = waiting.take(at: at(number))
        }
        let time = at(Pacing.burst)
        let delay = waiting.add([100], interval: interval, at: time)
        #expect(delay == at(0) + interval - time)
        #expect(waiting.add([101], interval: interval, at: time) == nil)
        #expect(waiting.take(at: at(60)).queries == [100, 101])
    }
}
