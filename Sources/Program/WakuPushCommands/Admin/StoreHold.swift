import Foundation
import NodeAssembly
import Storage
import StoreSQLite

/// Keeps a store in place while a command changes it: no other command replaces, moves or re-encrypts it meanwhile, and no daemon starts if none was
/// running.
final class StoreHold {
    private let lock: DataFolder?
    /// Beside a daemon, which has the lock.
    private let use: FolderUse?

    var isBesideDaemon: Bool { lock == nil }

    /// - Throws: `StoreError` with `locked` when the folder is in use by another command, or by a daemon that does not answer yet.
    init(_ folder: String) async throws {
        do throws(StoreError) {
            lock = try DataFolder(locking: folder)
            use = nil
        } catch {
            guard error.code == .locked else { throw error }
            lock = nil
            use = try FolderUse(of: folder)
            // After the use has begun: a command that takes the lock when this daemon has stopped is excluded.
            guard try await AdminClient(folder: folder).status() != nil else { throw error }
        }
    }

    /// Ends it. Without a call, it may end with the last use of this object.
    func release() {
        lock?.unlock()
    }
}

extension AdminCommand {
    /// nil if there is nothing to lock: no database, or a PostgreSQL database and no data folder.
    func holdStore() async throws -> StoreHold? {
        let hasFolder =
            switch try await location() {
            case .dataFolder: try DatabaseFile.exists(at: DataFolder.databasePath(in: folder))
            case .postgreSQL: access(folder, F_OK) == 0
            }
        return hasFolder ? try await StoreHold(folder) : nil
    }
}
