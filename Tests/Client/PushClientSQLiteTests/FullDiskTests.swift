import Foundation
import GRDB
import PushClient
import Testing
@testable import PushClientSQLite

@Suite struct FullDiskTests {
    /// In WAL mode a full disk is met first where the shared memory grows.
    @Test(arguments: [ResultCode.SQLITE_FULL, .SQLITE_IOERR_SHMSIZE, .SQLITE_IOERR_WRITE]) func fullDiskIsNamed(code: ResultCode) {
        let error = ClientStoreError(explaining: DatabaseError(resultCode: code), in: "bob")
        #expect(error.code == .unavailable && error.message.hasPrefix("client state bob can't be written: the disk is full"))
    }

    @Test(arguments: [
        (ENOSPC, ClientStoreError.Code.unavailable, "client state bob can't be written: the disk is full"),
        (EDQUOT, .unavailable, "client state bob can't be written: the disk is full"),
        (EMFILE, .unavailable, "client state bob can't be opened: too many files are open; close some, and try again"),
        (ENFILE, .unavailable, "client state bob can't be opened: too many files are open; close some, and try again"),
        (EACCES, .permission, "give access"),
    ])
    func filesThatCantBeOpenedNow(code: Int32, expected: ClientStoreError.Code, message: String) {
        let error = ClientStoreError(opening: "bob", code, denied: "give access")
        #expect(error.code == expected && error.message == message)
    }

    @Test func otherFailuresHaveTheirNumber() {
        let error = ClientStoreError(explaining: DatabaseError(resultCode: .SQLITE_IOERR_READ), in: "bob")
        #expect(error.message.contains("SQLite error 266"))
    }
}
