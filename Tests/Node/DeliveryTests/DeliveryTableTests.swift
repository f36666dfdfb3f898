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

    @Test("What another node is to post is not looked up at once by those who enqueued it")
    mutating func elsewhere() {
        table.markRemote([delivery])
        #expect(lookedUp(at: 1) == [])
        #expect(table.awaitedElsewhere == [delivery])
        #expect(table.resolve(delivery, as: .accepted).map(\.outcomes) == [[delivery: .accepted]])
        // By the same request when it comes again, whose delivery may have ended long ago.
        #expect(lookedUp(at: 10) == [delivery])
    }
}
