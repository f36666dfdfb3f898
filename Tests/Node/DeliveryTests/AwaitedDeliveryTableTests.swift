import Core
import Synchronization
import Testing

@testable import Delivery

@Suite("Requests that wait for deliveries")
struct AwaitedDeliveryTableTests {
    private let first = DeliveryID(hashing: [1])
    private let second = DeliveryID(hashing: [2])
    private var table = AwaitedDeliveryTable()

    private func awaited(_ deliveries: DeliveryID...) -> AwaitedDeliveries {
        AwaitedDeliveries(Set(deliveries)) { _ in }
    }

    private func time(_ second: Int64) -> Timestamp { Timestamp(rawValue: second * 1_000_000_000) }

    @Test("A request is complete when the last of its deliveries has ended, with an outcome for each")
    mutating func complete() {
        table.add(awaited(first, second), deadline: time(2))
        #expect(table.resolve(second, as: .failed).isEmpty)
        #expect(table.resolve(first, as: .accepted).map(\.outcomes) == [[first: .accepted, second: .failed]])
        #expect(table.isEmpty)
    }

    @Test("Several requests can wait for the same delivery")
    mutating func shared() {
        table.add(awaited(first), deadline: time(2))
        table.add(awaited(first), deadline: time(2))
        #expect(table.resolve(first, as: .accepted).map(\.outcomes) == [[first: .accepted], [first: .accepted]])
        #expect(table.isEmpty)
    }

    @Test("An outcome that is known already is not waited for")
    mutating func known() {
        table.add(awaited(first, second), known: [first: .failed], deadline: time(2))
        #expect(Set(table.deliveries) == [second])
        #expect(table.resolve(first, as: .accepted).isEmpty)
        #expect(table.resolve(second, as: .accepted).map(\.outcomes) == [[first: .failed, second: .accepted]])
    }

    @Test("At the deadline open deliveries count as failed; later outcomes change nothing")
    mutating func timeIsUp() {
        table.add(awaited(first, second), deadline: time(2))
        table.add(awaited(second), deadline: time(3))
        #expect(table.resolve(first, as: .accepted).isEmpty)
        #expect(table.nextDeadline == time(2))
        #expect(table.end(before: time(1)).isEmpty)
        #expect(table.end(before: time(2)).map(\.outcomes) == [[first: .accepted, second: .failed]])
        #expect(table.end(before: time(2)).isEmpty)
        #expect(table.nextDeadline == time(3))
        #expect(table.resolve(second, as: .accepted).map(\.outcomes) == [[second: .accepted]])
        #expect(table.end(before: time(3)).isEmpty)
        #expect(table.nextDeadline == nil)
    }

    @Test("It reports which deliveries are awaited")
    mutating func awaitedDeliveries() {
        table.add(awaited(first), deadline: time(2))
        table.add(awaited(second, first), deadline: time(2))
        #expect(Set(table.deliveries) == [first, second])
        _ = table.resolve(first, as: .accepted)
        #expect(Set(table.deliveries) == [second])
        _ = table.end(before: time(2))
        #expect(table.deliveries.isEmpty)
    }

    @Test("Ten thousand requests leave nothing behind")
    mutating func many() {
        for round in Int64(1)...10_000 {
            table.add(awaited(first), deadline: time(round))
            if round.isMultiple(of: 2) { #expect(!table.resolve(first, as: .accepted).isEmpty) }
            _ = table.end(before: time(round - 1))
        }
        #expect(table.nextDeadline == time(10_000))
        #expect(table.end(before: time(10_000)).isEmpty)
        #expect(table.isEmpty)
    }

    @Test("The end of one request does not end another's wait for the same delivery")
    mutating func independent() {
        table.add(awaited(first), deadline: time(1))
        table.add(awaited(first), deadline: time(2))
        _ = table.end(before: time(1))
        #expect(table.resolve(first, as: .accepted).map(\.outcomes) == [[first: .accepted]])
    }

    @Test("Each request is completed once")
    mutating func told() {
        let count = Atomic(0)
        table.add(AwaitedDeliveries([first]) { _ in count.add(1, ordering: .relaxed) }, deadline: time(1))
        for completed in table.resolve(first, as: .accepted) + table.end(before: time(9)) { completed.notify() }
        #expect(count.load(ordering: .relaxed) == 1)
    }
}
