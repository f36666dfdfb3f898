import Foundation
import GRDB
import Storage
import TestSupport
import Testing

@testable import StoreSQLite

@Suite struct DatabaseErrorTests {
    @Test(arguments: [
        (ResultCode.SQLITE_CORRUPT, true, false), (.SQLITE_NOTADB, true, false), (.SQLITE_IOERR_SHORT_READ, true, false),
        (.SQLITE_IOERR_FSYNC, false, true), (.SQLITE_FULL, false, true), (.SQLITE_CONSTRAINT_UNIQUE, false, false),
    ])
    func damageConcernsItsPagesAndADiskAllWrites(code: ResultCode, isDamage: Bool, concernsAll: Bool) {
        let error = DatabaseError(resultCode: code)
        #expect(error.isDamage == isDamage && error.concernsAll == concernsAll)
    }

    @Test(arguments: [
        (DatabaseError(resultCode: .SQLITE_IOERR_READ) as any Error, true), (StoreError(code: .damaged, message: "a row"), true),
        (StoreError(code: .unsuitable, message: "a query"), false),
    ])
    func failedReadConcernsTheDatabaseOrTheRow(error: any Error, isFailure: Bool) {
        let monitor = StoreMonitor()
        let reported = monitor.readFailed(error)
        #expect(monitor.failure(oldestRead: nil) == (isFailure ? reported.message : nil))
    }

    /// Root may write every file that there is.
    @Test func fileThatCannotBeWrittenIsReadOnlyInAFolderThatCan() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/database"
        #expect(DatabaseFile.isReadOnly(path))
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        #expect(!DatabaseFile.isReadOnly(path))
    }
}
