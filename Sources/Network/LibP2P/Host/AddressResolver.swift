import Foundation
import NIOCore
import NIOPosix

/// Resolves the host of a multiaddr to socket addresses.
enum AddressResolver {
    /// The maximum number of addresses of a name that are tried.
    static let limit = 8

    /// - Throws: ``DialError/unresolved``
    static func resolve(_ endpoint: Multiaddr.Endpoint) async throws -> [SocketAddress] {
        switch endpoint.host {
        case .address(let bytes):
            return [try SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: Int(endpoint.port))]
        case .name(let name, let family):
            return try await NIOThreadPool.singleton.runIfActive { try lookUp(name, family: family, port: endpoint.port) }
        }
    }

    private static func lookUp(_ name: String, family: Multiaddr.Endpoint.Family, port: UInt16) throws -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_family =
            switch family {
            case .either: AF_UNSPEC
            case .ip4: AF_INET
            case .ip6: AF_INET6
            }
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, String(port), &hints, &found) == 0 else { throw DialError.unresolved }
        defer { freeaddrinfo(found) }
        var addresses: [SocketAddress] = []
        var next = found
        while let entry = next?.pointee, addresses.count < limit {
            next = entry.ai_next
            guard let raw = entry.ai_addr else { continue }
            switch entry.ai_family {
            case AF_INET:
                addresses.append(raw.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee, host: name) })
            case AF_INET6:
                addresses.append(raw.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee, host: name) })
            default: continue
            }
        }
        guard !addresses.isEmpty else { throw DialError.unresolved }
        return addresses
    }
}

/// Addresses that are known already, for NIO's connector. It tries both families in turn.
struct ResolvedAddresses: Resolver, Sendable {
    let addresses: [SocketAddress]
    let loop: any EventLoop

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        loop.makeSucceededFuture(addresses.filter { $0.protocol == .inet })
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        loop.makeSucceededFuture(addresses.filter { $0.protocol == .inet6 })
    }

    func cancelQueries() {}
}

/// Why an address cannot be dialed or listened on.
public enum DialError: Error, Hashable, Sendable {
    /// The address is not that of a host and a TCP port, or, to listen on, not an IP address.
    case unsupportedAddress
    /// Its host name could not be resolved.
    case unresolved
}
