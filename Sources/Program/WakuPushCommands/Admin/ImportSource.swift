import Core
import Foundation
import StatusGoImport

/// A database of status-go that is imported.
struct ImportSource {
    /// Requests older than this are dropped anyway; registrations of this period are found again.
    private static let margin = Duration.seconds(24 * 3600)

    let path: String
    let file: DatabaseFile
    let database: StatusGoDatabase
    /// When the server handled its last message; nil if the database does not contain it.
    let lastHandled: Timestamp?

    init(_ path: String, passwordFile: String?, iterations: Int) throws {
        self.path = path
        file = try DatabaseFile(path, password: passwordFile.map(SecretInput.password), iterations: iterations)
        database = try StatusGoDatabase(file.image, path: path)
        lastHandled = try database.lastHandled(at: .now())
    }

    /// The time from which messages may not have been handled.
    ///
    /// A database that contains no time has only its file's time, which a checkpoint changes. If it lists the handled requests, it is safe
    /// to begin much earlier, since none of them is notified again.
    var catchUpStart: Timestamp {
        if let lastHandled { return lastHandled }
        let seconds = min(max(file.modified.timeIntervalSince1970, 0), Date.now.timeIntervalSince1970)
        let modified = Timestamp(rawValue: Int64(seconds) * 1_000_000_000)
        return database.hasHandledRequests ? modified - Self.margin : modified
    }
}

/// The contents of an imported database, and the results of the import.
struct ImportReport: Encodable {
    let isDryRun: Bool
    /// The push server's tables in the database, with their numbers of rows.
    let tables: [String: Int]
    /// When the server handled its last message; nil if the database does not contain it.
    let newestRow: String?
    /// Frames of the write-ahead log that were read; nil if there is no log.
    let logFrames: Int?
    /// Whether the server wrote to a write-ahead log that is missing.
    let isLogMissing: Bool
    /// The time from which the daemon's first run catches up.
    let catchUpFrom: String
    /// The key hash of the server's identity; empty if a dry run found none.
    var identity = ""
    /// Rows that can be imported.
    var registrations = 0
    var tombstones = 0
    /// Numbers of rows that can't be imported, by reason.
    var refused: [String: Int] = [:]
    var imported = 0
    /// Rows already stored with the same or a higher version.
    var kept = 0
    /// Requests that the server handled; this node does not notify them again.
    var handledRequests = 0
    var derivedKeys = 0

    init(_ source: ImportSource, catchUpFrom start: Timestamp, isDryRun: Bool) {
        self.isDryRun = isDryRun
        tables = source.database.tables
        newestRow = source.lastHandled?.formatted
        logFrames = source.file.logFrameCount
        isLogMissing = source.file.usesLog && logFrames == nil
        catchUpFrom = start.formatted
    }

    var refusedCount: Int { refused.values.reduce(0, +) }

    func print(asJSON: Bool) throws {
        if asJSON { return try Output.json(self) }
        let log = logFrames.map { "\($0) frames" } ?? (isLogMissing ? "missing: copy the -wal file too, if the server left one" : "none")
        let found = [
            ("server", identity.isEmpty ? "not in the database" : identity), ("registrations", "\(registrations)"),
            ("unregistered", "\(tombstones)"), ("unusable", "\(refusedCount)"), ("write-ahead log", log),
            ("newest row", newestRow ?? "unknown: no table has times"), ("catch-up from", catchUpFrom),
        ]
        let done = [
            ("imported", "\(imported)"), ("kept", "\(kept)"), ("handled requests", "\(handledRequests)"),
            ("derived keys", "\(derivedKeys)"),
        ]
        Output.fields(isDryRun ? found : found + done)
        Output.line()
        Output.table(["TABLE", "ROWS"], tables.sorted { $0.key < $1.key }.map { [$0.key, String($0.value)] })
        for (reason, count) in refused.sorted(by: { $0.key < $1.key }) { Output.line("  \(count)  \(reason)") }
        Output.line("Grants are not verified: status-go keeps the hash of a client's key only, and verified them when clients registered.")
    }
}
