import Core
import Testing

@testable import PushNode

@Suite struct WaitingQueriesTests {
    private let interval = Duration.milliseconds(60)

    private func at(_ milliseconds: Int) -> Instant { Instant(sinceEpoch: .seconds(1000) + .milliseconds(milliseconds)) }

    /// The queries of the next turn, in reads.
    private func turn(_ waiting: inout WaitingQueries<Int>, at now: Instant) -> (reads: [[Int]], next: Duration?) {
        let end = waiting.begin(at: now)
        var reads: [[Int]] = []
        while true {
            let taken = waiting.take(upTo: end, at: now)
            reads.append(taken.queries)
            if !taken.isMore { return (reads, taken.next) }
        }
    }

    @Test func aTurnAnswersWhatCameBeforeItBegan() {
        var waiting = WaitingQueries<Int>()
        #expect(waiting.add([1, 2], interval: .zero, at: at(0)) == .zero)
        #expect(waiting.add([3], interval: .zero, at: at(1)) == nil)
        let end = waiting.begin(at: at(1))
        // This read may depend on messages that were submitted after the turn began, so it waits for the next turn.
        #expect(waiting.add([4], interval: .zero, at: at(2)) == nil)
        let taken = waiting.take(upTo: end, at: at(2))
        #expect(taken.queries == [1, 2, 3] && !taken.isMore && taken.next == .zero)
        let second = turn(&waiting, at: at(3))
        #expect(second.reads == [[4]] && second.next == nil)
        #expect(waiting.add([5], interval: .zero, at: at(4)) == .zero)
    }

    @Test func aReadAnswersABoundedNumber() {
        var waiting = WaitingQueries<Int>()
        let limit = WaitingQueries<Int>.limit
        _ = waiting.add(Array(0...2 * limit), interval: .zero, at: at(0))
        let all = turn(&waiting, at: at(0))
        #expect(all.reads == [Array(0..<limit), Array(limit..<2 * limit), [2 * limit]] && all.next == nil)
        // A read that comes too late for its turn answers nothing, and begins no other one.
        _ = waiting.add([7], interval: .zero, at: at(1))
        let late = waiting.take(upTo: 2 * limit + 1, at: at(1))
        #expect(late.queries.isEmpty && !late.isMore && late.next == nil)
    }

    @Test func withSeveralNodesTurnsBeginAnIntervalApartUnderLoad() {
        var waiting = WaitingQueries<Int>()
        // After a quiet time, none waits.
        for number in 0..<Pacing.burst {
            #expect(waiting.add([number], interval: interval, at: at(number)) == .zero)
            _ = turn(&waiting, at: at(number))
        }
        let time = at(Pacing.burst)
        let delay = waiting.add([100], interval: interval, at: time)
        #expect(delay == at(0) + interval - time)
        #expect(waiting.add([101], interval: interval, at: time) == nil)
        let last = turn(&waiting, at: at(60))
        #expect(last.reads == [[100, 101]])
    }

    /// However many reads a turn takes, it is paid for once.
    @Test func manyQueriesWaitForNoLongerThanFew() throws {
        var waiting = WaitingQueries<Int>()
        var (now, longest) = (at(0), Duration.zero)
        var delay = waiting.add([0], interval: interval, at: now)
        for _ in 0..<200 {
            let wait = try #require(delay, "nobody answers what waits")
            longest = max(longest, wait)
            // 10 a millisecond.
            let coming = Int((wait + .milliseconds(1)) / .milliseconds(1)) * 10
            _ = waiting.add(Array(0..<coming), interval: interval, at: now)
            now = now + wait + .milliseconds(1)
            let (reads, next) = turn(&waiting, at: now)
            #expect(reads.joined().count >= coming)
            delay = next ?? waiting.add([0], interval: interval, at: now)
        }
        #expect(longest <= interval)
    }
}
