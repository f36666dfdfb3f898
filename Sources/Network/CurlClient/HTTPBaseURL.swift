import CCurl

/// The base URL of a service: scheme, host, port and an optional path prefix.
///
/// Parsed by libcurl, so that validation and connection interpret the URL alike.
package struct HTTPBaseURL: Hashable, Sendable, CustomStringConvertible {
    /// Why a text is not a base URL. Does not contain the text, which may hold a password.
    package enum Problem: Error, Hashable, Sendable {
        case notHTTP
        case noHost
        /// There is a user or password before the host.
        case userinfo
        /// There is a query or fragment after the path.
        case query
        case malformed
    }

    /// Without trailing slashes.
    private let text: String

    package init(parsing text: String) throws(Problem) {
        let scheme = text.prefix { $0 != ":" }.lowercased()
        guard scheme == "http" || scheme == "https", text.dropFirst(scheme.count).hasPrefix("://") else { throw .notHTTP }
        // libcurl would skip any number of slashes before the host.
        let rest = text.dropFirst(scheme.count + 3)
        guard let first = rest.utf8.first, !"/?#:".utf8.contains(first) else { throw .noHost }
        // libcurl's strings end at a NUL.
        guard !text.utf8.contains(0), let url = curl_url() else { throw .malformed }
        defer { curl_url_cleanup(url) }
        guard curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK else { throw .malformed }
        guard Self.part(CURLUPART_USER, of: url) == nil, Self.part(CURLUPART_PASSWORD, of: url) == nil else { throw .userinfo }
        guard Self.part(CURLUPART_QUERY, of: url) == nil, Self.part(CURLUPART_FRAGMENT, of: url) == nil, !text.contains("?"),
            !text.contains("#")
        else { throw .query }
        guard let whole = Self.part(CURLUPART_URL, of: url) else { throw .malformed }
        var trimmed = Substring(whole)
        while trimmed.last == "/" { trimmed.removeLast() }
        self.text = String(trimmed)
    }

    /// - Parameter path: Starts with a slash and is percent-encoded.
    package func appending(path: String) -> String {
        text + path
    }

    package var description: String { text }

    private static func part(_ part: CURLUPart, of url: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(url, part, &text, 0) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
