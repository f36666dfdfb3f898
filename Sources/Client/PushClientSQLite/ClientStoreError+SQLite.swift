import Foundation
import GRDB
import PushClient

extension ClientStoreError {
    /// Only SQLite's error code is included: its message may quote stored data.
    init(explaining error: any Error, in path: String) {
        switch error {
        case let error as ClientStoreError: self = error
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_NOTADB, .SQLITE_CORRUPT:
                self.init(
                    code: .damaged, message: "client state \(path) is damaged: restore it from a backup, or choose another folder")
            case .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_AUTH:
                self.init(code: .permission, message: "client state \(path) can't be used: give this user access to it")
            case .SQLITE_FULL: self = .full(path)
            // On a full disk, SQLite in WAL mode can't extend its shared memory, before it fails to write.
            case .SQLITE_IOERR where error.extendedResultCode == .SQLITE_IOERR_SHMSIZE: self = .full(path)
            case .SQLITE_IOERR where [.SQLITE_IOERR_WRITE, .SQLITE_IOERR_FSYNC].contains(error.extendedResultCode):
                self.init(code: .unavailable, message: "client state \(path) can't be written: the disk is full, or fails")
            default:
                let code = error.extendedResultCode.rawValue
                self.init(code: .unavailable, message: "client state \(path) can't be used now (SQLite error \(code)): try again")
            }
        default: self.init(code: .unavailable, message: "client state \(path) can't be used now: try again")
        }
    }

    /// - Parameters:
    ///   - code: `errno` of an attempt to open or create the file.
    ///   - denied: the message if this user lacks a permission.
    init(opening path: String, _ code: Int32, denied: String) {
        switch code {
        case ENOSPC, EDQUOT: self = .full(path)
        case EMFILE, ENFILE:
            self.init(
                code: .unavailable, message: "client state \(path) can't be opened: too many files are open; close some, and try again")
        default: self.init(code: .permission, message: denied)
        }
    }

    static func full(_ path: String) -> ClientStoreError {
        ClientStoreError(code: .unavailable, message: "client state \(path) can't be written: the disk is full")
    }
}
