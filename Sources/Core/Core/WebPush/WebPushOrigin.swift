/// The origin of a push service: `https://host` or `https://host:port`, in lower case, without the default port. Queues, limits and VAPID tokens are
/// by origin. Never logged: it says which push service a device uses.
public struct WebPushOrigin: Hashable, Sendable, CustomStringConvertible {
    /// Scheme, host and port, as in `aud` of a token.
    public let description: String

    /// Parses the origin of an endpoint. Accepts a subset of URLs that all parsers read alike; nil for all others:
    ///
    /// - `https`, without user info and fragment, of printable ASCII without the characters that RFC 3986 excludes;
    /// - a host of letters, digits, hyphens and dots, or an IPv6 address in brackets;
    /// - a host that ends in a number must be an IPv4 address of four decimal numbers without leading zeros.
    public init?(endpoint: String) {
        let bytes = Array(endpoint.utf8)
        guard bytes.allSatisfy({ (0x21...0x7E).contains($0) && !"\"#<>\\^`{|}".utf8.contains($0) }),
            endpoint.prefix(8).lowercased() == "https://"
        else { return nil }
        let rest = endpoint.dropFirst(8)
        let authority = rest.prefix { $0 != "/" && $0 != "?" }.lowercased()
        let host: Substring
        if authority.first == "[" {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[...end]
            let address = host.dropFirst().dropLast()
            guard address.contains(":"),
                address.utf8.allSatisfy({ Self.isHexDigit($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
            else { return nil }
        } else {
            host = authority.prefix { $0 != ":" }
            guard Self.isHostName(host) else { return nil }
        }
        let port = authority[host.endIndex...]
        guard !port.isEmpty else {
            description = "https://" + host
            return
        }
        guard port.first == ":", (1...5).contains(port.count - 1), port.dropFirst().utf8.allSatisfy(Self.isDigit),
            let number = Int(port.dropFirst()), (1...65_535).contains(number)
        else { return nil }
        description = number == 443 ? "https://" + host : "https://\(host):\(number)"
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
    private static func isHexDigit(_ byte: UInt8) -> Bool { isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte) }

    /// - Parameter host: in lower case.
    private static func isHostName(_ host: Substring) -> Bool {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...253).contains(host.utf8.count),
            labels.allSatisfy({ label in
                (1...63).contains(label.utf8.count)
                    && label.utf8.allSatisfy {
                        isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || $0 == UInt8(ascii: "-")
                    }
            }), let last = labels.last
        else { return false }
        // Parsers read such hosts as IPv4 addresses, some of them in octal or as one number.
        guard last.utf8.allSatisfy(isDigit) || last.hasPrefix("0x") else { return true }
        return labels.count == 4
            && labels.allSatisfy { label in Int(label).map { (0...255).contains($0) && String($0) == label } ?? false }
    }
}
