import Synchronization

/// What peers that dialled this node make it hold, all together, in bytes: data that nobody has read yet, parts of messages, what they said of
/// themselves, and what they do not take. When it is exceeded the host closes connections, the least deserving first.
final class MemoryBudget: Sendable {
    let limit: Int
    private let held = Atomic(0)

    init(limit: Int) {
        self.limit = limit
    }

    var byteCount: Int { held.load(ordering: .relaxed) }

    /// - Returns: Whether that is too much.
    fileprivate func add(_ byteCount: Int) -> Bool {
        held.wrappingAdd(byteCount, ordering: .relaxed).newValue > limit
    }
}

/// The part of one connection.
final class MemoryAccount: Sendable {
    /// nil for a connection that this node dialled: it counts for itself alone.
    private let budget: MemoryBudget?
    private let held = Atomic(0)

    init(_ budget: MemoryBudget?) {
        self.budget = budget
    }

    var byteCount: Int { held.load(ordering: .relaxed) }

    /// - Parameter byteCount: Negative for what is held no longer.
    /// - Returns: Whether all accounts together are over the limit, and this adds to it.
    func add(_ byteCount: Int) -> Bool {
        guard byteCount != 0 else { return false }
        held.wrappingAdd(byteCount, ordering: .relaxed)
        guard let isOver = budget?.add(byteCount) else { return false }
        return isOver && byteCount > 0
    }
}

/// Something that a connection's peer makes this node hold, from when it is set until it is let go of.
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
