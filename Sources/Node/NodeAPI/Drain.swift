import Synchronization

/// Whether the operator stopped the node from accepting registrations, for instance before a move to another machine. Ends with a restart.
package final class Drain: Sendable {
    private let flag = Atomic(false)

    package init() {}

    package var isOn: Bool {
        get { flag.load(ordering: .relaxed) }
        set { flag.store(newValue, ordering: .relaxed) }
    }
}
