import ArgumentParser
import Foundation
import NodeAssembly
import Core
import StatusGoImport
import StatusProtocol
import StatusServer
import Storage
import StoreSQLite
import Waku
import WakuCrypto

extension Admin {
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import", abstract: "Imports registrations from other push servers.", subcommands: [StatusGo.self])

        struct StatusGo: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "status-go", abstract: "Imports identity and registrations from the database of status-go's push server.",
                discussion: """
                    Stop that server first. Its database is only read; it may be encrypted with SQLCipher as status-go does. All rows are \
                    examined before the first is written; stored registrations with the same or a higher version are kept, so that the \
                    import can be repeated. If the database contains the server's key, it is written to --identity, unless that file has \
                    the same key already.

                    EXAMPLES
                      waku-push admin import status-go pushserver.db --dry-run
                      waku-push admin import status-go pushserver.db \\
                        --data data --identity id.key
                    """)

            /// Rows that are read at once.
            private static let pageLimit = 500

            @ParentCommand var command: Admin
            @OptionGroup var admin: AdminOptions
            @Argument(help: "The server's database file.") var database: String
            @Option(help: "A file with the password of an encrypted database, or - for standard input.") var passwordFile: String?
            @Option(help: "Iterations of SQLCipher's key derivation.") var kdfIterations = 3_200
            @Option(help: "The APNs topic of registrations that have none.") var defaultApnTopic: String?
            @Flag(help: "Leave out rows that can't be imported.") var skip = false
            @Flag(help: "Derive the keys of all query topics now, 12 ms of a core each; by default the daemon does it when idle.")
            var deriveKeys = false
            @Flag(help: "Only examine the database.") var dryRun = false

            func run() async throws {
                try await reportingFailures {
                    guard (1...10_000_000).contains(kdfIterations) else {
                        throw CommandFailure(.usage, "--kdf-iterations must be from 1 to 10,000,000")
                    }
                    let source = try open()
                    var report = try await examine(source)
                    let server = try identity(in: source)
                    report.identity = server.map { KeyHash(of: $0.key.publicKey).hex } ?? ""
                    guard report.refused.isEmpty || skip || dryRun else {
                        try report.print(asJSON: admin.json)
                        throw CommandFailure(
                            .data, "\(report.refusedCount) rows can't be imported, so nothing was: see the reasons, and --skip")
                    }
                    guard !dryRun, let server else { return try report.print(asJSON: admin.json) }
                    if server.isNew, let file = admin.identityFile { try IdentityFile.write(server.key, to: file) }
                    try await write(source, as: server.key, &report)
                    try report.print(asJSON: admin.json)
                }
            }

            private func open() throws -> StatusGoDatabase {
                let password = try passwordFile.map(SecretInput.password)
                let image = try DatabaseFile.read(database, password: password, iterations: kdfIterations)
                return try StatusGoDatabase(image, path: database)
            }

            /// Rows with their records, or why they have none; page by page, so that a large database is not copied once more.
            private func forEachPage(
                _ source: StatusGoDatabase, _ body: ([Result<RegistrationRecord, StatusGoRow.Refusal>]) async throws -> Void
            ) async throws {
                let now = Timestamp.now()
                var last: Int64?
                while let page = try source.rows(after: last, limit: Self.pageLimit) {
                    try await body(
                        page.rows.map { row in
                            Result { () throws(StatusGoRow.Refusal) in try row.record(defaultTopic: defaultApnTopic ?? "", at: now) }
                        })
                    last = page.last
                }
            }

            private func examine(_ source: StatusGoDatabase) async throws -> ImportReport {
                var report = ImportReport(isDryRun: dryRun)
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

            /// When the server last changed the database: what came since then has to be caught up.
            private var stoppedAt: Date? {
                (try? FileManager.default.attributesOfItem(atPath: database))?[.modificationDate] as? Date
            }

            /// The server's key, and whether `--identity` is still to be written. nil only for a dry run, which needs none.
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

            private func write(_ source: StatusGoDatabase, as identity: PrivateKey, _ report: inout ImportReport) async throws {
                let target = try ImportTarget(folder: admin.folder(of: command), at: admin.location(), identity)
                // Before the rows: a daemon that starts after an interrupted import has to catch up as well.
                if let stopped = stoppedAt { try await target.catchUp(since: stopped) }
                let total = report.registrations + report.tombstones
                let progress = ProgressBar()
                var done = 0
                try await forEachPage(source) { page in
                    for case .success(let record) in page { try await target.merge(.registration(record)) }
                    done += page.count
                    progress.show("\(done) of \(total) rows", Double(done) / Double(max(total, 1)))
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
        }
    }
}
