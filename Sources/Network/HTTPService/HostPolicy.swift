import Core

/// The `Host` headers that a listener accepts: protection from DNS rebinding.
///
/// A web page can make its own host name resolve to a listener of this machine and then read the listener's responses; the browser sends that
/// name as `Host`. So the only accepted names are loopback names and names configured by the operator, which such a page can't have. IP
/// addresses are always accepted.
package struct HostPolicy: Hashable, Sendable {
    private let names: Set<String>

    /// - Parameter names: Accepted besides loopback names; case-insensitive.
    package init(names: some Sequence<String> = [String]()) {
        self.names = Set(names.map(Self.normalized))
    }

    /// - Parameter authority: The value of `Host`. A missing or empty one, as in HTTP/1.0, is permitted: browsers always send it.
    package func permits(_ authority: String?) -> Bool {
        guard let authority, !authority.isEmpty else { return true }
        guard let host = Self.host(of: authority) else { return false }
        if IPAddress(host) != nil { return true }
        let name = Self.normalized(host)
        return name == "localhost" || name.hasSuffix(".localhost") || ["ip6-localhost", "ip6-loopback"].contains(name)
            || names.contains(name)
    }

    /// Whether the text is a valid host name: up to 253 letters, digits, `-`, `_` and `.`, without a port.
    package static func isName(_ text: String) -> Bool {
        (1...253).contains(text.utf8.count) && text.utf8.first != UInt8(ascii: ".")
            && text.utf8.allSatisfy { $0.isLetterOrDigit || "-_.".utf8.contains($0) }
    }

    /// The host without port, an IPv6 address without brackets; nil when the authority is malformed.
    private static func host(of authority: String) -> String? {
        let host: Substring
        let rest: Substring
        if authority.first == "[" {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            rest = authority[authority.index(after: end)...]
            guard host.contains(":"), IPAddress(String(host)) != nil else { return nil }
        } else {
            host = authority.prefix { $0 != ":" }
            rest = authority[host.endIndex...]
            guard isName(String(host)) else { return nil }
        }
        guard rest.isEmpty || rest.first == ":" && rest.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return String(host)
    }

    private static func normalized(_ name: String) -> String {
        let name = name.lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }
}
