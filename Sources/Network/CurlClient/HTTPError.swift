/// Why there is no response. Contains neither URL, credentials nor bodies.
package struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: String, Hashable, Sendable, CaseIterable {
        /// The name of the host or proxy could not be resolved.
        case resolve
        /// Nothing accepted the connection.
        case connect
        /// The host has no address that ``CurlConfiguration/Destinations-swift.enum`` allows, and nothing accepted the connection at another.
        case refusedAddress
        /// Too many connections were made to the address lately: see ``ConnectionPace``.
        case busyAddress
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

    package let code: Code
    /// One lower-case phrase for a log line.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
