/// What all requests of a client have in common. Proxies come from the environment, as libcurl reads it.
public struct CurlConfiguration: Sendable, CustomStringConvertible, CustomReflectable {
    /// Whose certificates are trusted.
    public enum Trust: Sendable, Hashable {
        /// The authorities that the system trusts.
        case system
        /// The authorities in this PEM file, and none else.
        case file(path: String)
    }

    public var trust: Trust
    public var credentials: HTTPCredentials
    /// Sent with every request. They may hold secrets, and are not printed.
    public var headers: [(name: String, value: String)]
    /// Requests above it wait in line, up to their time-out.
    public var maximumConnectionsPerHost: Int
    public var userAgent: String
    /// A Unix socket to connect to, whatever the host of a request is; at most 107 bytes. nil: the host.
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
