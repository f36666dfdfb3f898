import CFaultVFS

/// Makes a database fail: SQLite's reads and writes in a folder go through a VFS with faults.
///
/// Create it before the database is opened. Its memory is not freed, since connections may outlive a test.
package final class StoreFaults: Sendable {
    package struct Operations: OptionSet, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let read = Operations(rawValue: Int32(FAULT_READ))
        package static let write = Operations(rawValue: Int32(FAULT_WRITE))
        package static let sync = Operations(rawValue: Int32(FAULT_SYNC))
        package static let truncate = Operations(rawValue: Int32(FAULT_TRUNCATE))
        /// Exclusive ones alone.
        package static let lock = Operations(rawValue: Int32(FAULT_LOCK))
        package static let open = Operations(rawValue: Int32(FAULT_OPEN))
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
        /// Reads return wrong data without an error.
        case garble
        /// Calls hang until the faults are cleared.
        case stall
    }

    /// `fault_plan`s live on, and have a lock of their own.
    nonisolated(unsafe) private let plan: OpaquePointer

    package init(in folder: String) {
        plan = fault_plan_create(folder)
    }

    /// - Parameters:
    ///   - after: calls that succeed before.
    ///   - count: calls that fail then; nil: all.
    ///   - permille: how many of 1000 of them, at random.
    package func add(
        _ effect: Effect, to operations: Operations, of files: Files = .all, after: Int = 0, count: Int? = nil, permille: Int = 1000
    ) {
        let code =
            switch effect {
            case .code(let code): code
            case .garble: Int32(FAULT_GARBLE)
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

    /// What is random from now on.
    package func seed(_ seed: UInt64) { fault_plan_seed(plan, seed) }

    /// From now on it is known what was not synced. A sync does no more than to note that: real ones are not waited for.
    package func trackSyncs() { fault_plan_track(plan) }

    /// Nothing reaches a file any more: to be called before the database is closed, which else would tidy up.
    package func kill() { fault_plan_kill(plan) }

    /// To be called when a killed database is closed: what was not synced is lost, or part of it, as chance says.
    package func cutPower() { fault_plan_cut_power(plan) }

    package func revive() { fault_plan_revive(plan) }
}
