import Synchronization

/// Tells work on a thread outside of the cooperative pool that its task was cancelled.
package final class Cancellation: Sendable {
    private let flag = Atomic(false)

    package init() {}

    package var isRequested: Bool { flag.load(ordering: .relaxed) }

    package func request() { flag.store(true, ordering: .relaxed) }
}
