/// The settings for all requests of a client. libcurl takes proxies from the environment.
public struct CurlConfiguration: Sendable, CustomStringConvertible, CustomReflectable {
    /// The certificate authorities that are trusted.
    public enum Trust: Sendable, Hashable {
        /// The system's authorities.
        case system
        /// Only those in this PEM file.
        case file(path: String)
    }

    public var trust: Trust
    public var credentials: HTTPCredentials
    /// Sent with every request. May hold secrets, so they are not printed.
    public var headers: [(name: String, value: String)]
    /// Further requests wait in a queue, up to their timeout.
    public var maximumConnectionsPerHost: Int
    public var userAgent: String
    /// A Unix socket to connect to instead of the host of a request; at most 107 bytes. nil connects to the host.
    public var unixSocketPath: String?

    public init(
        trust: Trust = .system, credentials: HTTPCredentials = .none, headers: [(name: String, value: String)] = [],
        maximumConnectionsPerHost: Int = 16, userAgent: String = "waku-push"
    ) {
        self.trust = trust
        self.credentials = credentials
        self.headers = headers
        self.maximumConnectionsPerHost = maximumConnectionsPerHost
        self.userAgent = userAgent
    }

    public var description: String { "trust \(trust), credentials \(credentials), \(headers.count) headers" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
