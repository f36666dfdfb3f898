import Delivery
import TestSupport
import Testing
import Core

/// The observed behaviour of a gorush with `core.sync: true`: it processes notifications one at a time, answers after the last one of a post, and
/// continues if the caller disconnects. In virtual time.
struct SlowGorushTests {
    private struct World {
        let start = Timestamp(rawValue: 1_000_000_000_000)
        let timeout = Duration.seconds(60)
        let timePerNotification: Duration
        /// Until then it is suspended: it accepts connections, but does not answer.
        let stoppedUntil: Duration
        var now = Timestamp(rawValue: 1_000_000_000_000)
        var queue = DeliveryQueue(generator: SeededGenerator(seed: 5))
        var busyUntil: Timestamp
        var posts: [(id: UInt64, sent: Timestamp, answer: Timestamp, deliveries: [Int64])] = []
        /// How often gorush notified each.
        var notified: [Int64: Int] = [:]
        var lastPosted: [Int64: Timestamp] = [:]
        var sizes: [Int] = []
        var sentWhileStopped = 0

        init(timePerNotification: Duration, stoppedUntil: Duration = .zero) {
            self.timePerNotification = timePerNotification
            self.stoppedUntil = stoppedUntil
            busyUntil = Timestamp(rawValue: 1_000_000_000_000) + stoppedUntil
        }

        mutating func add(_ ids: ClosedRange<Int64>) {
            for id in ids { queue.add(id, device: id, expires: start + .seconds(600), now: now) }
        }

        mutating func act() {
            for case .post(let batch) in queue.actions(now: now) {
                for id in batch.deliveries {
                    busyUntil = max(busyUntil, now) + timePerNotification
                    notified[id, default: 0] += 1
                    if let last = lastPosted[id] { #expect(now.since(last) >= timeout, "\(id) is posted again without an answer") }
                    lastPosted[id] = now
                }
                queue.sent(batch.id, count: batch.deliveries.count, now: now)
                posts.append((batch.id, now, busyUntil, batch.deliveries))
                sizes.append(batch.deliveries.count)
                if now < start + stoppedUntil { sentWhileStopped += 1 }
            }
        }

        /// Runs until everything is delivered.
        mutating func run(_ each: (inout World) -> Void = { _ in }) throws {
            act()
            while queue.count > 0 {
                let events = posts.map { min($0.answer, $0.sent + timeout) } + [queue.nextWake(now: now)].compactMap(\.self)
                now = max(now, try #require(events.min()))
                try #require(now.since(start) < .seconds(600))
                let ended = posts.filter { min($0.answer, $0.sent + timeout) <= now }
                posts.removeAll { post in ended.contains { $0.id == post.id } }
                for post in ended {
                    _ = queue.finished(post.id, outcome: post.answer <= now ? .accepted : .failed(retryAfter: nil), now: now)
                }
                act()
                each(&self)
            }
        }
    }

    @Test(arguments: [60, 600] as [Int64])
    func eachDeviceIsNotifiedOnce(count: Int64) throws {
        var world = World(timePerNotification: .milliseconds(100))
        world.add(1...count)
        try world.run()
        #expect(world.notified.count == Int(count))
        #expect(world.notified.values.allSatisfy { $0 == 1 })
        // It is busy all the time, and no post is larger than it can handle within the target time.
        #expect(world.now.since(world.start) <= .milliseconds(100) * Int(count) + .seconds(1))
        #expect(world.sizes.allSatisfy { $0 <= 10 })
    }

    @Test func aStoppedGorushGetsOneMorePostAndEachDeviceIsNotifiedOnce() throws {
        var world = World(timePerNotification: .milliseconds(1), stoppedUntil: .seconds(30))
        world.add(1...5)
        var added: Int64 = 5
        try world.run { world in
            // More notifications arrive all the time.
            while added < 200, world.now.since(world.start) > .milliseconds(100) * Int(added) {
                added += 1
                world.add(added...added)
                world.act()
            }
        }
        #expect(added == 200)
        #expect(world.notified.count == 200)
        #expect(world.notified.values.allSatisfy { $0 == 1 })
        #expect(world.sentWhileStopped <= 9, "\(world.sentWhileStopped) posts to a gorush that answers none")
    }

    @Test func aPostIsRepeatedOnlyAfterTheTimeout() throws {
        var world = World(timePerNotification: .milliseconds(1), stoppedUntil: .seconds(100))
        world.add(1...300)
        try world.run()
        #expect(world.notified.count == 300)
        // The posts in flight when it stopped, and one small post after the other since then.
        let twice = world.notified.values.count { $0 > 1 }
        #expect(twice > 0 && twice <= 90, "\(twice) were posted again")
        #expect(world.notified.values.allSatisfy { $0 <= 2 })
    }
}
