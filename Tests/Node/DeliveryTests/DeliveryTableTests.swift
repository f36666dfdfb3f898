import Core
import TestSupport
import Testing

@testable import Delivery

@Suite("Deliveries of several nodes")
struct DeliveryTableTests {
    private let delivery = DeliveryID(hashing: [1])
    private var table = DeliveryTable([DeliveryQueue(configuration: DeliveryQueue.Configuration())])

    private func time(_ second: Int64) -> Timestamp { Timestamp(rawValue: second * 1_000_000_000) }

    private mutating func lookedUp(at second: Int64) -> [DeliveryID]? {
        let awaited = AwaitedDeliveries([delivery]) { _ in }
        guard case .waits(let unknown) = table.await(awaited, deadline: time(second + 2), now: time(second)) else { return nil }
        return unknown
    }

    @Test("A delivery that another node posts is not looked up at once by the node that enqueued it")
    mutating func elsewhere() {
        table.markRemote([delivery])
        #expect(lookedUp(at: 1) == [])
        #expect(table.awaitedElsewhere == [delivery])
        #expect(table.resolve(delivery, as: .accepted).map(\.outcomes) == [[delivery: .accepted]])
        // A repetition of the request looks it up: the delivery may have ended long ago.
        #expect(lookedUp(at: 10) == [delivery])
    }

    private mutating func add(
        _ id: Int64, as number: Int64? = nil, for row: Int64 = 7, to endpoint: EndpointID, markedAt: Timestamp? = nil,
        isInherited: Bool = false, at second: Int64
    ) {
        let device = DeviceID(ProtocolNumber(rawValue: 1), row: row)
        let waiting = WaitingDelivery(
            id: id, delivery: DeliveryID(hashing: [UInt8(number ?? id)]), device: device, expires: time(100), markedAt: markedAt)
        let arrival = DeliveryTable.Arrival(
            waiting: waiting, endpoint: endpoint, recipient: PushRecipient(device), isInherited: isInherited)
        table.add([arrival], isAwaited: false, clock: time(second), now: time(second))
        table.checkInvariants()
    }

    @Test("A delivery that could not be marked is not new when it is found again, so it displaces none")
    mutating func returned() {
        var configuration = DeliveryQueue.Configuration()
        configuration.limit = 2
        table = DeliveryTable([DeliveryQueue(configuration: configuration)])
        for id in Int64(1)...3 { add(id, for: id, to: .gorush(0), isInherited: true, at: 1) }
        table.returnToOutbox(2)
        add(2, for: 2, to: .gorush(0), at: 2)
        #expect(queueCounts == [3, 0])
        // Once only: a row that is found again for another reason is new.
        table.forget(2)
        add(2, for: 2, to: .gorush(0), at: 3)
        #expect(queueCounts == [2, 0])
    }

    /// Of each gorush, and of the deliveries that no endpoint takes.
    private var queueCounts: [Int] { table.gorushes.map(\.queue.count) + [table.unroutableCount] }

    /// The batches that are posted now.
    private mutating func posts(at second: Int64) -> [(endpoint: EndpointID, batch: DeliveryQueue.Batch)] {
        table.step(now: time(second)).actions.compactMap { if case .post(let batch) = $0.action { ($0.endpoint, batch) } else { nil } }
    }

    /// Posts what is due, and ends each post.
    ///
    /// - Returns: the ids of the deliveries.
    private mutating func post(_ outcome: PostOutcome, by endpoint: EndpointID, at second: Int64) -> [Int64] {
        let posts = posts(at: second)
        #expect(posts.allSatisfy { $0.endpoint == endpoint })
        for (_, batch) in posts { _ = table.finished(batch, outcome, by: endpoint, now: time(second)) }
        table.checkInvariants()
        return posts.flatMap(\.batch.deliveries)
    }

    @Test("The request of an accepted delivery is told that its device was unregistered because of it", arguments: [true, false])
    mutating func deadToken(isDead: Bool) {
        add(1, to: .gorush(0), at: 1)
        guard case .waits = table.await(AwaitedDeliveries([delivery]) { _ in }, deadline: time(3), now: time(1)),
            case .post(let batch)? = table.step(now: time(1)).actions.first?.action
        else {
            Issue.record("nothing is posted")
            return
        }
        let finished = table.finished(batch, .accepted, by: .gorush(0), ended: isDead ? [delivery] : [], now: time(1))
        #expect(finished.accepted.count == 1)
        #expect(finished.completed.map(\.outcomes) == [[delivery: isDead ? .ended : .accepted]])
        #expect(table.count == 0)
    }

    /// The service's place is free again after its last delivery.
    @Test("Posts have ended when the last one of a push service is answered after draining")
    func drainedService() throws {
        var table = DeliveryTable([DeliveryQueue()], webPush: OriginQueues.Configuration())
        let origin = try #require(WebPushOrigin(endpoint: "https://push.example/x"))
        let waiting = WaitingDelivery(id: 1, delivery: delivery, device: DeviceID(ProtocolNumber(rawValue: 1), row: 7), expires: time(100))
        table.add(
            [DeliveryTable.Arrival(waiting: waiting, endpoint: .webPush(origin))], isAwaited: false, clock: time(1), now: time(1))
        let posts = table.step(now: time(1)).actions
        guard let place = posts.first?.endpoint, case .post(let batch)? = posts.first?.action else {
            Issue.record("nothing is posted")
            return
        }
        table.drain()
        #expect(!table.isDrained && table.unansweredCount == 1)
        _ = table.answered(batch, .accepted, by: place, now: time(2))
        _ = table.origins.noteAnswer(.accepted, of: origin, endpointHash: 1, from: nil, after: .seconds(1), now: time(2))
        _ = table.finished(batch, .accepted, by: place, now: time(2))
        _ = table.step(now: time(2))
        #expect(table.origins.services.isEmpty)
        #expect(table.isDrained && table.unansweredCount == 0)
    }

    @Test("A delivery without an endpoint fails its request at once, is never posted, and expires")
    mutating func unroutable() {
        add(1, to: .unroutable, at: 1)
        #expect(table.unroutableCount == 1)
        let awaited = AwaitedDeliveries([DeliveryID(hashing: [1])]) { _ in }
        guard case .refused(let completed) = table.await(awaited, deadline: time(3), now: time(1)) else {
            Issue.record("the request waits")
            return
        }
        #expect(completed.outcomes == [DeliveryID(hashing: [1]): .failed])
        let step = table.step(now: time(50))
        #expect(step.actions.isEmpty)
        #expect(step.next == time(100))
        let last = table.step(now: time(100)).actions
        #expect(last.map(\.action) == [.expire([1])])
        #expect(last.map(\.endpoint) == [.unroutable])
    }

    @Test("Of a backlog, the contents of few deliveries are kept")
    mutating func postable() {
        let address = DeviceAddress(version: 1, platform: .firebase, deviceToken: DeviceToken("token"), apnTopic: "")
        let ids = Array(1...1025 as ClosedRange<Int64>)
        let arrivals = ids.map { id in
            let waiting = WaitingDelivery(
                id: id, delivery: DeliveryID(hashing: withUnsafeBytes(of: id, Array.init)),
                device: DeviceID(ProtocolNumber(rawValue: 1), row: id), expires: time(100))
            let queued = QueuedDelivery(waiting, to: address, TextContent("text"))
            return DeliveryTable.Arrival(waiting: waiting, queued: queued, endpoint: .gorush(0))
        }
        table.add(arrivals, isAwaited: false, clock: time(1), now: time(1))
        let kept = table.takePostable(of: DeliveryQueue.Batch(id: 1, deliveries: ids))
        #expect(kept.count == 1024)
    }

    @Test("When its device registers for an endpoint, a delivery without one is posted before later ones")
    mutating func registeredAnew() {
        add(1, to: .unroutable, at: 1)
        add(2, to: .unroutable, at: 2)
        add(3, to: .gorush(0), at: 3)
        #expect(table.unroutableCount == 0)
        guard case .post(let batch)? = table.step(now: time(3)).actions.first?.action else {
            Issue.record("nothing is posted")
            return
        }
        #expect(batch.deliveries == [1])
        #expect(table.count == 3)
        table.leave { _ in true }
        #expect(table.count == 1)
    }

    // MARK: Devices that move

    private static let pause = PostOutcome.failed(retryAfter: .seconds(60))

    @Test("What waits for a device at a paused endpoint is posted before later deliveries at the one that it moves to")
    mutating func moved() {
        table = DeliveryTable([DeliveryQueue(), DeliveryQueue()])
        add(1, to: .gorush(0), at: 1)
        add(2, to: .gorush(0), at: 1)
        #expect(post(Self.pause, by: .gorush(0), at: 1) == [1])
        add(3, to: .gorush(1), at: 2)
        #expect((0..<3).map { post(.accepted, by: .gorush(1), at: 2 + $0) } == [[1], [2], [3]])
        #expect(table.count == 0)
    }

    @Test("A delivery that was in flight when its device moved follows after a failure, also if the later ones have left the queue")
    mutating func movedInFlight() throws {
        table = DeliveryTable([DeliveryQueue(), DeliveryQueue()])
        add(1, to: .gorush(0), at: 1)
        let former = try #require(posts(at: 1).first)
        add(2, to: .gorush(1), at: 1)
        // Nodes that share the outbox post the oldest delivery of a device only.
        table.forget(2)
        _ = table.finished(former.batch, Self.pause, by: .gorush(0), now: time(2))
        #expect(post(.accepted, by: .gorush(1), at: 2) == [1])
        #expect(table.count == 0)
    }

    @Test("Of many deliveries of a device that moves some are moved at a time, and all are posted in order")
    mutating func manyMoved() {
        table = DeliveryTable([DeliveryQueue(), DeliveryQueue()])
        for id in 1...250 { add(Int64(id), to: .gorush(0), at: 1) }
        #expect(post(Self.pause, by: .gorush(0), at: 1) == [1])
        add(251, to: .gorush(1), at: 2)
        #expect(queueCounts == [150, 101, 0])
        var posted: [Int64] = []
        while posted.count < 251 {
            let ids = post(.accepted, by: .gorush(1), at: 2)
            guard !ids.isEmpty else { break }
            posted += ids
        }
        #expect(posted == Array(1...251))
    }

    @Test("What waits at several former endpoints of a device is moved, the oldest first")
    mutating func movedTwice() {
        table = DeliveryTable([DeliveryQueue(), DeliveryQueue(), DeliveryQueue()])
        for id in 1...250 { add(Int64(id), to: .gorush(0), at: 1) }
        #expect(post(Self.pause, by: .gorush(0), at: 1) == [1])
        add(251, to: .gorush(1), at: 2)
        #expect(post(Self.pause, by: .gorush(1), at: 2) == [1])
        add(252, to: .gorush(2), at: 2)
        #expect(queueCounts == [50, 101, 101, 0])
        var posted: [Int64] = []
        while posted.count < 252 {
            let ids = post(.accepted, by: .gorush(2), at: 2)
            guard !ids.isEmpty else { break }
            posted += ids
        }
        #expect(posted == Array(1...252))
    }

    @Test("A push service is forgotten when its last device has moved, and a place that a device needs is kept")
    mutating func movedFromService() throws {
        table = DeliveryTable([DeliveryQueue()])
        let dead = try #require(WebPushOrigin(endpoint: "https://dead.example/x"))
        let live = try #require(WebPushOrigin(endpoint: "https://live.example/x"))
        add(1, to: .webPush(dead), at: 1)
        add(2, to: .webPush(dead), at: 1)
        let former = try #require(posts(at: 1).first)
        add(3, to: .webPush(live), at: 1)
        for id in [2, 3] as [Int64] { table.forget(id) }
        _ = table.step(now: time(1))
        #expect(Set(table.origins.services.keys) == [dead, live])
        _ = table.finished(former.batch, Self.pause, by: former.endpoint, now: time(2))
        #expect(post(.accepted, by: .webPush(live), at: 2) == [1])
        _ = table.step(now: time(3))
        #expect(table.origins.services.isEmpty && table.count == 0)
    }

    @Test("A device that can't be read stays at its endpoint")
    mutating func unreadDevice() {
        table = DeliveryTable([DeliveryQueue(), DeliveryQueue()])
        add(1, to: .gorush(1), at: 1)
        let waiting = WaitingDelivery(
            id: 2, delivery: DeliveryID(hashing: [2]), device: DeviceID(ProtocolNumber(rawValue: 1), row: 7), expires: time(100))
        table.add([DeliveryTable.Arrival(waiting: waiting, endpoint: .gorush(0))], isAwaited: false, clock: time(1), now: time(1))
        #expect(queueCounts == [0, 2, 0])
    }

    @Test("However devices move, the stores of the table agree, and no delivery is in flight twice", arguments: 0..<20 as Range<UInt64>)
    mutating func randomMoves(seed: UInt64) throws {
        table = DeliveryTable((0..<2).map { DeliveryQueue(generator: SeededGenerator(seed: seed + $0)) })
        var generator = SeededGenerator(seed: seed)
        let services = try ["a", "b"].map { EndpointID.webPush(try #require(WebPushOrigin(endpoint: "https://\($0).example/x"))) }
        let endpoints: [EndpointID] = [.gorush(0), .gorush(1), .unroutable] + services
        var inFlight: [(endpoint: EndpointID, batch: DeliveryQueue.Batch)] = []
        var id: Int64 = 0
        for second in Int64(1)..<100 {
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                id += 1
                // Some are later rows of a delivery.
                let number = id % 100
                let endpoint = try #require(endpoints.randomElement(using: &generator))
                add(id, as: number, for: number % 4, to: endpoint, at: second)
            }
            if Int.random(in: 0..<8, using: &generator) == 0, let id = table.index.entries.keys.sorted().randomElement(using: &generator) {
                table.forget(id)
            }
            inFlight += posts(at: second)
            let posted = inFlight.flatMap(\.batch.deliveries)
            #expect(Set(posted).count == posted.count)
            if let place = inFlight.indices.randomElement(using: &generator) {
                let (endpoint, batch) = inFlight.remove(at: place)
                let outcome: PostOutcome = Bool.random(using: &generator) ? .accepted : .failed(retryAfter: nil)
                _ = table.finished(batch, outcome, by: endpoint, now: time(second))
            }
            table.checkInvariants()
        }
        for (endpoint, batch) in inFlight { _ = table.finished(batch, .accepted, by: endpoint, now: time(99)) }
        for case let (_, .expire(ids)) in table.step(now: time(100)).actions {
            for id in ids { _ = table.end(id, as: .failed) }
        }
        _ = table.step(now: time(100))
        table.checkInvariants()
        #expect(id > 100 && table.count == 0 && table.origins.services.isEmpty)
    }

    // MARK: Rows of one delivery

    @Test("A later row of a delivery replaces one that waits; neither an earlier one does, nor any while a post of it is in flight")
    mutating func laterRow() throws {
        add(2, as: 1, to: .gorush(0), at: 1)
        add(1, as: 1, to: .gorush(0), at: 1)
        #expect(table.waiting(nil) == [2])
        add(3, as: 1, to: .gorush(0), at: 1)
        #expect(table.waiting(nil) == [3])
        let post = try #require(posts(at: 1).first)
        #expect(post.batch.deliveries == [3])
        add(4, as: 1, to: .gorush(0), at: 1)
        #expect(table.waiting(nil) == [3])
    }

    @Test("The age of the oldest delivery begins when it was put into the outbox, and does not follow the system clock")
    mutating func age() {
        #expect(table.oldestAge(at: time(1)) == nil)
        add(1, to: .gorush(0), at: 10)
        #expect(table.oldestAge(at: time(15)) == .seconds(5))
        // Left by an earlier run; the second has a time that is yet to come.
        add(2, to: .gorush(0), markedAt: time(8), at: 20)
        add(3, to: .gorush(0), markedAt: time(99), at: 20)
        #expect(table.oldestAge(at: time(30)) == .seconds(22))
        for id in [1, 2] as [Int64] { table.forget(id) }
        #expect(table.oldestAge(at: time(30)) == .seconds(10))
    }

    @Test("The oldest delivery for gorush does not count those for push services, which anybody may register")
    mutating func ageForGorush() throws {
        let dead = try #require(WebPushOrigin(endpoint: "https://dead.example/x"))
        add(1, for: 1, to: .webPush(dead), at: 1)
        #expect(table.count == 1 && table.oldestAge(at: time(50)) == nil)
        add(2, for: 2, to: .gorush(0), at: 40)
        #expect(table.oldestAge(at: time(50)) == .seconds(10))
        // No endpoint takes it.
        add(3, for: 3, to: .unroutable, at: 20)
        #expect(table.oldestAge(at: time(50)) == .seconds(30))
    }
}
