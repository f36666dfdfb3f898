import Gorush
import Testing
import Waku

/// An arrow of the queue's picture, a test.
struct DeliveryQueueTests {
    private let start = Timestamp(rawValue: 1_000_000_000_000)
    private var late: Timestamp { start + .seconds(3600) }

    private func queue(_ ids: some Sequence<Int64>, configure: (inout DeliveryQueue.Configuration) -> Void = { _ in }) -> DeliveryQueue {
        var configuration = DeliveryQueue.Configuration()
        configure(&configuration)
        var queue = DeliveryQueue(configuration: configuration, generator: SplitMix(seed: 7))
        for id in ids { queue.add(id, expires: late, now: start) }
        return queue
    }

    private func batches(_ actions: [DeliveryQueue.Action]) -> [DeliveryQueue.Batch] {
        actions.compactMap { if case .post(let batch) = $0 { batch } else { nil } }
    }

    private func onlyBatch(_ queue: inout DeliveryQueue, _ now: Timestamp) throws -> DeliveryQueue.Batch {
        let found = batches(queue.actions(now: now))
        try #require(found.count == 1)
        return found[0]
    }

    @Test func freshOnesArePostedInTheirOrder() throws {
        var queue = queue(1...3)
        #expect(queue.nextWake(now: start) == start)
        #expect(try onlyBatch(&queue, start).deliveries == [1, 2, 3])
        #expect(queue.actions(now: start).isEmpty)
        #expect(queue.nextWake(now: start) == nil)
        #expect(queue.batchesInFlight == 1)
    }

    @Test func acceptedOnesAreGone() throws {
        var queue = queue(1...2)
        let batch = try onlyBatch(&queue, start)
        #expect(queue.finished(batch.id, outcome: .accepted, now: start) == [.accepted(1), .accepted(2)])
        #expect(queue.count == 0)
        #expect(queue.finished(batch.id, outcome: .accepted, now: start).isEmpty)
    }

    @Test func batchesAndPostsAreLimited() {
        var queue = queue(1...2000)
        let found = batches(queue.actions(now: start))
        #expect(found.map(\.deliveries.count) == Array(repeating: 100, count: 8))
        #expect(found.flatMap(\.deliveries) == Array(1...800))
        #expect(queue.freshCount == 1200)
        #expect(queue.nextWake(now: start) == late)
        _ = queue.finished(found[3].id, outcome: .accepted, now: start)
        #expect(batches(queue.actions(now: start)).map(\.deliveries) == [Array(801...900)])
    }

    @Test func theCulpritOfARefusalIsFound() throws {
        var queue = queue(1...100)
        var now = start
        var accepted: Set<Int64> = []
        var dropped: [Int64] = []
        var posts = 0
        while queue.count > 0 {
            let found = batches(queue.actions(now: now))
            try #require(!found.isEmpty)
            for batch in found {
                posts += 1
                let outcome = batch.deliveries.contains(42) ? DeliveryQueue.Outcome.refused : .accepted
                for resolution in queue.finished(batch.id, outcome: outcome, now: now) {
                    switch resolution {
                    case .accepted(let id): accepted.insert(id)
                    case .dropped(let id): dropped.append(id)
                    case .retrying: break
                    }
                }
            }
            now = now + .nanoseconds(1)
        }
        #expect(dropped == [42])
        #expect(accepted.count == 99)
        // One refusal on each of at most eight levels, and as many good halves.
        #expect(posts <= 15)
    }

    @Test func halvesAreTriedAtOnce() throws {
        var queue = queue(1...5)
        let batch = try onlyBatch(&queue, start)
        #expect(queue.finished(batch.id, outcome: .refused, now: start) == (1...5).map { .retrying($0) })
        queue.add(6, expires: late, now: start)
        #expect(batches(queue.actions(now: start)).map(\.deliveries) == [[1, 2, 3], [4, 5], [6]])
    }

    @Test func aRefusedRestOfABatchIsTriedAlone() throws {
        var queue = queue(1...2)
        let batch = try onlyBatch(&queue, start)
        queue.remove(1)
        #expect(queue.finished(batch.id, outcome: .refused, now: start) == [.retrying(2)])
        let alone = try onlyBatch(&queue, start)
        #expect(queue.finished(alone.id, outcome: .refused, now: start) == [.dropped(2)])
    }

    @Test func failedOnesComeBackLaterAndLater() throws {
        var queue = queue([1])
        var now = start
        let pauses: [Duration] = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000].map { .milliseconds($0) }
        for pause in pauses {
            let batch = try onlyBatch(&queue, now)
            #expect(queue.finished(batch.id, outcome: .failed(retryAfter: nil), now: now) == [.retrying(1)])
            #expect(queue.retryingCount == 1)
            let due = try #require(queue.nextWake(now: now))
            #expect(due.since(now) >= pause / 2 && due.since(now) <= pause)
            #expect(queue.actions(now: due - .nanoseconds(1)).isEmpty)
            now = due
        }
    }

    @Test(arguments: [(0, 0...1), (10, 10...10), (100_000, 300...300)])
    func retryAfterIsHonouredWithinReason(seconds: Int, expected: ClosedRange<Int>) throws {
        var queue = queue([1])
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .failed(retryAfter: .seconds(seconds)), now: start)
        let pause = try #require(queue.nextWake(now: start)).since(start)
        #expect(pause >= .seconds(expected.lowerBound) && pause <= .seconds(expected.upperBound))
    }

    @Test func retriesAreSpread() throws {
        var queue = queue(1...100)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .failed(retryAfter: nil), now: start)
        #expect(queue.actions(now: start + .milliseconds(124)).isEmpty)
        let early = try onlyBatch(&queue, start + .milliseconds(187)).deliveries.count
        #expect(early > 0 && queue.retryingCount > 0)
    }

    @Test func whileGorushFailsThereAreSmallProbes() throws {
        var queue = queue(1...1000)
        let found = batches(queue.actions(now: start))
        for batch in found.dropLast() { _ = queue.finished(batch.id, outcome: .failed(retryAfter: nil), now: start) }
        #expect(queue.isGorushFailing)
        #expect(queue.actions(now: start).isEmpty)
        _ = queue.finished(found[7].id, outcome: .failed(retryAfter: nil), now: start)
        let probe = try onlyBatch(&queue, start + .seconds(1))
        #expect(probe.deliveries.count == 10)
        _ = queue.finished(probe.id, outcome: .accepted, now: start + .seconds(1))
        #expect(!queue.isGorushFailing)
        #expect(batches(queue.actions(now: start + .seconds(1))).map(\.deliveries.count) == Array(repeating: 100, count: 8))
    }

    @Test func afterAFailureAllWaitAndThenOneTries() throws {
        var queue = queue(1...1)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .failed(retryAfter: .seconds(20)), now: start)
        queue.add(2, expires: late, now: start)
        #expect(queue.actions(now: start + .seconds(19)).isEmpty)
        #expect(queue.nextWake(now: start) == start + .seconds(20))
        #expect(try onlyBatch(&queue, start + .seconds(20)).deliveries == [1, 2])
    }

    @Test func pausesGrowWithEachFailureInARowUpToTheirLimitAndEndWithASuccess() throws {
        var queue = queue([])
        var now = start
        var pauses: [Duration] = []
        for id in Int64(1)...10 {
            queue.add(id, expires: late, now: now)
            let probe = try onlyBatch(&queue, now)
            _ = queue.finished(probe.id, outcome: .failed(retryAfter: nil), now: now)
            queue.add(id + 100, expires: late, now: now)
            let wake = try #require(queue.nextWake(now: now))
            pauses.append(wake.since(now))
            now = wake
        }
        #expect(pauses[0] <= .milliseconds(250))
        #expect(pauses[3] > pauses[0] * 2)
        #expect(pauses.allSatisfy { $0 <= .seconds(5) })
        let probe = try onlyBatch(&queue, now)
        _ = queue.finished(probe.id, outcome: .accepted, now: now)
        queue.add(1000, expires: late, now: now)
        #expect(queue.nextWake(now: now) == now)
    }

    @Test func whatWasNotPostedSaysNothingOfGorush() throws {
        var queue = queue(1...2)
        let batch = try onlyBatch(&queue, start)
        for id in batch.deliveries { queue.remove(id) }
        #expect(queue.finished(batch.id, outcome: .notPosted, now: start).isEmpty)
        #expect(!queue.isGorushFailing)
        #expect(queue.count == 0)
    }

    @Test func neitherFreshOnesNorRetriesStarve() throws {
        var queue = queue(1...500)
        for batch in batches(queue.actions(now: start)) { _ = queue.finished(batch.id, outcome: .failed(retryAfter: nil), now: start) }
        for id in Int64(1001)...1500 { queue.add(id, expires: late, now: start) }
        let probe = try onlyBatch(&queue, start + .seconds(1))
        #expect(probe.deliveries.count { $0 > 1000 } == 5)
        _ = queue.finished(probe.id, outcome: .accepted, now: start + .seconds(1))
        let found = batches(queue.actions(now: start + .seconds(1)))
        #expect(found.allSatisfy { $0.deliveries.count { $0 > 1000 } == 50 })
    }

    @Test func freshOnesExpire() {
        var queue = queue([], configure: { $0.maximumBatchesInFlight = 0 })
        queue.add(1, expires: start + .seconds(1), now: start)
        queue.add(2, expires: start + .seconds(2), now: start)
        #expect(queue.nextWake(now: start) == start + .seconds(1))
        #expect(queue.actions(now: start + .seconds(1)) == [.expire([1])])
        #expect(queue.contains(2) && !queue.contains(1))
    }

    @Test func retriesExpire() throws {
        var queue = queue([])
        queue.add(1, expires: start + .seconds(1), now: start)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .failed(retryAfter: .seconds(60)), now: start)
        #expect(queue.nextWake(now: start) == start + .seconds(1))
        #expect(queue.actions(now: start + .seconds(1)) == [.expire([1])])
        #expect(queue.count == 0)
        #expect(queue.nextWake(now: start) == nil)
    }

    @Test func halvesExpire() throws {
        var queue = queue([])
        queue.add(1, expires: start + .seconds(1), now: start)
        queue.add(2, expires: start + .seconds(9), now: start)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .refused, now: start)
        let actions = queue.actions(now: start + .seconds(1))
        #expect(actions.first == .expire([1]))
        #expect(batches(actions).map(\.deliveries) == [[2]])
    }

    @Test func removedOnesAreNotPosted() throws {
        var queue = queue(1...6)
        queue.remove(1)
        let batch = try onlyBatch(&queue, start)
        #expect(batch.deliveries == [2, 3, 4, 5, 6])
        queue.remove(2)
        #expect(queue.finished(batch.id, outcome: .refused, now: start).count == 4)
        queue.remove(3)
        let halves = batches(queue.actions(now: start))
        #expect(halves.map(\.deliveries) == [[4], [5, 6]])
        for half in halves { _ = queue.finished(half.id, outcome: .failed(retryAfter: nil), now: start) }
        queue.remove(4)
        queue.remove(99)
        #expect(try onlyBatch(&queue, start + .seconds(9)).deliveries.sorted() == [5, 6])
    }

    @Test func oneAddedAnewIsNotTouchedByItsOldBatch() throws {
        var queue = queue([1])
        let batch = try onlyBatch(&queue, start)
        queue.remove(1)
        queue.add(1, expires: late, now: start)
        queue.add(1, expires: start, now: start)
        #expect(queue.finished(batch.id, outcome: .accepted, now: start).isEmpty)
        #expect(try onlyBatch(&queue, start).deliveries == [1])
    }

    @Test func drainingPostsNoMore() throws {
        var queue = queue([1])
        let batch = try onlyBatch(&queue, start)
        queue.add(2, expires: late, now: start)
        queue.drain()
        #expect(queue.actions(now: start).isEmpty)
        #expect(!queue.isDrained)
        #expect(queue.finished(batch.id, outcome: .accepted, now: start) == [.accepted(1)])
        #expect(queue.isDrained)
        #expect(queue.contains(2))
    }
}
