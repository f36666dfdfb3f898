import CFaultVFS

/// Injects faults into a database: SQLite's reads and writes in a folder go through a VFS with faults.
///
/// Create it before opening the database. Its memory is never freed, since connections may outlive a test.
package final class StoreFaults: Sendable {
    package struct Operations: OptionSet, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let read = Operations(rawValue: Int32(FAULT_READ))
        package static let write = Operations(rawValue: Int32(FAULT_WRITE))
        package static let sync = Operations(rawValue: Int32(FAULT_SYNC))
        /// Exclusive locks only.
        package static let lock = Operations(rawValue: Int32(FAULT_LOCK))
    }

    package struct Files: OptionSet, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let database = Files(rawValue: Int32(FAULT_DATABASE))
        package static let log = Files(rawValue: Int32(FAULT_WAL))
        package static let all: Files = [.database, .log]
    }

    package enum Effect: Sendable {
        /// A result code of SQLite's.
        case code(Int32)
        /// Calls hang until the faults are cleared.
        case stall
    }

    /// `fault_plan` objects are never freed, and have their own lock.
    nonisolated(unsafe) private let plan: OpaquePointer

    package init(in folder: String) {
        plan = fault_plan_create(folder)
    }

    /// - Parameters:
    ///   - after: the number of calls that succeed first.
    ///   - count: the number of calls that fail then; nil for all.
    ///   - permille: how many calls of 1000 fail, at random.
    package func add(
        _ effect: Effect, to operations: Operations, of files: Files = .all, after: Int = 0, count: Int? = nil, permille: Int = 1000
    ) {
        let code =
            switch effect {
            case .code(let code): code
            case .stall: Int32(FAULT_STALL)
            }
        fault_plan_add(
            plan,
            fault_rule(
                operations: operations.rawValue, files: files.rawValue, code: code, after: Int64(after), count: Int64(count ?? -1),
                permille: Int32(permille)))
    }

    /// Ends all faults.
    package func clear() { fault_plan_clear(plan) }

    /// Number of failed calls.
    package var hits: Int { Int(fault_plan_hits(plan)) }

    /// Seeds the random faults.
    package func seed(_ seed: UInt64) { fault_plan_seed(plan, seed) }

    /// Starts tracking unsynced data. A sync only updates the tracking, and does not wait for the disk.
    package func trackSyncs() { fault_plan_track(plan) }

    /// Discards all further writes. Call it before the database is closed, because closing would clean up.
    package func kill() { fault_plan_kill(plan) }

    /// Call it after a killed database was closed: unsynced data is lost, wholly or partly, at random.
    package func cutPower() { fault_plan_cut_power(plan) }

    package func revive() { fault_plan_revive(plan) }
}
