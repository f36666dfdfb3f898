import Foundation
import GRDB
import Storage
import WakuCrypto

extension StoreError {
    /// The cause and the remedy. Never SQLite's own message, which may quote values to be stored.
    init(explaining error: any Error, in place: String = "the data folder") {
        switch error {
        case let error as StoreError:
            self = error
        case let error as DatabaseError:
            self.init(
                error, "the database in \(place)", isOnReadOnlyDisk: DataFolder.isReadOnly(place),
                hasInodes: DiskSpace(at: place)?.inodes != 0)
        case is CryptoError, is RowDecodingError, is UnexpectedValue:
            self.init(
                code: .damaged,
                message: """
                    a row of the database in \(place) can't be opened: it was altered; restore a backup, or let the client register again
                    """)
        default:
            self.init(code: .unavailable, message: "a change failed: \(type(of: error))")
        }
    }

    package init(noDatabaseAt path: String) {
        let copy = DatabaseFile.rescued(path)
        let hint =
            DatabaseFile.isRescued(path)
            ? "its file was deleted, moved or replaced under a daemon, which copied its rows: waku-push admin restore \(copy), or delete that "
                + "file to begin anew"
            : "has the daemon run with this data folder?"
        self.init(code: .missing, message: "there is no database at \(path): \(hint)")
    }

    init(newerIn place: String) {
        self.init(code: .newer, message: "the database in \(place) was made by a newer waku-push: run that version")
    }

    init(otherIdentityIn place: String) {
        self.init(
            code: .otherIdentity,
            message: "the database in \(place) belongs to another identity: use that one's key file, or another data folder")
    }

    private init(_ error: DatabaseError, _ database: String, isOnReadOnlyDisk: Bool, hasInodes: Bool) {
        let code = error.extendedResultCode.rawValue
        switch error.resultCode {
        case .SQLITE_IOERR where error.isDamage:
            self.init(
                code: .damaged,
                message: "\(database) can't be read (SQLite code \(code)): look at the disk; if that is sound, restore a backup")
        case _ where error.isDamage:
            self.init(code: .damaged, message: "\(database) is damaged: restore a backup, or move the file away (SQLite code \(code))")
        case .SQLITE_READONLY where isOnReadOnlyDisk, .SQLITE_CANTOPEN where isOnReadOnlyDisk:
            self.init(
                code: .permission,
                message: "\(database) is on a read-only file system: mount it for writing, or copy the folder and give the copy by --data")
        case .SQLITE_CANTOPEN where !hasInodes:
            self.init(code: .unavailable, message: "no free inode for \(database): free some (df -i)")
        case .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_AUTH:
            self.init(code: .permission, message: "\(database) can't be written to: give this user access to it")
        case .SQLITE_CANTOPEN:
            self.init(code: .cannotCreate, message: "\(database) can't be opened: is the folder there and accessible?")
        case .SQLITE_FULL:
            self.init(code: .full, message: "no disk space for \(database): free some")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init(code: .unavailable, message: "\(database) is locked by another program: end that program")
        case .SQLITE_IOERR:
            self.init(code: .unavailable, message: "the disk fails under \(database) (SQLite code \(code)): look at the disk")
        default:
            self.init(code: .unavailable, message: "\(database) failed with SQLite code \(code)")
        }
    }
}
