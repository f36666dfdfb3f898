/// Why a gorush server can't be used as configured.
package struct GorushError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: String, Hashable, Sendable {
        case notHTTP
        case noHost
        case credentialsInURL
        case queryInURL
        case malformedURL
    }

    package let code: Code
    /// What is wrong, and what to do about it. The URL is not in it: it may hold a password.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
