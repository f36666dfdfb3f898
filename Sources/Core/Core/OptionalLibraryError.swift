/// A system library that is opened at run time is missing, or is not the version that this program knows.
package struct OptionalLibraryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name it was opened by: `libsodium.so.23`.
    package let library: String
    /// The Debian package that contains it: `libsodium23`.
    package let debianPackage: String
    /// The error message of the dynamic linker or the library.
    package let reason: String

    package init(library: String, debianPackage: String, reason: String) {
        self.library = library
        self.debianPackage = debianPackage
        self.reason = reason
    }

    /// One line that includes the remedy.
    package var description: String { "\(library) cannot be used: install \(debianPackage) (\(reason))" }
}
