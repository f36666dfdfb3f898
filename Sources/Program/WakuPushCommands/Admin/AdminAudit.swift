import ArgumentParser
import Foundation
import NodeAssembly
import PushNode

extension Admin {
    struct Audit: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows which admin commands read secrets or changed something, by whom and with which result.",
            discussion: """
                The log is in the data folder (audit.log and audit.log.1, 1 MiB each), with SQLite and with PostgreSQL; each node has its own. \
                SOURCE is socket for requests to the running daemon, command for commands that opened the store themselves. A record "begun" \
                without a result is of an operation that was interrupted or is still running.

                EXAMPLE
                  waku-push admin audit --data data --limit 20
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Option(help: "Maximum number of records; the latest are shown.") var limit = ResultLimit()

        func execute() async throws {
            guard access(folder, R_OK | X_OK) == 0 else {
                throw CommandFailure(.data, "data folder \(folder) can't be opened: set --data to the daemon's data folder")
            }
            let latest: AuditLog.Latest
            do throws(AuditLog.Failure) {
                latest = try AuditLog(in: folder).latest(limit.count)
            } catch {
                throw CommandFailure(.data, error.message)
            }
            let records = latest.records
            if latest.unreadableCount > 0 {
                CommandFailure.report("warning: \(latest.unreadableCount) lines of the audit log can't be read and are not shown")
            }
            if admin.json { return try Output.json(records) }
            guard !records.isEmpty else { return Output.line("nothing was recorded") }
            Output.table(
                ["TIME", "UID", "SOURCE", "ACTION", "RESULT"],
                records.map {
                    [$0.time.formatted(.iso8601), String($0.user), $0.source.rawValue, $0.action.rawValue, $0.result.rawValue]
                })
        }
    }
}

extension AdminCommand {
    /// Runs an operation that opens the store itself. The audit log of the data folder has a record of it before it starts.
    ///
    /// - Parameters:
    ///   - isRecordRequired: false for an operation that reveals no secret and changes nothing, or saves data: it is carried out, with a
    ///     warning, when the record can't be written.
    ///   - hasChanged: whether the operation did something, so that a missing data folder is worth a warning.
    /// - Throws: ``CommandFailure`` when a required record can't be written, and the operation's own errors.
    func audited<Outcome>(
        _ action: AuditedAction, isRecordRequired: Bool = true, hasChanged: (Outcome) -> Bool = { _ in true },
        _ operation: () async throws -> Outcome
    ) async throws -> Outcome {
        guard access(folder, F_OK) == 0 else {
            // Without a folder there is nothing to read, unless the store is PostgreSQL.
            let outcome = try await operation()
            if hasChanged(outcome), try await location() != .dataFolder {
                CommandFailure.report("there is no data folder \(folder): \(action.rawValue) is not in an audit log")
            }
            return outcome
        }
        let log = AuditLog(in: folder)
        do throws(CommandFailure) {
            try record(action, .begun, in: log)
        } catch {
            guard !isRecordRequired else { throw error }
            CommandFailure.report("warning: \(action.rawValue) is not recorded: \(error.message)")
            return try await operation()
        }
        let outcome: Outcome
        do {
            outcome = try await operation()
        } catch {
            // The operation's own error says more.
            try? record(action, .failed, in: log)
            throw error
        }
        do throws(CommandFailure) {
            try record(action, .succeeded, in: log)
        } catch {
            CommandFailure.report("\(action.rawValue) is done: \(error.message)")
        }
        return outcome
    }

    private func record(_ action: AuditedAction, _ result: AuditRecord.Result, in log: AuditLog) throws(CommandFailure) {
        do throws(AuditLog.Failure) {
            try log.append(AuditRecord(time: Date(), user: getuid(), source: .command, action: action, result: result))
        } catch {
            throw CommandFailure(.cannotCreate, error.message)
        }
    }
}
