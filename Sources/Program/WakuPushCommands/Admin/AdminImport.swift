import PushNode
import ArgumentParser
import Foundation
import Core
import StatusGoImport
import StatusProtocol
import StatusServer
import Storage
import WakuCrypto

extension Admin {
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import", abstract: "Imports registrations from other push servers.", subcommands: [StatusGo.self])

        struct StatusGo: AdminCommand {
            static let configuration = CommandConfiguration(
                commandName: "status-go", abstract: "Imports identity and registrations from the database of status-go's push server.",
                discussion: """
                    Stop that server first. Its database is only read, together with the write-ahead log (DATABASE-wal) that it left; both may \
                    be encrypted with SQLCipher as status-go does. All rows are examined before the first is written; stored registrations with \
                    the same or a higher version are kept, so that the import can be repeated. If the database contains the server's key, it is \
                    written to --identity, unless that file has the same key already.

                    The daemon's first run catches up from the last message that the server handled. Requests that the server handled are not \
                    notified again. A database without registrations is refused, with exit code 65, unless --allow-empty is given.

                    EXAMPLES
                      waku-push admin import status-go pushserver.db --dry-run
                      waku-push admin import status-go pushserver.db \\
                        --data data --identity id.key
                    """)

            /// The number of rows read at once.
            private static let pageLimit = 500
            /// The newest handled requests that are imported. A node drops requests older than `--max-request-age`, by default 10 minutes.
            private static let handledLimit = 500_000

            @ParentCommand var command: Admin
            @OptionGroup var admin: AdminOptions
            @Argument(help: "The server's database file.") var database: String
            @Option(help: "A file with the password of an encrypted database, or - for standard input.") var passwordFile: String?
            @Option(help: "Iterations of SQLCipher's key derivation.") var kdfIterations = 3_200
            @Option(help: "The APNs topic of registrations that have none.") var defaultApnTopic: String?
            @Flag(help: "Leave out rows that can't be imported.") var skip = false
            @Flag(help: "Accept a database without registrations.") var allowEmpty = false
            @Option(
                help: ArgumentHelp(
                    "When the server stopped, such as 2026-05-04T13:00:00Z, or how long ago, such as 90m: the daemon's first run catches up from then. [default: the last message in the database]",
                    valueName: "time"), transform: TimeArgument.parse)
            var since: TimeArgument?
            @Flag(help: "Derive the keys of all query topics now, 7 ms of a core each; by default the daemon does it when idle.")
            var deriveKeys = false
            @Flag(help: "Only examine the database.") var dryRun = false

            func execute() async throws {
                guard (1...10_000_000).contains(kdfIterations) else {
                    throw CommandFailure(.usage, "--kdf-iterations must be from 1 to 10,000,000")
                }
                let source = try ImportSource(database, passwordFile: passwordFile, iterations: kdfIterations)
                var report = try await examine(source)
                if let failure = objection(to: report) {
                    try report.print(asJSON: admin.json)
                    throw failure
                }
                let server = try identity(in: source.database)
                report.identity = server.map { KeyHash(of: $0.key.publicKey).hex } ?? ""
                guard !dryRun, let server else { return try report.print(asJSON: admin.json) }
                if server.isNew, let file = admin.identityFile { try IdentityFile.write(server.key, to: file) }
                report = try await audited(.importStatusGo) { [report] in
                    var written = report
                    try await write(source, as: server.key, &written)
                    return written
                }
                try report.print(asJSON: admin.json)
            }

            private func objection(to report: ImportReport) -> CommandFailure? {
                if report.refusedCount > 0, !skip, !dryRun {
                    return CommandFailure(
                        .data, "\(report.refusedCount) rows can't be imported, so nothing was: see the reasons, and --skip")
                }
                guard report.registrations == 0, !allowEmpty else { return nil }
                let reason = report.isLogMissing ? "its write-ahead log \(database)-wal is missing" : "is it the server's, and complete?"
                return CommandFailure(.data, "\(database) has no registrations: \(reason) (--allow-empty accepts that)")
            }

            /// Calls `body` with rows and their records, or the reasons why they have none; page by page, so that a large database is not copied
            /// again.
            private func forEachPage(
                _ source: ImportSource, _ body: ([Result<RegistrationRecord, StatusGoRow.Refusal>]) async throws -> Void
            ) async throws {
                let now = Timestamp.now()
                var last: Int64?
                while let page = try source.database.rows(after: last, limit: Self.pageLimit) {
                    try await body(
                        page.rows.map { row in
                            Result { () throws(StatusGoRow.Refusal) in try row.record(defaultTopic: defaultApnTopic ?? "", at: now) }
                        })
                    last = page.last
                }
            }

            private func examine(_ source: ImportSource) async throws -> ImportReport {
                var report = ImportReport(source, catchUpFrom: since?.time ?? source.catchUpStart, isDryRun: dryRun)
                try await forEachPage(source) { page in
                    for row in page {
                        do throws(StatusGoRow.Refusal) {
                            if try row.get().registration == nil { report.tombstones += 1 } else { report.registrations += 1 }
                        } catch {
                            report.refused[error.rawValue, default: 0] += 1
                        }
                    }
                }
                return report
            }

            /// The server's key, and whether `--identity` must still be written. nil only for a dry run, which needs no key.
            private func identity(in source: StatusGoDatabase) throws -> (key: PrivateKey, isNew: Bool)? {
                let found = try source.identities()
                guard found.count < 2 else { throw CommandFailure(.data, "\(database) contains different keys of the server") }
                guard let file = admin.identityFile else {
                    guard dryRun else { throw CommandFailure(.usage, "--identity is missing: the server's key file") }
                    return found.first.map { ($0, false) }
                }
                guard FileManager.default.fileExists(atPath: file) else {
                    guard let key = found.first else {
                        if dryRun { return nil }
                        throw CommandFailure(.data, "\(database) does not contain the server's key: see waku-push identity import")
                    }
                    return (key, true)
                }
                let key = try IdentityFile.read(file)
                guard found.allSatisfy({ $0.publicKey == key.publicKey }) else {
                    throw CommandFailure(
                        .data, "\(file) is not the key in \(database): clients registered with that one; give another file by --identity")
                }
                return (key, false)
            }

            private func write(_ source: ImportSource, as identity: PrivateKey, _ report: inout ImportReport) async throws {
                let target = try await ImportTarget(folder: folder, at: await location(), identity)
                defer { target.hold.release() }
                // Before the rows: a daemon that starts after an interrupted import has to catch up as well.
                try await target.store.commit(RelayCursors.begin(at: since?.time ?? source.catchUpStart, replaces: since != nil))
                report.handledRequests = try await noteHandledRequests(of: source.database, in: target)
                let total = report.registrations + report.tombstones
                let owner = identity.publicKey
                let progress = ProgressBar()
                var done = 0
                do {
                    try await forEachPage(source) { page in
                        for case .success(let record) in page { try await target.merge(.registration(record, with: owner, in: owner)) }
                        done += page.count
                        progress.show("\(done) of \(total) rows", Double(done) / Double(max(total, 1)))
                    }
                } catch {
                    // The rows before the error are kept. Its cause says more than a failure of this.
                    try? await target.finish()
                    throw error
                }
                try await target.finish()
                (report.imported, report.kept) = (target.counts.imported, target.counts.kept)
                if deriveKeys {
                    report.derivedKeys = try await TopicKeyDerivation.deriveAll(in: target.store) { count in
                        progress.show("\(count) keys", Double(count) / Double(max(total, 1)))
                    }
                }
                progress.clear()
            }

            /// - Returns: the number of requests.
            private func noteHandledRequests(of source: StatusGoDatabase, in target: ImportTarget) async throws -> Int {
                var (last, count) = (Int64?.none, 0)
                while count < Self.handledLimit, let page = try source.handledRequests(before: last, limit: Self.pageLimit) {
                    try await target.store.commit(HandledRequests.remember(page.ids, at: .now()))
                    last = page.last
                    count += page.ids.count
                }
                return count
            }
        }
    }
}
