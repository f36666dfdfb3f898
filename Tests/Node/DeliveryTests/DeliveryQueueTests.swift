import TestSupport
import Testing
import Core
import Waku

@testable import Delivery

/// A test for each transition of the queue's state diagram.
struct DeliveryQueueTests {
    private let start = Timestamp(rawValue: 1_000_000_000_000)
    private var late: Timestamp { start + .seconds(3600) }

    private func queue(_ ids: some Sequence<Int64>, configure: (inout DeliveryQueue.Configuration) -> Void = { _ in }) -> DeliveryQueue {
        var configuration = DeliveryQueue.Configuration()
        // Speed is not measured here: batches have their maximum size.
        configuration.assumedTime = .zero
        configure(&configuration)
        var queue = DeliveryQueue(configuration: configuration, generator: SeededGenerator(seed: 7))
        for id in ids { queue.add(id, device: id, expires: late, now: start) }
        return queue
    }

    @Test("The rest of a group goes out with its beginning, however small posts are")
    func groupsGoOutTogether() throws {
        var queue = queue([]) { $0.assumedTime = .milliseconds(100) }
        for id in Int64(1)...30 {
            queue.add(id, device: DeviceID(ProtocolNumber(rawValue: 1), row: id), expires: late, group: 1, now: start)
        }
        queue.add(31, device: 31, expires: late, now: start)
        #expect(queue.batchLimit(at: start) < 30)
        #expect(try onlyBatch(&queue, start).deliveries == Array(1...30))
    }

    private func batches(_ actions: [DeliveryQueue.Action]) -> [DeliveryQueue.Batch] {
        actions.compactMap { if case .post(let batch) = $0 { batch } else { nil } }
    }

    private func onlyBatch(_ queue: inout DeliveryQueue, _ now: Timestamp) throws -> DeliveryQueue.Batch {
        let found = batches(queue.actions(now: now))
        try #require(found.count == 1)
        return found[0]
    }

    @Test func newNotificationsArePostedInOrder() throws {
        var queue = queue(1...3)
        #expect(queue.nextWake(now: start) == start)
        #expect(try onlyBatch(&queue, start).deliveries == [1, 2, 3])
        #expect(queue.actions(now: start).isEmpty)
        #expect(queue.nextWake(now: start) == nil || queue.nextWake(now: start) == start + .seconds(3600))
        queue.sent(1, count: 3, now: start)
        // When the post becomes overdue.
        #expect(queue.nextWake(now: start) == start + .seconds(2))
        #expect(queue.batchesInFlight == 1)
    }

    @Test func acceptedNotificationsAreRemoved() throws {
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
        for batch in found { queue.sent(batch.id, count: 100, now: start) }
        #expect(queue.nextWake(now: start) == start + .seconds(2))
        _ = queue.finished(found[3].id, outcome: .accepted, now: start)
        #expect(batches(queue.actions(now: start)).map(\.deliveries) == [Array(801...900)])
    }

    /// While a post is in flight, others gather only until they fill one.
    @Test(arguments: [(199, [100]), (200, [100, 100])] as [(Int64, [Int])]) func fullBatchGoesOutAtOnce(count: Int64, posted: [Int]) {
        var queue = queue(1...count)
        #expect(batches(queue.actions(now: start)).map(\.deliveries.count) == posted)
    }

    @Test func theRefusedNotificationIsFoundByHalving() throws {
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
                let outcome = batch.deliveries.contains(42) ? PostOutcome.refused : .accepted
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

    @Test func halvesArePostedWithoutDelay() throws {
        var queue = queue(1...5)
        let batch = try onlyBatch(&queue, start)
        #expect(queue.finished(batch.id, outcome: .refused, now: start) == (1...5).map { .retrying($0) })
        queue.add(6, device: 6, expires: late, now: start)
        #expect(batches(queue.actions(now: start)).map(\.deliveries) == [[1, 2, 3], [4, 5]])
        #expect(try onlyBatch(&queue, start + .milliseconds(2)).deliveries == [6])
    }

    @Test func theRestOfARefusedBatchIsPostedAlone() throws {
        var queue = queue(1...2)
        let batch = try onlyBatch(&queue, start)
        queue.remove(1)
        #expect(queue.finished(batch.id, outcome: .refused, now: start) == [.retrying(2)])
        let alone = try onlyBatch(&queue, start)
        #expect(queue.finished(alone.id, outcome: .refused, now: start) == [.dropped(2)])
    }

    @Test func failedNotificationsAreRetriedWithGrowingPauses() throws {
        var queue = queue([1])
        var now = start
        let pauses: [Duration] = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000].map { .milliseconds($0) }
        for pause in pauses {
            let batch = try onlyBatch(&queue, now)
            #expect(queue.finished(batch.id, outcome: .failed(retryAfter: nil), now: now) == [.retrying(1)])
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
        #expect(early > 0 && early <= 50)
    }

    /// ``CircuitBreakerTests`` tests the details.
    @Test func whileTheBreakerIsOpenProbesAreSmall() throws {
        var queue = queue(1...3000)
        var now = start
        for _ in 0..<3 {
            let found = batches(queue.actions(now: now))
            #expect(found.count == 8)
            for batch in found { _ = queue.finished(batch.id, outcome: .failed(retryAfter: nil), now: now) }
            now = now + .seconds(1)
        }
        #expect(queue.breaker.isOpen(at: now - .seconds(1)))
        #expect(queue.actions(now: now - .seconds(1)).isEmpty)
        let resume = try #require(queue.nextWake(now: now - .seconds(1)))
        #expect(resume == queue.breaker.opensAgainAt)
        let probe = try onlyBatch(&queue, resume)
        #expect(probe.deliveries.count == 10)
        queue.sent(probe.id, count: 10, now: resume)
        #expect(queue.nextWake(now: resume) == resume + .seconds(2))
        _ = queue.finished(probe.id, outcome: .accepted, now: resume)
        #expect(batches(queue.actions(now: resume)).count == 8)
    }

    @Test func afterRetryAfterASingleProbeIsPosted() throws {
        var queue = queue(1...1)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .failed(retryAfter: .seconds(20)), now: start)
        queue.add(2, device: 2, expires: late, now: start)
        #expect(queue.actions(now: start + .seconds(19)).isEmpty)
        #expect(queue.nextWake(now: start) == start + .seconds(20))
        #expect(try onlyBatch(&queue, start + .seconds(20)).deliveries.sorted() == [1, 2])
    }

    @Test func aLargeHalfIsNotAProbe() throws {
        var queue = queue(1...100)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .refused, now: start)
        let halves = batches(queue.actions(now: start))
        _ = queue.finished(halves[0].id, outcome: .failed(retryAfter: .seconds(5)), now: start)
        _ = queue.finished(halves[1].id, outcome: .refused, now: start)
        // The refusal shows that it works.
        #expect(queue.breaker.isClosed)
        let quarters = batches(queue.actions(now: start))
        #expect(quarters.map(\.deliveries.count) == [25, 25])
        _ = queue.finished(quarters[0].id, outcome: .refused, now: start)
        _ = queue.finished(quarters[1].id, outcome: .failed(retryAfter: .seconds(5)), now: start)
        let probe = try onlyBatch(&queue, start + .seconds(5))
        #expect(probe.deliveries.count == 10)
        _ = queue.finished(probe.id, outcome: .accepted, now: start + .seconds(5))
        #expect(queue.count == 90)
    }

    // MARK: Gathering

    @Test func withoutPostsInFlightNotificationsArePostedAtOnce() throws {
        var queue = queue([1])
        let first = try onlyBatch(&queue, start)
        queue.add(2, device: 2, expires: late, now: start + .microseconds(100))
        queue.add(3, device: 3, expires: late, now: start + .microseconds(200))
        #expect(queue.actions(now: start + .microseconds(200)).isEmpty)
        #expect(queue.nextWake(now: start + .microseconds(200)) == start + .microseconds(2100))
        _ = queue.finished(first.id, outcome: .accepted, now: start + .microseconds(900))
        #expect(try onlyBatch(&queue, start + .microseconds(900)).deliveries == [2, 3])
    }

    @Test func behindASlowPostNotificationsAreBatchedFor2Milliseconds() throws {
        var queue = queue([1])
        _ = try onlyBatch(&queue, start)
        queue.add(2, device: 2, expires: late, now: start)
        queue.add(3, device: 3, expires: late, now: start + .milliseconds(1))
        #expect(queue.actions(now: start + .microseconds(1999)).isEmpty)
        #expect(try onlyBatch(&queue, start + .milliseconds(2)).deliveries == [2, 3])
        for id in Int64(4)...103 { queue.add(id, device: id, expires: late, now: start + .milliseconds(2)) }
        #expect(try onlyBatch(&queue, start + .milliseconds(2)).deliveries.count == 100)
    }

    // MARK: Order of a device

    @Test func aDevicesNotificationsArePostedOneAtATime() throws {
        var queue = queue([])
        for id in Int64(1)...3 { queue.add(id, device: 7, expires: late, now: start) }
        queue.add(4, device: 8, expires: late, now: start)
        let first = try onlyBatch(&queue, start)
        #expect(first.deliveries == [1, 4])
        #expect(queue.actions(now: start + .seconds(1)).isEmpty)
        _ = queue.finished(first.id, outcome: .accepted, now: start + .seconds(1))
        #expect(try onlyBatch(&queue, start + .seconds(1)).deliveries == [2])
    }

    @Test func aRetryDelaysOnlyItsOwnDevice() throws {
        var queue = queue([])
        queue.add(1, device: 7, expires: start + .seconds(2), now: start)
        let first = try onlyBatch(&queue, start)
        _ = queue.finished(first.id, outcome: .failed(retryAfter: nil), now: start)
        queue.add(2, device: 7, expires: late, now: start)
        queue.add(3, device: 8, expires: late, now: start)
        #expect(try onlyBatch(&queue, start).deliveries == [3])
        // It expires, and the rest is posted, after the time that deliveries gather while a post is in flight.
        #expect(queue.actions(now: start + .seconds(2)) == [.expire([1])])
        #expect(try onlyBatch(&queue, start + .milliseconds(2_002)).deliveries == [2])
    }

    @Test func aRefusedNotificationIsDroppedAndTheRestPosted() throws {
        var queue = queue([])
        for id in Int64(1)...2 { queue.add(id, device: 7, expires: late, now: start) }
        let first = try onlyBatch(&queue, start)
        #expect(queue.finished(first.id, outcome: .refused, now: start) == [.dropped(1)])
        #expect(try onlyBatch(&queue, start).deliveries == [2])
    }

    @Test func aNotificationRemovedDuringItsPostStillDelaysItsDevice() throws {
        var queue = queue([])
        for id in Int64(1)...2 { queue.add(id, device: 7, expires: late, now: start) }
        let first = try onlyBatch(&queue, start)
        queue.remove(1)
        #expect(queue.actions(now: start + .seconds(1)).isEmpty)
        #expect(queue.finished(first.id, outcome: .accepted, now: start + .seconds(1)).isEmpty)
        #expect(try onlyBatch(&queue, start + .seconds(1)).deliveries == [2])
    }

    @Test func lateArrivalsAreOrderedById() throws {
        var queue = queue([])
        for id in [Int64(5), 3, 4] { queue.add(id, device: 7, expires: late, now: start) }
        var now = start
        for id in Int64(3)...5 {
            let batch = try onlyBatch(&queue, now)
            #expect(batch.deliveries == [id])
            if id == 3 { queue.add(1, device: 7, expires: late, now: now) }
            _ = queue.finished(batch.id, outcome: .accepted, now: now)
            now = now + .seconds(1)
            // A notification that is being posted can't be overtaken.
            if id == 3 { _ = queue.finished(try onlyBatch(&queue, now).id, outcome: .accepted, now: now) }
        }
    }

    // MARK: Bounds

    @Test func aFullQueueDropsTheOldestOfTheDeviceWithMost() throws {
        var queue = queue([], configure: { $0.limit = 3 })
        for id in Int64(1)...3 { queue.add(id, device: 7, expires: late + .seconds(Int(id)), now: start) }
        let batch = try onlyBatch(&queue, start)
        queue.add(4, device: 8, expires: late + .seconds(4), now: start)
        queue.add(5, device: 9, expires: late - .seconds(1), now: start)
        #expect(queue.nextWake(now: start) == start)
        // Those being posted are kept.
        #expect(queue.actions(now: start) == [.evict([2, 3])])
        #expect(queue.count == 3)
        #expect(queue.finished(batch.id, outcome: .accepted, now: start) == [.accepted(1)])
        #expect(try onlyBatch(&queue, start).deliveries == [4, 5])
    }

    @Test func aFullQueueOfDevicesWithOneEachDropsTheFirstToExpire() {
        var queue = queue([], configure: { $0.limit = 2 })
        for id in Int64(1)...3 { queue.add(id, device: id, expires: late + .seconds(id == 3 ? -1 : Int(id)), now: start) }
        // A new notification that expires before all others is dropped itself.
        #expect(queue.actions(now: start).first == .evict([3]))
    }

    /// Notifications of an earlier run or another node are on disk already: they displace none, and new ones make the queue no longer.
    @Test func inheritedNotificationsStayBeyondTheLimit() {
        var queue = queue([], configure: { $0.limit = 3 })
        for id in Int64(1)...5 { queue.add(id, device: 7, expires: late, isInherited: true, now: start) }
        #expect(queue.count == 5)
        for id in Int64(6)...7 { queue.add(id, device: 100 + id, expires: late, now: start) }
        #expect(queue.count == 5)
        let actions = queue.actions(now: start)
        #expect(actions.first == .evict([1, 2]))
        let posts = batches(actions)
        #expect(posts.flatMap(\.deliveries).sorted() == [3, 6, 7])
        for batch in posts { _ = queue.finished(batch.id, outcome: .accepted, now: start) }
        // Below the limit there is room again.
        queue.add(8, device: 8, expires: late, now: start)
        #expect(queue.count == 3)
        queue.add(9, device: 9, expires: late, now: start)
        #expect(queue.count == 3 && !queue.contains(4))
    }

    /// 1,000 devices of an attacker fill the queue while gorush is away: the waiting notifications of others stay.
    @Test func aFloodForManyDevicesDisplacesOnlyItsOwn() {
        var queue = queue([], configure: { $0.limit = 2_000 })
        for id in Int64(1)...50 { queue.add(id, device: id, expires: late, now: start) }
        for id in Int64(51)...10_050 { queue.add(id, device: 1_000 + id % 1_000, expires: late + .seconds(1), now: start) }
        for id in Int64(10_051)...10_100 { queue.add(id, device: id, expires: late + .seconds(2), now: start) }
        #expect(queue.count == 2_000)
        #expect((Int64(1)...50).allSatisfy { queue.contains($0) })
        #expect((Int64(10_051)...10_100).allSatisfy { queue.contains($0) })
        let left = (Int64(51)...10_050).filter { queue.contains($0) }
        // The newest of each device are left.
        #expect(left.count == 1_900 && left.allSatisfy { $0 > 8_050 })
    }

    /// 10,000 devices of an attacker with one or two notifications each, for which gorush never accepted one: long lines of the known stay whole, and
    /// strangers keep a quarter of the places.
    @Test func manyShortLinesOfStrangersDoNotDisplaceLongLinesOfTheKnown() {
        var queue = queue([], configure: { $0.limit = 2_000 })
        for id in Int64(1)...1_000 { queue.add(id, device: id % 20, token: id % 20, isKnown: true, expires: late, now: start) }
        for id in Int64(1_001)...16_000 { queue.add(id, device: id % 10_000 + 100, token: id, expires: late + .seconds(60), now: start) }
        #expect(queue.count == 2_000)
        #expect((Int64(1)...1_000).allSatisfy { queue.contains($0) })
        // More of the known take places of strangers down to a quarter, then of the known.
        for id in Int64(16_001)...18_000 { queue.add(id, device: id % 20, token: id % 20, isKnown: true, expires: late, now: start) }
        #expect(queue.count == 2_000)
        #expect((Int64(1_001)...16_000).count { queue.contains($0) } == 500)
    }

    /// One device token under 1,000 keys is one recipient, though each device has a short line.
    @Test func devicesWithOneTokenAreOneRecipient() {
        var queue = queue([], configure: { $0.limit = 1_000 })
        for id in Int64(1)...50 { queue.add(id, device: 1, token: 1, isKnown: true, expires: late, now: start) }
        for id in Int64(51)...3_050 { queue.add(id, device: 100 + id % 1_000, token: 2, isKnown: true, expires: late, now: start) }
        #expect((Int64(1)...50).allSatisfy { queue.contains($0) })
        #expect((Int64(51)...3_050).count { queue.contains($0) } == 950)
    }

    /// A recipient becomes known while its notifications wait, as at the start, when standing is read after the outbox.
    @Test func aRecipientThatBecomesKnownKeepsItsPlaces() throws {
        var queue = queue([], configure: { $0.limit = 40 })
        for id in Int64(1)...10 { queue.add(id, device: id % 2, token: 1, expires: late, now: start) }
        for id in Int64(11)...40 { queue.add(id, device: id, token: id, expires: late, now: start) }
        queue.becameKnown(DeliveryQueue.recipient(1))
        queue.becameKnown(DeliveryQueue.recipient(1))
        for id in Int64(41)...100 { queue.add(id, device: id, token: id, expires: late + .seconds(1), now: start) }
        #expect((Int64(1)...10).allSatisfy { queue.contains($0) })
        #expect(queue.count == 40)
        // Its devices leave one after the other.
        for id in Int64(1)...10 { queue.remove(id) }
        for id in Int64(101)...110 { queue.add(id, device: id, token: 1, expires: late, now: start) }
        for id in Int64(111)...140 { queue.add(id, device: id, token: id, isKnown: true, expires: late, now: start) }
        #expect(queue.count == 40)
        #expect((Int64(111)...140).allSatisfy { queue.contains($0) })
    }

    /// 1,000 devices of an attacker with 20 notifications each: a notification for another device is posted with the first of each, not behind all.
    @Test(arguments: [true, false])
    func aDeviceHasOneTurnAtATime(isAwaited: Bool) throws {
        var queue = queue([])
        for id in Int64(1)...20_000 { queue.add(id, device: id % 1_000, expires: late, isAwaited: isAwaited, now: start) }
        queue.add(20_001, device: 5_000, expires: late, isAwaited: isAwaited, now: start)
        var (now, posted) = (start, 0)
        while queue.contains(20_001) {
            for batch in batches(queue.actions(now: now)) {
                posted += batch.deliveries.count
                queue.sent(batch.id, count: batch.deliveries.count, now: now)
                _ = queue.finished(batch.id, outcome: .accepted, now: now)
            }
            now = now + .milliseconds(10)
            // Each step takes 800.
            try #require(posted <= 1_600)
        }
        // So is every one of the 1,000, over and over.
        var last: [Int64: Timestamp] = [:]
        while queue.count > 0 {
            for batch in batches(queue.actions(now: now)) {
                queue.sent(batch.id, count: batch.deliveries.count, now: now)
                for id in batch.deliveries {
                    if let last = last[id % 1_000] { #expect(now.since(last) <= .seconds(2)) }
                    last[id % 1_000] = now
                }
                _ = queue.finished(batch.id, outcome: .accepted, now: now)
            }
            now = now + .milliseconds(100)
        }
        #expect(last.count == 1_000)
    }

    /// 60 requests a second for one device: its posts go on, so each honest message is followed by one within 2 s.
    @Test func aFloodedDeviceIsPostedToAllTheTime() {
        var queue = queue([])
        var (posts, busyUntil, batch): ([Timestamp], Timestamp, DeliveryQueue.Batch?) = ([], start, nil)
        var id: Int64 = 0
        for step in 0..<1_200 {
            let now = start + .milliseconds(50 * step)
            for _ in 0..<3 {
                id += 1
                queue.add(id, device: 7, expires: now + .seconds(600), now: now)
            }
            if let answered = batch, busyUntil <= now {
                _ = queue.finished(answered.id, outcome: .accepted, now: now)
                batch = nil
            }
            if batch == nil, let next = batches(queue.actions(now: now)).first {
                batch = next
                posts.append(now)
                queue.sent(next.id, count: next.deliveries.count, now: now)
                // gorush answers after 400 ms.
                busyUntil = now + .milliseconds(400)
            }
        }
        #expect(posts.count > 100)
        #expect(zip(posts, posts.dropFirst()).allSatisfy { $1.since($0) <= .seconds(2) })
    }

    // MARK: Notifications that make gorush fail

    @Test func notificationsDroppedByAFullQueueAreRetried() throws {
        var queue = queue(1...3)
        let batch = try onlyBatch(&queue, start)
        let resolutions = queue.finished(batch.id, outcome: .accepted, except: [2], now: start)
        #expect(resolutions == [.accepted(1), .retrying(2), .accepted(3)])
        #expect(queue.breaker.isClosed)
        #expect(try onlyBatch(&queue, start + .milliseconds(250)).deliveries == [2])
    }

    /// One notification makes each of its posts fail. The others are delivered, and it is isolated in the end.
    @Test func aNotificationThatMakesGorushFailIsIsolated() throws {
        var queue = queue(1...300, configure: { $0.maximumBatchesInFlight = 2 })
        var now = start
        var accepted: Set<Int64> = []
        while accepted.count < 299 {
            for batch in batches(queue.actions(now: now)) {
                let isPoisoned = batch.deliveries.contains(150)
                for case .accepted(let id) in queue.finished(
                    batch.id, outcome: isPoisoned ? .failed(retryAfter: nil) : .accepted, now: now)
                { accepted.insert(id) }
            }
            now = max(try #require(queue.nextWake(now: now)), now + .nanoseconds(1))
            try #require(now.since(start) < .seconds(120))
        }
        #expect(!accepted.contains(150))
        #expect(queue.count == 1)
    }

    @Test("After a server error each notification is posted alone, and only those that fail again wait")
    func serverErrorsAreIsolated() throws {
        var queue = queue(1...3)
        let batch = try onlyBatch(&queue, start)
        #expect(queue.finished(batch.id, outcome: .unclear(retryAfter: nil), now: start) == [.retrying(1), .retrying(2), .retrying(3)])
        var alone: [Int64] = []
        for post in batches(queue.actions(now: start + .seconds(1))) {
            #expect(post.deliveries.count == 1)
            alone += post.deliveries
            _ = queue.finished(post.id, outcome: post.deliveries == [2] ? .unclear(retryAfter: nil) : .accepted, now: start + .seconds(1))
        }
        #expect(Set(alone) == [1, 2, 3] && queue.count == 1 && queue.breaker.isClosed)
    }

    @Test("A notification that may have made gorush fail joins no post of others")
    func suspectsJoinNoPostOfOthers() throws {
        var queue = queue(1...2) { $0.maximumBatchesInFlight = 1 }
        let batch = try onlyBatch(&queue, start)
        for id in Int64(3)...4 { queue.add(id, device: id, expires: late, isAwaited: false, now: start) }
        _ = queue.finished(batch.id, outcome: .unclear(retryAfter: nil), now: start)
        #expect(try onlyBatch(&queue, start + .seconds(1)).deliveries.sorted() == [3, 4])
    }

    /// A stranger's notification makes gorush fail. Others come every five minutes, or several a second.
    @Test(
        "A notification that makes gorush fail delays no others",
        arguments: [Duration.milliseconds(100), .seconds(5), .seconds(300)], [true, false])
    func aPoisonousNotificationDelaysNoOthers(pause: Duration, isKnown: Bool) throws {
        var queue = queue([])
        var now = start
        queue.add(1, device: 1, expires: late, now: now)
        var next = start + pause
        var last: Int64 = 1
        var arrivals: [Int64: Timestamp] = [:]
        var longest = Duration.zero
        while now.since(start) < .seconds(1800) {
            for batch in batches(queue.actions(now: now)) {
                queue.sent(batch.id, count: batch.deliveries.count, now: now)
                let isPoisoned = batch.deliveries.contains(1)
                let outcome = isPoisoned ? PostOutcome.unclear(retryAfter: nil) : .accepted
                for case .accepted(let id) in queue.finished(batch.id, outcome: outcome, now: now) {
                    let arrival = arrivals.removeValue(forKey: id)
                    longest = max(longest, now.since(try #require(arrival)))
                }
            }
            now = max(min(next, queue.nextWake(now: now) ?? next), now + .nanoseconds(1))
            if now >= next {
                last += 1
                arrivals[last] = now
                queue.add(last, device: last, isKnown: isKnown, expires: late, now: now)
                next = next + pause
            }
        }
        #expect(queue.contains(1) && arrivals.count <= 1)
        // Only on a node without other notifications the breaker opens: after five failures in a row. Then the first other closes it: at once if gorush
        // has accepted notifications for it.
        #expect(longest <= (isKnown ? .milliseconds(300) : .seconds(5)))
    }

    @Test("While the breaker is open because of one recipient, a new notification of another goes out at once, alone")
    func earlyProbe() throws {
        var queue = queue([])
        queue.add(1, device: 1, isKnown: true, expires: late, now: start)
        var now = start
        while queue.breaker.isClosed {
            let batch = try onlyBatch(&queue, now)
            _ = queue.finished(batch.id, outcome: .unclear(retryAfter: nil), now: now)
            now = try #require(queue.nextWake(now: now))
        }
        let until = try #require(queue.breaker.opensAgainAt)
        now = until - .nanoseconds(1)
        // Another of the same recipient.
        queue.add(2, device: 1, isKnown: true, expires: late, now: now)
        #expect(batches(queue.actions(now: now)).isEmpty)
        for id in Int64(3)...4 { queue.add(id, device: id, isKnown: true, expires: late, now: now) }
        #expect(queue.nextWake(now: now) == now)
        let probe = try onlyBatch(&queue, now)
        #expect(probe.deliveries == [3])
        #expect(queue.actions(now: now).isEmpty)
        #expect(queue.finished(probe.id, outcome: .accepted, now: now) == [.accepted(3)])
        #expect(queue.breaker.isClosed)
        #expect(try onlyBatch(&queue, now).deliveries.contains(4))
    }

    @Test("While new notifications wait, at most every second post is of one that may have made gorush fail")
    func suspectsTakeTurnsWithNewNotifications() throws {
        var queue = queue(1...40) { $0.maximumBatchesInFlight = 1 }
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .unclear(retryAfter: nil), now: start)
        let now = start + .seconds(1)
        for id in Int64(101)...104 { queue.add(id, device: id, expires: late, now: now) }
        var posts: [Bool] = []
        for step in 0..<4 {
            let post = try onlyBatch(&queue, now)
            posts.append(post.deliveries.allSatisfy { $0 <= 40 })
            _ = queue.finished(post.id, outcome: .accepted, now: now)
            let id = Int64(201 + step)
            queue.add(id, device: id, expires: late, now: now)
        }
        #expect(posts == [true, false, true, false])
    }

    /// The answers of a push service for subscriptions that a stranger has there: 429 with an hour, a refused key, and a failing server.
    @Test("At a push service, errors for a stranger's devices delay no others", arguments: [Duration.seconds(3600), .seconds(60), nil])
    func strangersAtAPushServiceDelayNoOthers(retryAfter: Duration?) throws {
        var queue = DeliveryQueue(configuration: OriginQueues.Configuration.standardQueue)
        var now = start
        for id in Int64(1)...5 { queue.add(id, device: id, token: id, expires: late, now: now) }
        var (next, last) = (start + .seconds(30), Int64(5))
        var (posts, longest) = ([Int64: Int](), Duration.zero)
        var arrivals: [Int64: Timestamp] = [:]
        while now.since(start) < .seconds(900) {
            for batch in batches(queue.actions(now: now)) {
                queue.sent(batch.id, count: 1, now: now)
                let id = batch.deliveries[0]
                posts[id, default: 0] += 1
                if let arrival = arrivals[id] { longest = max(longest, now.since(arrival)) }
                _ = queue.finished(batch.id, outcome: id <= 5 ? .unclear(retryAfter: retryAfter) : .accepted, now: now)
            }
            now = max(min(next, queue.nextWake(now: now) ?? next), now + .nanoseconds(1))
            if now >= next {
                last += 1
                arrivals[last] = now
                queue.add(last, device: 6, token: 6, expires: late, now: now)
                next = next + .seconds(30)
            }
        }
        #expect(arrivals.count >= 28 && longest <= .milliseconds(100) && queue.breaker.isClosed)
        for id in Int64(1)...5 { #expect(posts[id, default: 0] <= (retryAfter.map { 1 + Int(.seconds(900) / $0) } ?? 60), "\(posts)") }
    }

    @Test("At a push service, errors for three devices that had been accepted open the breaker, for seconds")
    func knownDevicesOfAPushServiceOpenTheBreaker() throws {
        var queue = DeliveryQueue(configuration: OriginQueues.Configuration.standardQueue)
        func post(_ ids: ClosedRange<Int64>, _ outcome: DeliveryQueue.Outcome) {
            for id in ids { queue.add(id, device: id % 10, token: id % 10, expires: late, now: start) }
            for batch in batches(queue.actions(now: start)) { _ = queue.finished(batch.id, outcome: outcome, now: start) }
        }
        post(1...3, .accepted)
        for id in Int64(11)...13 { post(id...id, .unclear(retryAfter: .seconds(3600))) }
        #expect(!queue.breaker.isClosed)
        let reopens = try #require(queue.breaker.opensAgainAt)
        #expect(reopens.since(start) <= .seconds(1))
    }

    @Test("A push service that fails for subscriptions that worked before this process started is given up after some posts")
    func failingPushService() throws {
        var queue = DeliveryQueue(configuration: OriginQueues.Configuration.standardQueue)
        for id in Int64(1)...1000 { queue.add(id, device: id, isKnown: true, expires: late, now: start) }
        var posts = 0
        for time in stride(from: 0, to: 10, by: 1) {
            let now = start + .seconds(time)
            for batch in batches(queue.actions(now: now)) {
                posts += 1
                _ = queue.finished(batch.id, outcome: .unclear(retryAfter: nil), now: now)
            }
        }
        #expect(!queue.breaker.isClosed && posts < 40, "\(posts)")
    }

    @Test("Of one push service, notifications of strangers are evicted first, however many places others have")
    func strangersOfAPushServiceAreEvictedFirst() {
        var configuration = OriginQueues.Configuration.standardQueue
        configuration.limit = 100
        var queue = DeliveryQueue(configuration: configuration)
        queue.drain()
        for id in Int64(1)...30 { queue.add(id, device: id, isKnown: id > 24, expires: late, now: start) }
        for _ in 0..<8 { queue.evictOne() }
        guard case .evict(let ids)? = queue.actions(now: start).first else {
            Issue.record("none was evicted")
            return
        }
        #expect(ids.count == 8 && ids.allSatisfy { $0 <= 24 }, "\(ids)")
    }

    @Test func anEmptyPostDoesNotAffectTheBreaker() throws {
        var queue = queue(1...2)
        let batch = try onlyBatch(&queue, start)
        for id in batch.deliveries { queue.remove(id) }
        #expect(queue.finished(batch.id, outcome: .notPosted, now: start).isEmpty)
        #expect(queue.breaker.isClosed)
        #expect(queue.count == 0)
    }

    @Test func aNotificationThatCannotBePostedIsDroppedAndIsNoAnswer() throws {
        var queue = queue(1...1)
        let first = try onlyBatch(&queue, start)
        _ = queue.finished(first.id, outcome: .failed(retryAfter: .seconds(20)), now: start)
        let probe = try onlyBatch(&queue, start + .seconds(20))
        #expect(queue.finished(probe.id, outcome: .unpostable, now: start + .seconds(20)) == [.dropped(1)])
        #expect(queue.count == 0 && !queue.breaker.isClosed)
        // Another may be the probe at once.
        queue.add(2, device: 2, expires: late, now: start + .seconds(20))
        #expect(try onlyBatch(&queue, start + .seconds(20)).deliveries == [2])
    }

    @Test func neitherNewNotificationsNorTheBacklogStarve() {
        // Two seconds for a post are no reason here to make the next one smaller.
        var queue = queue([], configure: { $0.batchTarget = .seconds(3600) })
        for id in Int64(1)...2000 { queue.add(id, device: id, expires: late, isAwaited: false, now: start) }
        for id in Int64(2001)...3000 { queue.add(id, device: id, expires: late, now: start) }
        let found = batches(queue.actions(now: start))
        #expect(found.count == 8)
        #expect(found.allSatisfy { $0.deliveries.count { $0 > 2000 } == 50 })
        // Notifications that no request waits for are dropped in favour of new ones.
        for id in Int64(3001)...3400 { queue.add(id, device: id, expires: late, now: start + .seconds(2)) }
        for batch in found { _ = queue.finished(batch.id, outcome: .accepted, now: start + .seconds(2)) }
        #expect(batches(queue.actions(now: start + .seconds(2))).allSatisfy { $0.deliveries.count { $0 > 3000 } == 50 })
    }

    @Test func newNotificationsExpire() {
        var queue = queue([], configure: { $0.maximumBatchesInFlight = 0 })
        queue.add(1, device: 1, expires: start + .seconds(1), now: start)
        queue.add(2, device: 2, expires: start + .seconds(2), now: start)
        #expect(queue.nextWake(now: start) == start + .seconds(1))
        #expect(queue.actions(now: start + .seconds(1)) == [.expire([1])])
        #expect(queue.contains(2) && !queue.contains(1))
    }

    @Test func retriesExpire() throws {
        var queue = queue([])
        queue.add(1, device: 1, expires: start + .seconds(1), now: start)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .failed(retryAfter: .seconds(60)), now: start)
        #expect(queue.nextWake(now: start) == start + .seconds(1))
        #expect(queue.actions(now: start + .seconds(1)) == [.expire([1])])
        #expect(queue.count == 0)
        #expect(queue.nextWake(now: start) == nil)
    }

    @Test func halvesExpire() throws {
        var queue = queue([])
        queue.add(1, device: 1, expires: start + .seconds(1), now: start)
        queue.add(2, device: 2, expires: start + .seconds(9), now: start)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .refused, now: start)
        let actions = queue.actions(now: start + .seconds(1))
        #expect(actions.first == .expire([1]))
        #expect(batches(actions).map(\.deliveries) == [[2]])
    }

    @Test func removedNotificationsAreNotPosted() throws {
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

    @Test func anAddedNotificationIsNotAffectedByItsOldBatch() throws {
        var queue = queue([1])
        let batch = try onlyBatch(&queue, start)
        queue.remove(1)
        queue.add(1, device: 1, expires: late, now: start)
        queue.add(1, device: 1, expires: start, now: start)
        #expect(queue.finished(batch.id, outcome: .accepted, now: start).isEmpty)
        #expect(try onlyBatch(&queue, start).deliveries == [1])
    }

    @Test func drainingStopsPosts() throws {
        var queue = queue([1])
        let batch = try onlyBatch(&queue, start)
        queue.add(2, device: 2, expires: late, now: start)
        queue.drain()
        #expect(queue.actions(now: start).isEmpty)
        #expect(!queue.isDrained)
        #expect(queue.finished(batch.id, outcome: .accepted, now: start) == [.accepted(1)])
        #expect(queue.isDrained)
        #expect(queue.contains(2))
    }

    @Test func hastenedRetriesAreDueAtOnce() throws {
        var queue = queue(1...3)
        let batch = try onlyBatch(&queue, start)
        _ = queue.finished(batch.id, outcome: .failed(retryAfter: .seconds(60)), now: start)
        #expect(batches(queue.actions(now: start)).isEmpty)
        #expect(queue.hasten([2, 17], now: start) == [2])
        // gorush requested a pause: a probe tests whether it still does.
        let probe = try onlyBatch(&queue, start)
        #expect(probe.deliveries == [2])
        #expect(queue.hasten(nil, now: start).count == 2)
        _ = queue.finished(probe.id, outcome: .accepted, now: start)
        #expect(Set(batches(queue.actions(now: start)).flatMap(\.deliveries)) == [1, 3])
        #expect(queue.hasten(nil, now: start).isEmpty)
    }

    // MARK: Lines

    /// The ids in the line of a device, from the first on.
    private func line(of device: Int64, in queue: DeliveryQueue) -> [Int64] {
        var ids: [Int64] = []
        var next = queue.lines[DeviceID(ProtocolNumber(rawValue: 1), row: device)]?.first
        while let id = next {
            ids.append(id)
            next = queue.deliveries[id]?.next
        }
        return ids
    }

    @Test("A line is sorted, in whatever order its deliveries come and go", arguments: UInt64(1)...20)
    func sortedLines(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = queue([])
        var ids: Set<Int64> = []
        for _ in 0..<400 {
            if let id = ids.randomElement(using: &generator), Int.random(in: 1...3, using: &generator) == 1 {
                queue.remove(id)
                ids.remove(id)
            } else {
                let id = Int64.random(in: 1...200, using: &generator)
                queue.add(id, device: 1, expires: late, now: start)
                ids.insert(id)
            }
            #expect(line(of: 1, in: queue) == ids.sorted())
            #expect(queue.fresh.first?.id == ids.min())
        }
    }

    /// Searched from the end, each of these took as many steps as later ones wait: 2,000 million in all, which take minutes.
    @Test("Thousands of deliveries join a line before thousands of others, each in a few steps", .timeLimit(.minutes(1)))
    func manyEarlierDeliveries() {
        var queue = queue([])
        let ids = Array(1...100_000 as ClosedRange<Int64>)
        for id in ids[..<10_000] + ids[55_000...] { queue.add(id, device: 1, expires: late, now: start) }
        for id in ids[10_000..<55_000] { queue.add(id, device: 1, expires: late, now: start) }
        #expect(line(of: 1, in: queue) == ids)
    }
}
