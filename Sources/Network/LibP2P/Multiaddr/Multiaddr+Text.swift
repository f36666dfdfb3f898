import Core
import Foundation

extension Multiaddr {
    /// Parses the text form, such as `/dns4/node.example/tcp/60000`. One trailing slash is accepted.
    public init(_ text: some StringProtocol) throws(MultiaddrError) {
        guard text.utf8.count <= 2 * Self.byteLimit else { throw .malformed }
        var parts = String(text).components(separatedBy: "/")[...]
        guard parts.popFirst() == "" else { throw .malformed }
        // One trailing slash is accepted.
        if parts.last == "" { parts.removeLast() }
        var components: [Component] = []
        while let name = parts.popFirst() {
            guard Component.isKnown(name) else { throw .unsupported(name) }
            guard let value = parts.popFirst() else { throw .invalid(name) }
            guard let component = Component(name, value) else { throw .invalid("\(name)/\(value)") }
            components.append(component)
        }
        try self.init(components)
    }

    /// The text form. Peer ids are written in base58btc, `ipfs` as `p2p`.
    public var description: String {
        components.map(\.description).joined()
    }
}

extension Multiaddr.Component: CustomStringConvertible {
    static func isKnown(_ name: String) -> Bool {
        ["ip4", "ip6", "dns", "dns4", "dns6", "tcp", "p2p", "ipfs"].contains(name)
    }

    init?(_ name: String, _ value: String) {
        switch name {
        case "ip4":
            guard let bytes = Self.address(value, AF_INET, byteCount: 4) else { return nil }
            self = .ip4(bytes)
        case "ip6":
            guard let bytes = Self.address(value, AF_INET6, byteCount: 16) else { return nil }
            self = .ip6(bytes)
        case "dns": self = .dns(value)
        case "dns4": self = .dns4(value)
        case "dns6": self = .dns6(value)
        case "tcp":
            guard let first = value.utf8.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first), let port = UInt16(value) else {
                return nil
            }
            self = .tcp(port)
        case "p2p", "ipfs":
            guard let peer = try? PeerID(value) else { return nil }
            self = .p2p(peer)
        default: return nil
        }
    }

    /// The component with its name: `/tcp/60000`.
    public var description: String {
        switch self {
        case .ip4(let bytes): "/ip4/" + IPAddress.text(of: bytes)
        case .ip6(let bytes): "/ip6/" + IPAddress.text(of: bytes)
        case .dns(let name): "/dns/" + name
        case .dns4(let name): "/dns4/" + name
        case .dns6(let name): "/dns6/" + name
        case .tcp(let port): "/tcp/\(port)"
        case .p2p(let peer): "/p2p/\(peer)"
        }
    }

    private static func address(_ text: String, _ family: Int32, byteCount: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: byteCount)
        return inet_pton(family, text, &bytes) == 1 ? bytes : nil
    }
}
