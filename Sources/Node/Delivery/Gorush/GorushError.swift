/// The reason why a gorush server can't be used as configured.
package struct GorushError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: String, Hashable, Sendable {
        case notHTTP
        case noHost
        case credentialsInURL
        case queryInURL
        case malformedURL
    }

    package let code: Code
    /// The problem and its remedy. Does not contain the URL, which may have a password.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
