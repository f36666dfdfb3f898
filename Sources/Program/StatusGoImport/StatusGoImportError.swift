/// Why a database of status-go can't be read.
package struct StatusGoImportError: Error, Hashable, Sendable {
    /// One line with the problem and its remedy.
    package let message: String

    init(_ message: String) {
        self.message = message
    }
}
