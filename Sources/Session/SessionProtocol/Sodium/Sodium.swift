import CSodium
package import Core

/// libsodium, opened at run time. Whoever has a value can call it: there is no other way to its functions.
///
/// The Debian package `libsodium23` is needed by Session's half alone, so that the program does not link to it. It is opened once a process
/// and never closed.
package struct Sodium: Sendable {
    package static let soname = "libsodium.so.23"
    package static let debianPackage = "libsodium23"

    private static let opened = Result { () throws(OptionalLibraryError) in try Sodium(opening: soname) }

    /// Filled before anyone else can see it, read-only from then on and never freed: safe to share.
    nonisolated(unsafe) private let table: UnsafePointer<csodium>
    var functions: csodium { table.pointee }

    /// The library, opened by the first call.
    ///
    /// - Throws: ``OptionalLibraryError`` when it is not installed, or lacks a function.
    package static func load() throws(OptionalLibraryError) -> Sodium {
        try opened.get()
    }

    init(opening soname: String) throws(OptionalLibraryError) {
        var functions = csodium()
        if let reason = csodium_open(soname, &functions) {
            throw OptionalLibraryError(library: soname, debianPackage: Self.debianPackage, reason: String(cString: reason))
        }
        // 0: initialized by this call. 1: it was before.
        guard functions.sodium_init() >= 0 else {
            throw OptionalLibraryError(library: soname, debianPackage: Self.debianPackage, reason: "sodium_init failed")
        }
        let table = UnsafeMutablePointer<csodium>.allocate(capacity: 1)
        table.initialize(to: functions)
        self.table = UnsafePointer(table)
    }
}
