/// A request. Prints only its method and size: URL, headers and body may contain secrets.
package struct HTTPRequest: Sendable, CustomStringConvertible, CustomReflectable {
    package static let defaultMaximumResponseByteCount = 1_048_576

    /// In upper case.
    package var method: String
    /// An absolute http or https URL without userinfo: credentials belong in the client's configuration.
    package var url: String
    /// Sent after the client's own.
    package var headers: [(name: String, value: String)]
    /// nil sends none; `[]` sends a length of zero.
    package var body: [UInt8]?
    /// Limit for name resolution, connection and TLS handshake together.
    package var connectTimeout: Duration
    /// Limit for the whole request, waiting in the queue included.
    package var timeout: Duration
    /// A longer body ends the transfer.
    package var maximumResponseByteCount: Int
    /// Whether a body that is longer, breaks off, or does not end within ``timeout`` is cut, for requests whose status matters more than the body;
    /// otherwise it is an error such as ``HTTPError/Code/tooLarge``.
    package var cutsLongResponses: Bool
    /// Whether the origin is known to have answered before, maybe another process. Its new connections then have an allowance of their own: see
    /// ``ConnectionPace``.
    package var hasAnswered = false
    /// Whether libcurl may send the body again when a reused connection ends before the response, as a server's idle time-out does; the server may have
    /// processed the request. Otherwise that is an error, ``HTTPError/Code/interrupted``, and the request is sent by HTTP/1.1: in HTTP/2, a server that
    /// ends a connection refuses the requests that it has not begun, which have to be sent again.
    package var isRepeatable = true

    package init(
        method: String = "GET", url: String, headers: [(name: String, value: String)] = [], body: [UInt8]? = nil,
        connectTimeout: Duration = .seconds(2), timeout: Duration = .seconds(5),
        maximumResponseByteCount: Int = defaultMaximumResponseByteCount, cutsLongResponses: Bool = false
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.connectTimeout = connectTimeout
        self.timeout = timeout
        self.maximumResponseByteCount = maximumResponseByteCount
        self.cutsLongResponses = cutsLongResponses
    }

    /// Scheme, host and port as written. Requests of the same origin share connections.
    var origin: Substring {
        let authority = url.firstRange(of: "://").map(\.upperBound) ?? url.startIndex
        return url[..<(url[authority...].firstIndex { "/?#".contains($0) } ?? url.endIndex)]
    }

    package var description: String { "\(method), \(body?.count ?? 0) bytes" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
