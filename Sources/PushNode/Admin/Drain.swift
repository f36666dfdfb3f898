import Synchronization

/// Whether the operator wants no registrations taken, as before the node moves to another machine. Not kept over a restart.
package final class Drain: Sendable {
    private let flag = Atomic(false)

    package init() {}

    package var isOn: Bool {
        get { flag.load(ordering: .relaxed) }
        set { flag.store(newValue, ordering: .relaxed) }
    }
}
