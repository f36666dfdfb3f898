import Core
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

    private mutating func add(_ id: Int64, to destination: Destination?, at second: Int64) {
        let waiting = WaitingDelivery(
            id: id, delivery: DeliveryID(hashing: [UInt8(id)]), device: DeviceID(ProtocolNumber(rawValue: 1), row: 7), expires: time(100))
        let arrival = DeliveryTable.Arrival(waiting: waiting, destination: destination)
        table.add([arrival], isAwaited: false, clock: time(second), now: time(second))
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
        let finished = table.finished(batch, .accepted, by: 0, ended: isDead ? [delivery] : [], now: time(1))
        #expect(finished.accepted.count == 1)
        #expect(finished.completed.map(\.outcomes) == [[delivery: isDead ? .ended : .accepted]])
        #expect(table.count == 0)
    }

    /// The service's place is free again after its last delivery.
    @Test("Posts have ended when the last one of a push service is answered after draining")
    func drainedService() throws {
        var table = DeliveryTable([DeliveryQueue()], webPush: DeliveryTable.Origins.Configuration())
        let origin = try #require(WebPushOrigin(endpoint: "https://push.example/x"))
        let waiting = WaitingDelivery(id: 1, delivery: delivery, device: DeviceID(ProtocolNumber(rawValue: 1), row: 7), expires: time(100))
        table.add(
            [DeliveryTable.Arrival(waiting: waiting, destination: .webPush(origin))], isAwaited: false, clock: time(1), now: time(1))
        let posts = table.step(now: time(1)).actions
        guard let place = posts.first?.endpoint, case .post(let batch)? = posts.first?.action else {
            Issue.record("nothing is posted")
            return
        }
        table.drain()
        #expect(!table.isDrained && table.unansweredCount == 1)
        _ = table.answered(batch, .accepted, by: place, now: time(2))
        _ = table.noteAnswer(.accepted, endpointHash: 1, from: nil, after: .seconds(1), at: place, now: time(2))
        _ = table.finished(batch, .accepted, by: place, now: time(2))
        _ = table.step(now: time(2))
        #expect(table.endpoints[place].origin == nil)
        #expect(table.isDrained && table.unansweredCount == 0)
    }

    @Test("A delivery without an endpoint fails its request at once, is never posted, and expires")
    mutating func unroutable() {
        add(1, to: nil, at: 1)
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
        #expect(last.map(\.endpoint) == [table.unroutableIndex])
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
            return DeliveryTable.Arrival(waiting: waiting, queued: queued, destination: .gorush(0))
        }
        table.add(arrivals, isAwaited: false, clock: time(1), now: time(1))
        let kept = table.takePostable(of: DeliveryQueue.Batch(id: 1, deliveries: ids))
        #expect(kept.count == 1024)
    }

    @Test("When its device registers for an endpoint, a delivery without one is posted before later ones")
    mutating func registeredAnew() {
        add(1, to: nil, at: 1)
        add(2, to: nil, at: 2)
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
}
