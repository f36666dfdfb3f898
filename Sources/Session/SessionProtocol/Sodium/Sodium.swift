import CSodium
package import Core

/// libsodium, loaded at run time. A value of this type is the only way to call its functions.
///
/// Only the Session server needs the Debian package `libsodium23`, so the program does not link to it. It is opened once per process and never
/// closed.
package struct Sodium: Sendable {
    package static let soname = CSODIUM_SONAME
    package static let debianPackage = "libsodium23"

    private static let opened = Result { () throws(OptionalLibraryError) in try Sodium(opening: soname) }

    /// Filled before it is published, read-only afterwards and never freed: safe to share between threads.
    nonisolated(unsafe) private let table: UnsafePointer<csodium>
    var functions: csodium { table.pointee }

    /// Returns the library; the first call opens it.
    ///
    /// - Throws: ``OptionalLibraryError`` if the library is not installed, or lacks a function.
    package static func load() throws(OptionalLibraryError) -> Sodium {
        try opened.get()
    }

    init(opening soname: String) throws(OptionalLibraryError) {
        var functions = csodium()
        if let reason = csodium_open(soname, &functions) {
            throw OptionalLibraryError(library: soname, debianPackage: Self.debianPackage, reason: String(cString: reason))
        }
        // 0: initialized by this call; 1: already initialized.
        guard functions.sodium_init() >= 0 else {
            throw OptionalLibraryError(library: soname, debianPackage: Self.debianPackage, reason: "sodium_init failed")
        }
        let table = UnsafeMutablePointer<csodium>.allocate(capacity: 1)
        table.initialize(to: functions)
        self.table = UnsafePointer(table)
    }
}
