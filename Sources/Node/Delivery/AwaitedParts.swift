package import Core
package import NodeMetrics
import Synchronization

/// The deliveries of a request that is committed in parts. Each part is awaited as soon as it is in the outbox; all outcomes are reported together.
package final class AwaitedParts: Sendable {
    private struct State {
        var outcomes: [DeliveryID: DeliveryOutcome] = [:]
        var isImmediate = true
        var openCount = 0
        /// Set after the last part.
        var completion: (@Sendable (AwaitedDeliveries.Results) -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// A part of the deliveries, to be awaited; see ``AwaitedDeliveries``.
    package func part(
        _ deliveries: Set<DeliveryID>, receivedAt received: ContinuousClock.Instant?, trace: MessageTrace?
    ) -> AwaitedDeliveries {
        state.withLock { $0.openCount += 1 }
        return AwaitedDeliveries(deliveries, receivedAt: received, trace: trace) { [self] results in
            change { state in
                state.openCount -= 1
                state.isImmediate = state.isImmediate && results.isImmediate
                // An outcome of an earlier part may have been a failure only because it was not waited for any longer.
                state.outcomes.merge(results.outcomes) { former, latest in former.isAccepted ? former : latest }
            }
        }
    }

    /// Call it after the last part.
    ///
    /// - Parameter completion: called once, when all parts have ended.
    package func finish(_ completion: @escaping @Sendable (AwaitedDeliveries.Results) -> Void) {
        change { $0.completion = completion }
    }

    private func change(_ body: (inout State) -> Void) {
        let completed = state.withLock {
            state -> (completion: @Sendable (AwaitedDeliveries.Results) -> Void, results: AwaitedDeliveries.Results)? in
            body(&state)
            guard state.openCount == 0, let completion = state.completion.take() else { return nil }
            return (completion, AwaitedDeliveries.Results(outcomes: state.outcomes, isImmediate: state.isImmediate))
        }
        if let completed { completed.completion(completed.results) }
    }
}
