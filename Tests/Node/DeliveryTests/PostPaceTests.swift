@testable import Delivery
import TestSupport
import Testing
import Core

/// A test for each transition of the state diagram.
struct PostPaceTests {
    private let start = Timestamp(rawValue: 1_000_000_000_000)
    private var pace = PostPace(configuration: DeliveryQueue.Configuration())

    private mutating func begin(_ id: UInt64, count: Int, at time: Timestamp) {
        pace.began()
        pace.sent(id, count: count, at: time)
    }

    private mutating func post(_ id: UInt64, count: Int, took: Duration, _ outcome: PostOutcome = .accepted) {
        begin(id, count: count, at: start)
        pace.ended(id, outcome, at: start + took)
    }

    private mutating func becomeSlow() {
        begin(1, count: 10, at: start)
        pace.advance(to: start + .seconds(2))
    }

    // MARK: Batches

    @Test func firstBatchesAreSmall() {
        #expect(pace.batchLimit(at: start) == 10)
    }

    @Test(arguments: [(Duration.milliseconds(5), 100), (.seconds(1), 10), (.seconds(10), 1), (.seconds(60), 1)])
    mutating func batchesFollowTheTimeThatGorushTakes(took: Duration, limit: Int) {
        for id in UInt64(1)...20 { post(id, count: 10, took: took) }
        #expect(pace.batchLimit(at: start + took) == limit)
    }

    @Test mutating func batchesGrowAgainWithinAFewPosts() {
        for id in UInt64(1)...20 { post(id, count: 10, took: .seconds(10)) }
        for id in UInt64(21)...28 { post(id, count: 1, took: .milliseconds(4)) }
        #expect(pace.batchLimit(at: start) == 100)
    }

    @Test mutating func aTimeoutMakesBatchesSmallAndAFailureAtOnceDoesNot() {
        post(1, count: 10, took: .milliseconds(10))
        post(2, count: 10, took: .milliseconds(1), .failed(retryAfter: nil))
        post(3, count: 10, took: .milliseconds(1), .refused)
        #expect(pace.batchLimit(at: start) == 100)
        post(4, count: 10, took: .seconds(60), .failed(retryAfter: nil))
        #expect(pace.batchLimit(at: start) == 1)
    }

    @Test mutating func loadingDoesNotCountAsGorushsTime() {
        pace.began()
        pace.advance(to: start + .seconds(60))
        #expect(pace.state == .normal && pace.nextChange == nil && pace.outstanding(at: start + .seconds(60)) == (0, .zero))
        pace.sent(1, count: 2, at: start + .seconds(5))
        pace.advance(to: start + .seconds(6))
        #expect(pace.state == .normal)
        pace.ended(1, .accepted, at: start + .seconds(5) + .milliseconds(100))
        #expect(pace.batchLimit(at: start) == 20)
    }

    // MARK: Slow

    @Test mutating func anOverduePostPermitsOneSmallPost() {
        begin(1, count: 10, at: start)
        #expect(pace.nextChange == start + .seconds(2))
        pace.advance(to: start + .seconds(2) - .nanoseconds(1))
        #expect(pace.state == .normal)
        pace.advance(to: start + .seconds(2))
        #expect(pace.admitsPost)
        #expect(pace.nextChange == nil)
        // 200 ms for each until now.
        #expect(pace.batchLimit(at: start + .seconds(2)) == 5)
        begin(2, count: 5, at: start + .seconds(2))
        #expect(!pace.admitsPost)
        pace.advance(to: start + .seconds(50))
        #expect(!pace.admitsPost)
    }

    @Test mutating func eachAnswerPermitsFurtherPosts() {
        becomeSlow()
        var posts = 0
        var (id, flying) = (UInt64(2), [UInt64]())
        // One post hangs, others are fast: after a few rounds the maximum number of posts is in flight.
        for _ in 0..<5 {
            while pace.admitsPost, flying.count < 7 {
                begin(id, count: 1, at: start + .seconds(2))
                flying.append(id)
                id += 1
            }
            posts = flying.count
            for flown in flying { pace.ended(flown, .accepted, at: start + .seconds(2)) }
            flying = []
        }
        #expect(posts == 7)
    }

    @Test mutating func aLateAnswerPermitsOnePost() {
        becomeSlow()
        for id in UInt64(2)...3 { begin(id, count: 1, at: start + .seconds(2)) }
        #expect(!pace.admitsPost)
        pace.ended(2, .accepted, at: start + .seconds(5))
        begin(4, count: 1, at: start + .seconds(5))
        #expect(!pace.admitsPost)
    }

    @Test mutating func theLastOverdueAnswerEndsIt() {
        becomeSlow()
        begin(2, count: 1, at: start + .seconds(2))
        pace.ended(1, .accepted, at: start + .seconds(3))
        #expect(pace.state == .normal)
        #expect(pace.nextChange == start + .seconds(4))
    }

    @Test mutating func failuresDoNotCountAsAnswers() {
        becomeSlow()
        begin(2, count: 1, at: start + .seconds(2))
        for id in UInt64(1)...2 { pace.ended(id, .failed(retryAfter: nil), at: start + .seconds(60)) }
        // Both have ended: one more may try, and still one alone.
        #expect(pace.admitsPost)
        begin(3, count: 1, at: start + .seconds(60))
        #expect(!pace.admitsPost)
        pace.ended(3, .notPosted, at: start + .seconds(60))
        #expect(pace.admitsPost)
        begin(4, count: 1, at: start + .seconds(60))
        pace.ended(4, .accepted, at: start + .seconds(60))
        #expect(pace.state == .normal)
    }

    @Test mutating func theOperatorCanForceAPost() {
        becomeSlow()
        begin(2, count: 1, at: start + .seconds(2))
        pace.hasten()
        #expect(pace.admitsPost)
    }

    @Test func slownessIsReported() {
        var queue = DeliveryQueue(generator: SeededGenerator(seed: 1))
        queue.add(1, device: 1, expires: start + .seconds(600), now: start)
        _ = queue.actions(now: start)
        // The store hangs: nothing was sent to gorush.
        #expect(queue.slowness(at: start + .seconds(60)) == nil && queue.unanswered(at: start + .seconds(60)) == (0, .zero))
        queue.sent(1, count: 1, now: start)
        #expect(queue.slowness(at: start + .seconds(1)) == nil)
        #expect(queue.unanswered(at: start + .seconds(1)) == (1, .seconds(1)))
        let wake = queue.nextWake(now: start)
        #expect(wake == start + .seconds(2))
        _ = queue.actions(now: start + .seconds(2))
        #expect(queue.slowness(at: start + .seconds(3)) == DeliveryQueue.Slowness(postCount: 1, age: .seconds(3), isStalled: false))
        #expect(queue.slowness(at: start + .seconds(10)) == DeliveryQueue.Slowness(postCount: 1, age: .seconds(10), isStalled: true))
        // A disk that takes a minute does not make gorush slow.
        queue.answered(1, outcome: .accepted, now: start + .seconds(10))
        _ = queue.actions(now: start + .seconds(70))
        #expect(queue.slowness(at: start + .seconds(70)) == nil)
        #expect(queue.finished(1, outcome: .accepted, now: start + .seconds(70)) == [.accepted(1)])
    }
}
