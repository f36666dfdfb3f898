import Core
import TestSupport
import Testing

@testable import Delivery

/// Random schedules of arrivals, faults and delays against a model of each delivery's state. Each seed is an argument of the test.
struct DeliveryQueueSimulationTests {
    private enum Place: Equatable {
        case waiting
        case inFlight(UInt64)
        case resolved
    }

    private struct Known {
        let device: Int64
        let expires: Timestamp
        var place = Place.waiting
    }

    /// The behaviour of gorush for a while.
    private enum Weather: CaseIterable {
        case fair
        case refusing
        case failing
        case asking
        case flaky
        /// Accepts posts, but drops some of their notifications because its queue is full.
        case full
        /// Receives posts, and answers none of them.
        case hanging
        /// Answers each post after a delay, some after the timeout.
        case slow
    }

    /// A post that gorush has received.
    private struct Outstanding {
        let batch: DeliveryQueue.Batch
        let began: Timestamp
        /// When gorush answers it, unless it hangs or its behaviour changes.
        let due: Timestamp
    }

    private struct World {
        let seed: UInt64
        var generator: SeededGenerator
        var queue: DeliveryQueue
        let limit: Int
        /// The number of posts that may be in flight.
        let places: Int
        /// The timeout of a request, after which the driver ends it as failed.
        let timeout = Duration.seconds(7)
        var now = Timestamp(rawValue: 1_000_000_000)
        var known: [Int64: Known] = [:]
        /// Unresolved notifications of each device, in order.
        var lines: [Int64: [Int64]] = [:]
        var poisoned: Set<Int64> = []
        var deadly: Set<Int64> = []
        var removed: Set<Int64> = []
        /// The devices for which gorush has accepted a notification before.
        var recipients = Set<Int64>(21...40)
        var posted: [UInt64: Outstanding] = [:]
        /// Until when each delivery's last post may still be unanswered: gorush may be working on it.
        var unknownUntil: [Int64: Timestamp] = [:]
        /// The number of posts that may begin while posts are overdue.
        var allowance: Int?
        var slowSpells = 0
        /// The posts that went out while the breaker was open, and how many of them failed since it was closed.
        var earlyProbes: Set<UInt64> = []
        var earlyFailureCount = 0
        /// The highest id that was posted for each device.
        var lastPosted: [Int64: Int64] = [:]
        var nextID: Int64 = 1
        var weather = Weather.fair
        var steps = 0
        var acceptedCount = 0
        var openings = 0

        init(seed: UInt64) {
            self.seed = seed
            generator = SeededGenerator(seed: seed)
            var configuration = DeliveryQueue.Configuration()
            limit = Int.random(in: 1...4, using: &generator) == 1 ? 40 : 100_000
            configuration.limit = limit
            configuration.maximumBatchCount = Bool.random(using: &generator) ? 100 : 7
            // As for gorush, and for a push service.
            configuration.doubtsStrangers = Bool.random(using: &generator)
            configuration.favorsRested = configuration.doubtsStrangers
            places = [1, 2, 8].randomElement(using: &generator) ?? 8
            configuration.maximumBatchesInFlight = places
            queue = DeliveryQueue(configuration: configuration, generator: SeededGenerator(seed: seed &+ 1000))
        }

        func check(_ condition: Bool, _ what: @autoclosure () -> String) throws {
            guard condition else { throw TestFailure("seed \(seed), step \(steps): \(what())") }
        }

        mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }

        // MARK: Events

        mutating func add() throws {
            // One device with many notifications, and many with few.
            let device = chance(3) ? 0 : Int64.random(in: 1...40, using: &generator)
            let expires = now + .milliseconds(Int.random(in: 1...60_000, using: &generator))
            let id = nextID
            nextID += 1
            known[id] = Known(device: device, expires: expires)
            lines[device, default: []].append(id)
            if chance(50) { poisoned.insert(id) }
            if chance(400) { deadly.insert(id) }
            queue.add(
                id, device: device, token: device, isKnown: recipients.contains(device), expires: expires, isAwaited: !chance(5), now: now)
            // Some strangers become known while notifications for them wait, or are in flight.
            if chance(200), recipients.insert(device).inserted { queue.becameKnown(DeliveryQueue.recipient(device)) }
            // Adding it again changes nothing.
            if chance(20), queue.contains(id) { queue.add(id, device: 99, expires: now, now: now) }
            try checkBound()
        }

        mutating func removeOne() {
            let id = Int64.random(in: 1..<max(2, nextID), using: &generator)
            queue.remove(id)
            resolve(id)
            removed.insert(id)
        }

        mutating func resolve(_ id: Int64) {
            guard let device = known[id]?.device else { return }
            known[id] = nil
            unknownUntil[id] = nil
            lines[device]?.removeAll { $0 == id }
        }

        /// At least one post is overdue, and was when something last happened.
        var hasOverdue: Bool { posted.values.contains { now.since($0.began) >= .seconds(2) } }

        mutating func act() throws {
            let wasAdmitted = queue.breaker.admission(at: now)
            let isHalfOpen = if case .halfOpen = queue.breaker.state { true } else { false }
            if allowance == nil, hasOverdue {
                allowance = 1
                slowSpells += 1
            }
            var batchCount = 0
            for action in queue.actions(now: now) {
                switch action {
                case .expire(let ids):
                    for id in ids {
                        try check(known[id]?.place == .waiting, "\(id) expires, but is \(String(describing: known[id]?.place))")
                        try check(known[id].map { $0.expires <= now } ?? false, "\(id) expires early")
                        resolve(id)
                    }
                case .evict(let ids):
                    // It may have been removed between its eviction and the report of it.
                    for id in ids where !removed.contains(id) {
                        try check(known[id]?.place == .waiting, "\(id) is evicted, but is \(String(describing: known[id]?.place))")
                        try check(limit < 1000, "\(id) is evicted from a queue that is not full")
                        resolve(id)
                    }
                case .post(let batch):
                    queue.sent(batch.id, count: batch.deliveries.count, now: now)
                    batchCount += 1
                    try begin(batch, wasAdmitted)
                }
            }
            if let left = allowance {
                try check(batchCount <= left, "\(batchCount) posts while one is overdue, of \(left) that gorush proved to take")
                allowance = left - batchCount
            }
            if wasAdmitted != .posts { try check(batchCount <= (isHalfOpen ? 0 : 1), "\(batchCount) posts when \(wasAdmitted)") }
            try check(queue.actions(now: now).isEmpty, "it has more to do at the same moment")
            try check(posted.count <= places, "\(posted.count) posts at once")
            try check(queue.batchesInFlight == posted.count, "it counts \(queue.batchesInFlight) posts, not \(posted.count)")
            try checkBound()
        }

        mutating func begin(_ batch: DeliveryQueue.Batch, _ admission: CircuitBreaker.Admission) throws {
            if admission == .nothing {
                try check(batch.deliveries.count == 1, "an early probe of \(batch.deliveries.count)")
                earlyProbes.insert(batch.id)
            }
            try check((1...(admission == .probe ? 10 : 100)).contains(batch.deliveries.count), "a batch of \(batch.deliveries.count)")
            let answerTime: Duration = weather == .slow ? .milliseconds(Int.random(in: 0...9_000, using: &generator)) : .zero
            let post = Outstanding(batch: batch, began: now, due: now + answerTime)
            try check(posted.updateValue(post, forKey: batch.id) == nil, "batch number \(batch.id) twice")
            var devices: Set<Int64> = []
            for id in batch.deliveries {
                guard let delivery = known[id] else { throw TestFailure("seed \(seed): \(id) is posted, but resolved") }
                try check(delivery.place == .waiting, "\(id) is posted, but is \(delivery.place)")
                try check(delivery.expires > now, "\(id) is posted too late")
                let unknown = unknownUntil[id] ?? now
                try check(unknown <= now, "\(id) is posted again while gorush may be working on it")
                unknownUntil[id] = now + timeout
                try check(devices.insert(delivery.device).inserted, "two of device \(delivery.device) in a batch")
                try check(lines[delivery.device]?.first == id, "\(id) overtakes \(lines[delivery.device]?.first ?? 0)")
                try check(lastPosted[delivery.device, default: 0] <= id, "\(id) is posted after \(lastPosted[delivery.device, default: 0])")
                lastPosted[delivery.device] = id
                known[id]?.place = .inFlight(batch.id)
            }
        }

        mutating func finishOne() throws {
            guard let id = posted.keys.sorted().randomElement(using: &generator), let post = posted[id] else { return }
            let batch = post.batch
            var notAccepted: Set<Int64> = []
            guard let outcome = end(of: post, &notAccepted) else { return }
            posted[id] = nil
            // Answered, the connection ended, or the timeout passed.
            for delivery in batch.deliveries { unknownUntil[delivery] = nil }
            settleAllowance(outcome, wasLate: now.since(post.began) >= .seconds(2))
            // Sometimes the outcome is stored first.
            if chance(3) { queue.answered(id, outcome: outcome, now: now) }
            let wasOpen = queue.breaker.isOpen(at: now)
            for resolution in queue.finished(id, outcome: outcome, except: notAccepted, now: now) {
                switch resolution {
                case .accepted(let delivery):
                    try check(outcome == .accepted && !notAccepted.contains(delivery), "\(delivery) counts as accepted")
                    try check(known[delivery]?.place == .inFlight(id), "\(delivery) is accepted by another batch")
                    acceptedCount += 1
                    resolve(delivery)
                case .dropped(let delivery):
                    try check(outcome == .refused && batch.deliveries == [delivery], "\(delivery) is dropped, but was not alone")
                    try check(known[delivery]?.place == .inFlight(id), "\(delivery) is dropped by another batch")
                    resolve(delivery)
                case .retrying(let delivery):
                    try check(known[delivery]?.place == .inFlight(id), "\(delivery) is tried again after another batch")
                    known[delivery]?.place = .waiting
                }
            }
            try check(!known.values.contains { $0.place == .inFlight(id) }, "batch \(id) ended, and says nothing of some in it")
            if queue.breaker.isOpen(at: now), !wasOpen { openings += 1 }
            try noteEarlyProbe(batch, outcome)
            if outcome == .accepted || outcome == .refused { try check(queue.breaker.isClosed, "open, but gorush works") }
        }

        /// A gorush that fails for all gets two early probes. The queue forgets a recipient with its last notification.
        mutating func noteEarlyProbe(_ batch: DeliveryQueue.Batch, _ outcome: PostOutcome) throws {
            let isEarly = earlyProbes.remove(batch.id) != nil && removed.isDisjoint(with: batch.deliveries)
            switch outcome {
            case .failed, .unclear: if isEarly { earlyFailureCount += 1 }
            case .accepted, .refused, .notPosted, .unpostable: break
            }
            if queue.breaker.isClosed { earlyFailureCount = 0 }
            try check(earlyFailureCount <= 2, "\(earlyFailureCount) early probes failed")
        }

        /// How a post ends now; nil if it does not.
        mutating func end(of post: Outstanding, _ notAccepted: inout Set<Int64>) -> PostOutcome? {
            if now.since(post.began) >= timeout { return .failed(retryAfter: nil) }
            switch weather {
            case .hanging: return chance(300) ? .failed(retryAfter: nil) : nil
            case .slow where post.due > now: return nil
            default: return outcome(of: post.batch, &notAccepted)
            }
        }

        mutating func settleAllowance(_ outcome: PostOutcome, wasLate: Bool) {
            guard let left = allowance else { return }
            switch outcome {
            case .accepted, .refused: allowance = hasOverdue ? min(places, left + (wasLate ? 1 : 2)) : nil
            case .failed, .unclear, .notPosted, .unpostable: allowance = max(1, left)
            }
        }

        mutating func outcome(of batch: DeliveryQueue.Batch, _ notAccepted: inout Set<Int64>) -> PostOutcome {
            if chance(60) { return .notPosted }
            if batch.deliveries.contains(where: deadly.contains) { return .unclear(retryAfter: nil) }
            switch weather {
            case .failing: return Bool.random(using: &generator) ? .failed(retryAfter: nil) : .unclear(retryAfter: nil)
            case .asking: return .failed(retryAfter: .seconds(Int.random(in: 0...20, using: &generator)))
            case .flaky where chance(3): return .failed(retryAfter: nil)
            case .refusing where chance(2): return .refused
            case .full: notAccepted = Set(batch.deliveries.filter { _ in Bool.random(using: &generator) })
            default: break
            }
            return batch.deliveries.contains(where: poisoned.contains) ? .refused : .accepted
        }

        // MARK: Invariants

        func checkBound() throws {
            let inFlight = posted.values.reduce(0) { $0 + $1.batch.deliveries.count }
            // Halves, which are to be posted next, are at most what was in flight.
            try check(queue.count <= limit + inFlight + 800, "\(queue.count) in a queue of \(limit)")
        }

        func checkAll() throws {
            let inFlight = known.values.count { $0.place != .waiting }
            try check(queue.count == known.count, "it has \(queue.count), not \(known.count), of them \(inFlight) in flight")
            for id in known.keys { try check(queue.contains(id), "\(id) is lost") }
        }

        /// The queue is not called in between, so an action without a wake-up would never happen.
        mutating func sleep(atMost limit: Duration) throws {
            let wake = queue.nextWake(now: now)
            if let wake { try check(wake >= now, "it wants to wake in the past") }
            if wake == nil, posted.isEmpty { try check(known.isEmpty, "\(known.count) wait, and it sleeps for ever") }
            now = max(now, min(wake ?? now + limit, now + limit))
        }

        mutating func step(isAdding: Bool) throws {
            steps += 1
            if chance(100) { weather = Weather.allCases.randomElement(using: &generator) ?? .fair }
            // Events that this seed did not produce.
            if steps > 700, slowSpells == 0 {
                weather = .hanging
            } else if steps > 1100, openings == 0 {
                weather = .failing
            } else if steps > 1300, acceptedCount <= 100 {
                weather = .fair
            }
            if isAdding {
                for _ in 0..<Int.random(in: 0...4, using: &generator) { try add() }
                if chance(10) { removeOne() }
            } else if steps.isMultiple(of: 50) {
                weather = .fair
            }
            try act()
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                try finishOne()
                if chance(2) { try act() }
            }
            try act()
            try sleep(atMost: .milliseconds(Int.random(in: 0...50, using: &generator)))
            if steps.isMultiple(of: 50) { try checkAll() }
        }
    }

    @Test(arguments: UInt64(1)...(LongTests.areEnabled ? 200 : 8))
    func everyDeliveryIsResolvedOnceAndInOrder(seed: UInt64) throws {
        var world = World(seed: seed)
        for _ in 0..<1500 { try world.step(isAdding: true) }
        var rest = 0
        while !world.known.isEmpty || !world.posted.isEmpty {
            try world.step(isAdding: false)
            rest += 1
            try world.check(rest < 100_000, "\(world.known.count) are never resolved")
        }
        #expect(world.queue.count == 0)
        #expect(world.queue.nextWake(now: world.now) == nil)
        #expect(world.acceptedCount > 100, "seed \(seed) tells little")
        #expect(world.openings > 0, "seed \(seed) never opens the breaker")
        #expect(world.slowSpells > 0, "seed \(seed) never finds gorush slow")
    }

    /// Many notifications that fail once: the time of a call does not depend on the number of waiting ones.
    @Test(.timeLimit(.minutes(5)), arguments: [1, 10, 100_000] as [Int64])
    func aLargeBacklog(deviceCount: Int64) {
        let count: Int64 = LongTests.areEnabled ? 100_000 : 20_000
        var queue = DeliveryQueue(generator: SeededGenerator(seed: 3))
        var now = Timestamp(rawValue: 0)
        for id in 0..<count { queue.add(id, device: id % deviceCount, expires: now + .seconds(86_400), now: now) }
        var failed: Set<Int64> = []
        var acceptedCount = 0
        while queue.count > 0 {
            now = max(queue.nextWake(now: now) ?? now, now)
            for case .post(let batch) in queue.actions(now: now) {
                queue.sent(batch.id, count: batch.deliveries.count, now: now)
                let isNew = failed.count < 1000 && !failed.contains(batch.deliveries[0])
                if isNew { failed.formUnion(batch.deliveries) }
                acceptedCount += queue.finished(batch.id, outcome: isNew ? .failed(retryAfter: nil) : .accepted, now: now).count {
                    if case .accepted = $0 { true } else { false }
                }
            }
        }
        #expect(acceptedCount == Int(count))
    }

    /// Two minutes of outage at a hundred notifications per second: afterwards new notifications are not delayed by the backlog.
    @Test func newNotificationsAreNotDelayedByABacklogAfterAnOutage() throws {
        var queue = DeliveryQueue(generator: SeededGenerator(seed: 11))
        var now = Timestamp(rawValue: 0)
        let end = now + .seconds(120)
        var id: Int64 = 0
        var arrivals: [Int64: Timestamp] = [:]
        var slowest = Duration.zero
        var flying: [(id: UInt64, deliveries: [Int64], back: Timestamp)] = []
        var oldCount = 0
        while now < end + .seconds(30), queue.count > 0 || now <= end + .seconds(20) {
            if now < end + .seconds(20) {
                id += 1
                arrivals[id] = now
                queue.add(id, device: id % 5000, expires: now + .seconds(900), now: now)
            }
            for case .post(let batch) in queue.actions(now: now) {
                queue.sent(batch.id, count: batch.deliveries.count, now: now)
                flying.append((batch.id, batch.deliveries, now + .milliseconds(20)))
            }
            for post in flying where post.back <= now {
                let resolutions = queue.finished(post.id, outcome: now < end ? .failed(retryAfter: nil) : .accepted, now: now)
                for case .accepted(let id) in resolutions {
                    guard let arrival = arrivals[id] else { continue }
                    if arrival > end + .seconds(6) { slowest = max(slowest, now.since(arrival)) } else { oldCount += 1 }
                }
            }
            flying.removeAll { $0.back <= now }
            now = now + .milliseconds(10)
        }
        #expect(queue.count == 0)
        #expect(oldCount > 12_000)
        // From a second after the longest pause of the breaker on.
        #expect(slowest < .seconds(2))
    }
}
