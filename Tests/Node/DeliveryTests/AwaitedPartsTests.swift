import Core
import Synchronization
import Testing

@testable import Delivery

@Suite("Requests that are committed in parts")
struct AwaitedPartsTests {
    private final class Reports: Sendable {
        private let state = Mutex<[AwaitedDeliveries.Results]>([])
        var all: [AwaitedDeliveries.Results] { state.withLock { $0 } }
        func add(_ results: AwaitedDeliveries.Results) { state.withLock { $0.append(results) } }
    }

    private let first = DeliveryID(hashing: [1])
    private let second = DeliveryID(hashing: [2])
    private let reports = Reports()
    private let parts = AwaitedParts()

    private func part(_ delivery: DeliveryID) -> AwaitedDeliveries { parts.part([delivery], receivedAt: nil, trace: nil) }

    private func end(_ part: AwaitedDeliveries, _ outcomes: [DeliveryID: DeliveryOutcome], isImmediate: Bool = false) {
        part.completion(AwaitedDeliveries.Results(outcomes: outcomes, isImmediate: isImmediate))
    }

    @Test("The outcomes of all parts are reported once, after the last has ended")
    func report() {
        let (one, other) = (part(first), part(second))
        end(one, [first: .accepted])
        parts.finish(reports.add)
        #expect(reports.all.isEmpty)
        end(other, [second: .unregistered], isImmediate: true)
        #expect(reports.all.map(\.outcomes) == [[first: .accepted, second: .unregistered]])
        #expect(reports.all.map(\.isImmediate) == [false])
    }

    @Test("A part that ends before the last is committed ends no request")
    func early() {
        end(part(first), [first: .failed], isImmediate: true)
        #expect(reports.all.isEmpty)
        let other = part(first)
        parts.finish(reports.add)
        end(other, [first: .accepted])
        #expect(reports.all.map(\.outcomes) == [[first: .accepted]])
    }

    @Test("Without deliveries the report is immediate")
    func none() {
        parts.finish(reports.add)
        #expect(reports.all.map(\.outcomes) == [[:]])
    }
}
