package import CPostgres
package import Core

/// libpq, loaded at run time: a value exists only if loading succeeded.
package struct PostgreSQLLibrary: Sendable {
    package static let soname = "libpq.so.5"
    package static let debianPackage = "libpq5"
    /// Whether a version of the library has pipeline mode.
    static func supports(_ version: Int32) -> Bool { version >= 14_00_00 }

    private static let opened = Result { () throws(OptionalLibraryError) in try PostgreSQLLibrary(opening: soname) }

    /// Filled before it is shared, read-only from then on and never freed: safe to share.
    package nonisolated(unsafe) let table: UnsafePointer<cpostgres>

    /// The library, loaded by the first call.
    ///
    /// - Throws: ``OptionalLibraryError`` when it is not installed, or lacks a function.
    package static func load() throws(OptionalLibraryError) -> PostgreSQLLibrary {
        try opened.get()
    }

    init(opening soname: String) throws(OptionalLibraryError) {
        var functions = cpostgres()
        func failure(_ reason: String) -> OptionalLibraryError {
            OptionalLibraryError(library: soname, debianPackage: Self.debianPackage, reason: reason)
        }
        if let reason = cpostgres_open(soname, &functions) { throw failure(String(cString: reason)) }
        guard Self.supports(functions.PQlibVersion()) else { throw failure("it is older than version 14") }
        let table = UnsafeMutablePointer<cpostgres>.allocate(capacity: 1)
        table.initialize(to: functions)
        self.table = UnsafePointer(table)
    }
}
