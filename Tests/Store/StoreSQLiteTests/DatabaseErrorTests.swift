import GRDB
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
}
