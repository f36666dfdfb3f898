@testable import Delivery
import Core
import Testing

@Suite("Posts with an unknown outcome")
struct UnknownOutcomeTests {
    private let rule = UnknownOutcome(hold: .seconds(5))

    private func time(_ milliseconds: Int64) -> Timestamp { Timestamp(rawValue: milliseconds * 1_000_000) }

    @Test(
        "The hold counts from the first mark in every run and for every owner", arguments: [0, 1, 1_200, 4_999, 5_000] as [Int64])
    func hold(age: Int64) {
        // The queue's clock began elsewhere.
        #expect(rule.end(markedAt: time(100_000), clock: time(100_000 + age), now: time(7)) == time(7 + 5_000 - age))
    }

    @Test("The hold ends when the first mark is old enough, and lasts no longer if the clock was set back")
    func bounds() {
        #expect(rule.end(markedAt: time(100_000), clock: time(900_000), now: time(7)) == time(7))
        #expect(rule.end(markedAt: time(100_000), clock: time(20_000), now: time(7)) == time(5_007))
        #expect(rule.end(markedAt: Timestamp(rawValue: .max), clock: Timestamp(rawValue: .min), now: time(7)) == time(5_007))
        #expect(UnknownOutcome(hold: .zero).end(markedAt: time(100_000), clock: time(100_000), now: time(7)) == time(7))
    }

    @Test("A notification that the device shows once does not wait, nor does one without an unknown outcome")
    func shownOnce() {
        #expect(UnknownOutcome.wait(until: time(10), showsOnce: false, now: time(9)) == time(10))
        #expect(UnknownOutcome.wait(until: time(10), showsOnce: false, now: time(10)) == nil)
        #expect(UnknownOutcome.wait(until: time(10), showsOnce: true, now: time(1)) == nil)
        #expect(UnknownOutcome.wait(until: nil, showsOnce: false, now: time(1)) == nil)
    }
}

@Suite("Postponed deliveries")
struct PostponedDeliveryTests {
    private var queue: DeliveryQueue
    private let device = DeviceID(.init(rawValue: 1), row: 1)
    private let other = DeviceID(.init(rawValue: 1), row: 2)

    init() {
        queue = DeliveryQueue(generator: SystemRandomNumberGenerator())
    }

    private func time(_ second: Double) -> Timestamp { Timestamp(rawValue: Int64(second * 1e9)) }

    private mutating func posted(_ now: Timestamp) -> [DeliveryQueue.Batch] {
        queue.actions(now: now).compactMap { if case .post(let batch) = $0 { batch } else { nil } }
    }

    @Test("They wait in their device's line until their time: later ones of the device behind them, others not")
    mutating func line() throws {
        queue.add(1, device: device, expires: time(600), isAwaited: false, now: time(0))
        queue.add(2, device: device, expires: time(600), isAwaited: false, now: time(0))
        queue.add(3, device: other, expires: time(600), isAwaited: false, now: time(0))
        let first = try #require(posted(time(0)).first)
        #expect(first.deliveries.sorted() == [1, 3])
        queue.postpone([1: time(5)], of: first.id)
        #expect(!queue.devicesInFlight.contains(device) && queue.devicesInFlight.contains(other))
        #expect(queue.finished(first.id, outcome: .accepted, now: time(1)) == [.accepted(3)])
        #expect(posted(time(4.9)).isEmpty)
        #expect(queue.nextWake(now: time(1)).map { $0 <= time(5.1) } == true)
        let second = try #require(posted(time(5.1)).first)
        #expect(second.deliveries == [1])
        #expect(queue.finished(second.id, outcome: .accepted, now: time(5.2)) == [.accepted(1)])
        #expect(posted(time(5.3)).map(\.deliveries) == [[2]])
    }

    @Test("Postponing is no failure, even of a whole batch; postponed deliveries still expire")
    mutating func emptyBatch() throws {
        queue.add(1, device: device, expires: time(3), isAwaited: false, now: time(0))
        let batch = try #require(posted(time(0)).first)
        queue.postpone([1: time(5)], of: batch.id)
        #expect(queue.finished(batch.id, outcome: .notPosted, now: time(0.1)) == [])
        #expect(queue.breaker.isClosed && queue.count == 1)
        #expect(queue.actions(now: time(3)) == [.expire([1])])
    }

    @Test("The end of their former batch changes nothing when they are in flight again")
    mutating func overlap() throws {
        queue.add(1, device: device, expires: time(600), isAwaited: false, now: time(0))
        queue.add(2, device: device, expires: time(600), isAwaited: false, now: time(0))
        queue.add(3, device: other, expires: time(600), isAwaited: false, now: time(0))
        let first = try #require(posted(time(0)).first)
        queue.postpone([1: time(1)], of: first.id)
        let second = try #require(posted(time(1.1)).first)
        #expect(second.deliveries == [1])
        #expect(queue.finished(first.id, outcome: .failed(retryAfter: nil), now: time(1.2)) == [.retrying(3)])
        // The line of the device still is in flight.
        #expect(posted(time(1.3)).allSatisfy { !$0.deliveries.contains(2) })
        #expect(queue.finished(second.id, outcome: .accepted, now: time(1.4)) == [.accepted(1)])
    }
}
