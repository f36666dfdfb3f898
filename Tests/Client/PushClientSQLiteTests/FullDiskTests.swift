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

    @Test func otherFailuresHaveTheirNumber() {
        let error = ClientStoreError(explaining: DatabaseError(resultCode: .SQLITE_IOERR_READ), in: "bob")
        #expect(error.message.contains("SQLite error 266"))
    }
}
