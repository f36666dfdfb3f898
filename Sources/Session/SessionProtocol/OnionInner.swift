import Core

/// The content of an onion request: a bencoded list of JSON `{"method","endpoint","headers"}` and, optionally, a body.
package struct OnionInnerRequest: Hashable, Sendable {
    package let method: String
    /// The endpoint without its query string, percent-decoded.
    package let path: String
    package let body: ArraySlice<UInt8>?

    /// The content is not such a list, or its JSON is incomplete: inner code 400.
    package struct Malformed: Error, Hashable, Sendable {}

    package init(parsing plain: [UInt8]) throws(Malformed) {
        guard let parts = try? BencodeValue(parsing: plain[...], maximumValueCount: 3).list, 1...2 ~= parts.count,
            let head = parts[0].bytes, head.count <= RequestBody.maximumByteCount,
            let fields = try? JSONValue(parsing: head).object,
            let method = fields["method"]?.text, let endpoint = fields["endpoint"]?.text
        else { throw Malformed() }
        if let headers = fields["headers"], headers.object == nil { throw Malformed() }
        guard let path = Self.path(of: endpoint) else { throw Malformed() }
        (self.method, self.path) = (method, path)
        guard parts.count == 2 else {
            body = nil
            return
        }
        guard let body = parts[1].bytes else { throw Malformed() }
        self.body = body
    }

    /// nil unless the endpoint begins with a slash and decodes to UTF-8.
    private static func path(of endpoint: String) -> String? {
        guard endpoint.utf8.first == UInt8(ascii: "/") else { return nil }
        return percentDecoded(endpoint.prefix { $0 != "?" && $0 != "#" })
    }
}

/// An endpoint, selected by method and path, for direct requests and for those inside onion requests.
package enum SessionEndpoint: String, Hashable, Sendable, CaseIterable {
    case subscribe = "/subscribe"
    case unsubscribe = "/unsubscribe"
    case onion = "/oxen/v4/lsrpc"
    case health = "/healthz"
    /// The VAPID public key; not served without Web Push.
    case webPushKey = "/web-push"

    package enum Routing: Hashable, Sendable {
        case found(SessionEndpoint)
        /// Status 404.
        case notFound
        /// Status 405.
        case methodNotAllowed
    }

    package var method: String {
        switch self {
        case .health, .webPushKey: "GET"
        case .subscribe, .unsubscribe, .onion: "POST"
        }
    }

    /// - Parameters:
    ///   - method: As sent, in upper case.
    ///   - path: Percent-decoded, without a query string.
    ///   - isInsideOnion: Whether the request is inside an onion request, where the onion endpoint is not available.
    package static func route(method: String, path: String, isInsideOnion: Bool) -> Routing {
        guard let endpoint = SessionEndpoint(rawValue: path), !(isInsideOnion && endpoint == .onion) else { return .notFound }
        return method == endpoint.method ? .found(endpoint) : .methodNotAllowed
    }
}

/// The content of the answer to an onion request: a bencoded list of JSON `{"code","headers"}` and the body.
package struct OnionInnerResponse: Hashable, Sendable {
    /// An HTTP status.
    package let code: Int
    let contentType: String
    /// Seconds.
    var retryAfter: Int?
    package let body: [UInt8]

    /// - Parameter retryAfter: Seconds, with code 503; nil for code 200.
    package static func json(_ text: String, retryAfter: Int? = nil) -> OnionInnerResponse {
        OnionInnerResponse(
            code: retryAfter == nil ? 200 : 503, contentType: "application/json", retryAfter: retryAfter, body: Array(text.utf8))
    }

    /// A response with one line of text.
    package static func failure(_ code: Int, _ text: String) -> OnionInnerResponse {
        OnionInnerResponse(code: code, contentType: "text/plain; charset=utf-8", body: Array(text.utf8))
    }

    func encoded() -> [UInt8] {
        let retry = retryAfter.map { #","retry-after":"\#($0)""# } ?? ""
        return BencodeValue.list([
            .text(#"{"code":\#(code),"headers":{"content-type":"\#(contentType)"\#(retry)}}"#), .bytes(body),
        ]).encoded()
    }
}
