import GRDBSQLite

/// Limits SQLite's total work on a database over all statements. In a hostile database pages can contain each other, so that few
/// bytes have endless rows.
final class ReadingBudget {
    /// The budget is checked after this number of operations of SQLite's virtual machine.
    private static let interval: Int32 = 1_000
    /// Reading all tables twice takes fewer than 2 operations a byte.
    private static let operationsPerByte = 16
    private static let minimum = 20_000_000

    private var remaining: Int
    var isSpent: Bool { remaining <= 0 }

    convenience init(byteCount: Int) {
        self.init(operations: Self.minimum + byteCount * Self.operationsPerByte)
    }

    init(operations: Int) {
        remaining = operations / Int(Self.interval)
    }

    /// Interrupts a connection's statements once the budget is spent. The connection must not outlive it.
    func limit(_ connection: OpaquePointer) {
        sqlite3_progress_handler(
            connection, Self.interval,
            { budget in
                guard let budget else { return 1 }
                let this = Unmanaged<ReadingBudget>.fromOpaque(budget).takeUnretainedValue()
                this.remaining -= 1
                return this.isSpent ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}
