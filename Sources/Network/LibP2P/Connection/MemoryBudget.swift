import Synchronization

/// The memory used by all inbound connections together, in bytes: unread data, incomplete messages, identify information, unsent data, and what waits
/// to be sent. When the limit is exceeded the host drops of what waits, and closes connections, the least useful first.
final class MemoryBudget: Sendable {
    let limit: Int
    private let held = Atomic(0)

    init(limit: Int) {
        self.limit = limit
    }

    var byteCount: Int { held.load(ordering: .relaxed) }

    /// - Returns: Whether the limit is exceeded.
    fileprivate func add(_ byteCount: Int) -> Bool {
        held.wrappingAdd(byteCount, ordering: .relaxed).newValue > limit
    }
}

/// The memory used by one connection, or shared by several.
final class MemoryAccount: Sendable {
    /// nil for an outbound connection, which does not count towards the budget.
    private let budget: MemoryBudget?
    private let held = Atomic(0)

    init(_ budget: MemoryBudget?) {
        self.budget = budget
    }

    var byteCount: Int { held.load(ordering: .relaxed) }

    /// - Parameter byteCount: Negative when memory is released.
    /// - Returns: Whether memory was added and the budget is exceeded.
    func add(_ byteCount: Int) -> Bool {
        guard byteCount != 0 else { return false }
        held.wrappingAdd(byteCount, ordering: .relaxed)
        guard let isOver = budget?.add(byteCount) else { return false }
        return isOver && byteCount > 0
    }
}

/// Memory accounted to a connection until this is deallocated.
final class MemoryCharge: Sendable {
    private let connection: Connection
    private let byteCount = Atomic(0)

    init(_ connection: Connection) {
        self.connection = connection
    }

    deinit {
        set(0)
    }

    func set(_ byteCount: Int) {
        let before = self.byteCount.exchange(byteCount, ordering: .relaxed)
        connection.charge(byteCount - before)
    }
}
