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
