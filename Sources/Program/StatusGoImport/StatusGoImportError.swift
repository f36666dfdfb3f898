/// Why a database of status-go can't be read.
package struct StatusGoImportError: Error, Hashable, Sendable {
    /// One line: what is wrong, and how to mend it.
    package let message: String

    init(_ message: String) {
        self.message = message
    }
}
