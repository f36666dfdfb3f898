/// Why the store can't be used, or did not keep something. The message says what is wrong and how to mend it.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// The folder or file can't be made.
        case cannotCreate
        /// There is no database.
        case missing
        /// Not allowed to use it.
        case permission
        /// Another daemon uses this folder.
        case locked
        /// Made by a later version of this program.
        case newer
        /// Sealed under another identity.
        case otherIdentity
        /// Not a database, or a damaged one.
        case damaged
        /// The address of the store is not one.
        case invalid
        /// The server is set up in a way that can't be used.
        case unsuitable
        /// Did not work now: disk full, busy, I/O error. May work later.
        case unavailable
    }

    package let code: Code
    package let message: String

    package init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
