import Synchronization

/// Ends the loop of a client after its current action.
final class StopFlag: Sendable {
    private let isSet = Atomic(false)

    func set() { isSet.store(true, ordering: .relaxed) }

    var goesOn: Bool { !isSet.load(ordering: .relaxed) && !Task.isCancelled }
}
