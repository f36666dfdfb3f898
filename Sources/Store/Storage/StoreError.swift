/// The store can't be used, or a change was not stored. The message states the cause and the remedy.
public struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// The folder or file can't be created.
        case cannotCreate
        /// The database does not exist.
        case missing
        /// The user lacks a permission.
        case permission
        /// Another daemon uses this folder.
        case locked
        /// Created by a later version of this program.
        case newer
        /// Sealed under another identity.
        case otherIdentity
        /// Not a database, or a damaged one.
        case damaged
        /// The address of the store is malformed.
        case invalid
        /// The server's configuration, the file or the schema can't be used.
        case unsuitable
        /// The database has no space for more.
        case full
        /// A temporary failure, such as a busy database or an I/O error.
        case unavailable
    }

    package let code: Code
    package let message: String

    package init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// Same as `message`.
    public var description: String { message }
}
