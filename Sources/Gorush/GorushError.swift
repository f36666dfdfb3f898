/// Why a gorush server can't be used as configured.
public struct GorushError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: String, Hashable, Sendable {
        case notHTTP
        case noHost
        case credentialsInURL
        case queryInURL
        case malformedURL
    }

    public let code: Code
    /// What is wrong, and what to do about it. The URL is not in it: it may hold a password.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
