/// The address of a node, optionally with its peer id: `/ip4/192.0.2.1/tcp/60000/p2p/16Uiu2HA…`, multiformats/multiaddr.
///
/// Supports the components for TCP: `ip4`, `ip6`, `dns`, `dns4`, `dns6`, `tcp` and `p2p` (formerly `ipfs`). Addresses of other transports are
/// refused.
public struct Multiaddr: Hashable, Sendable, CustomStringConvertible {
    /// One part of an address: a protocol with its value.
    public enum Component: Hashable, Sendable {
        /// 4 bytes.
        case ip4([UInt8])
        /// 16 bytes.
        case ip6([UInt8])
        /// A host name to resolve to addresses of either family.
        case dns(String)
        /// A host name to resolve to IPv4 addresses.
        case dns4(String)
        /// A host name to resolve to IPv6 addresses.
        case dns6(String)
        /// A TCP port.
        case tcp(UInt16)
        /// The id of the node at the address.
        case p2p(PeerID)
    }

    /// Longer than any address in use.
    static let byteLimit = 512

    /// The parts of the address, at least one.
    public let components: [Component]

    /// - Throws: ``MultiaddrError/malformed`` for no components, or for components that cannot be encoded and decoded again.
    public init(_ components: [Component]) throws(MultiaddrError) {
        guard !components.isEmpty else { throw .malformed }
        for component in components where !component.isValid { throw .malformed }
        self.components = components
        guard encoded().count <= Self.byteLimit else { throw .malformed }
    }

    /// The peer id, if the address ends in `/p2p/…`.
    public var peerID: PeerID? {
        guard case .p2p(let peer) = components.last else { return nil }
        return peer
    }

    /// The address with this peer id at its end, instead of another one.
    public func with(_ peer: PeerID) -> Multiaddr {
        Multiaddr(trusted: place + [.p2p(peer)])
    }

    /// The address without a peer id at its end.
    public var withoutPeerID: Multiaddr {
        Multiaddr(trusted: place)
    }

    private var place: [Component] {
        if case .p2p = components.last { components.dropLast() } else { components }
    }

    init(trusted components: [Component]) {
        self.components = components
    }

    /// The host and port to listen on or to connect to; nil for an address with other components before `/p2p/…`.
    public var endpoint: Endpoint? {
        guard place.count == 2, case .tcp(let port) = place[1] else { return nil }
        switch place[0] {
        case .ip4(let bytes), .ip6(let bytes): return Endpoint(host: .address(bytes), port: port)
        case .dns(let name): return Endpoint(host: .name(name, .either), port: port)
        case .dns4(let name): return Endpoint(host: .name(name, .ip4), port: port)
        case .dns6(let name): return Endpoint(host: .name(name, .ip6), port: port)
        case .tcp, .p2p: return nil
        }
    }

    /// A host and a TCP port.
    public struct Endpoint: Hashable, Sendable {
        /// The families of addresses that a host name may resolve to.
        public enum Family: Sendable {
            /// IPv4 or IPv6.
            case either
            /// IPv4 only.
            case ip4
            /// IPv6 only.
            case ip6
        }

        /// An IP address, or a name to resolve.
        public enum Host: Hashable, Sendable {
            /// 4 or 16 bytes.
            case address([UInt8])
            /// A host name, and the families of addresses to use.
            case name(String, Family)
        }

        /// The host.
        public let host: Host
        /// The TCP port.
        public let port: UInt16
    }
}

/// Why an address is invalid or not supported.
public enum MultiaddrError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The whole can't be read: no leading slash, too long, empty, or truncated.
    case malformed
    /// A component whose value is missing or wrong, as text: `tcp/70000`.
    case invalid(String)
    /// A component that is not supported, by name or code.
    case unsupported(String)

    public var description: String {
        switch self {
        case .malformed: "not a multiaddr: expected /ip4/ADDRESS/tcp/PORT/p2p/PEER, with ip6 or dns4 alike"
        case .invalid(let component): "/\(component) is not valid in a multiaddr"
        case .unsupported(let component): "/\(component) is not supported in a multiaddr"
        }
    }
}

extension Multiaddr.Component {
    /// The maximum length of a host name in bytes, RFC 1035.
    private static let nameLimit = 253

    var isValid: Bool {
        switch self {
        case .ip4(let bytes): bytes.count == 4
        case .ip6(let bytes): bytes.count == 16
        case .dns(let name), .dns4(let name), .dns6(let name):
            // Refuse characters that the text form cannot contain or that a resolver would interpret.
            (1...Self.nameLimit).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "/") }
        case .tcp, .p2p: true
        }
    }
}
