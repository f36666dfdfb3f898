package import Core
import Foundation

/// The settings for all requests of a client. libcurl takes proxies from the environment, except as ``Destinations-swift.enum`` says.
package struct CurlConfiguration: Sendable, CustomStringConvertible, CustomReflectable {
    /// The certificate authorities that are trusted.
    package enum Trust: Sendable, Hashable {
        /// The system's authorities.
        case system
        /// Only those in this PEM file.
        case file(path: String)
    }

    /// The addresses that may be connected to, and for which URLs.
    package enum Destinations: Sendable, Hashable {
        case all
        /// For URLs that strangers choose: https only, without a proxy, only to public addresses and these networks. Checked at each connection, after
        /// the name's resolution, so that neither a name nor a notation of an address evades it. Handshakes of TLS that could take long are refused.
        case publicAddresses(and: [AddressRange])
    }

    package var trust: Trust
    package var destinations = Destinations.all
    package var credentials: HTTPCredentials
    /// Sent with every request. May hold secrets, so they are not printed.
    package var headers: [(name: String, value: String)]
    /// Further requests wait in a queue, up to their timeout.
    package var maximumConnectionsPerHost: Int
    package var userAgent: String
    /// Whether responses have ``HTTPResponse/certificateEnd``.
    package var readsCertificates = false
    /// A Unix socket to connect to instead of the host of a request; at most 107 bytes. nil connects to the host.
    package var unixSocketPath: String?
    /// The addresses of names, each `host:port:address,address`, in place of the resolver's; asked for each request. For tests of names whose addresses
    /// change.
    package var resolve: (@Sendable () -> [String])?

    package init(
        trust: Trust = .system, credentials: HTTPCredentials = .none, headers: [(name: String, value: String)] = [],
        maximumConnectionsPerHost: Int = 16, userAgent: String = "waku-push"
    ) {
        self.trust = trust
        self.credentials = credentials
        self.headers = headers
        self.maximumConnectionsPerHost = maximumConnectionsPerHost
        self.userAgent = userAgent
    }

    /// Reads a header of the form `Name: value`, without spaces around name and value.
    ///
    /// - Returns: nil without a colon, for a name or value that HTTP does not allow (RFC 9110, section 5), and for a header that describes the
    ///   connection or the length of the body, which libcurl decides.
    package static func header(parsing line: String) -> (name: String, value: String)? {
        guard let colon = line.firstIndex(of: ":") else { return nil }
        let name = line[..<colon].trimmingCharacters(in: .whitespaces)
        let value = line[colon...].dropFirst().trimmingCharacters(in: .whitespaces)
        return CurlHandle.allowsHeader(name: name, value: value) && !ownHeaders.contains(name.lowercased()) ? (name, value) : nil
    }

    private static let ownHeaders: Set = [
        "connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    package var description: String { "trust \(trust), credentials \(credentials), \(headers.count) headers" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
