/// Why there is no response. Contains neither URL, credentials nor bodies.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// The name of the host or proxy could not be resolved.
        case resolve
        /// Nothing accepted the connection.
        case connect
        /// ``HTTPRequest/connectTimeout`` or ``HTTPRequest/timeout`` passed.
        case timeout
        /// The server's certificate is not trusted, or the handshake failed.
        case tls
        /// Body or headers are longer than allowed.
        case tooLarge
        /// The connection was lost before the response was complete.
        case interrupted
        /// The task was cancelled, or the client was shut down.
        case cancelled
        /// Not an absolute http or https URL without userinfo.
        case badURL
        /// Any other failure, such as a reply that is not HTTP.
        case other
    }

    public let code: Code
    /// One lower-case phrase for a log line.
    public let message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
