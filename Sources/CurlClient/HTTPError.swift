/// Why there is no response. Neither URL, credentials nor bodies are in it.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// The host's name, or the proxy's, has no address.
        case resolve
        /// Nothing accepted the connection.
        case connect
        /// ``HTTPRequest/connectTimeout`` or ``HTTPRequest/timeout`` passed.
        case timeout
        /// No trust in the server's certificate, or no handshake.
        case tls
        /// Body or headers are longer than allowed.
        case tooLarge
        /// The connection broke before the response was whole.
        case interrupted
        /// The task was cancelled, or the client was shut down.
        case cancelled
        /// Not an absolute http or https URL without userinfo.
        case badURL
        /// Everything else, such as a reply that is not HTTP.
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
