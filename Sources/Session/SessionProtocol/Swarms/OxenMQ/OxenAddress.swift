import Core
import Foundation
import NIOCore
import WakuCrypto

/// The address of an oxenmq server.
///
///     ipc:///path      tcp://host:port      curve://host:port/<64 hex digits of its X25519 key>
package struct OxenAddress: Hashable, Sendable {
    /// `ipc:///path` or `tcp://host:port`.
    package let endpoint: String
    /// The server's CURVE key, 32 bytes; nil for an unencrypted connection.
    package let serverKey: [UInt8]?

    package init(endpoint: String, serverKey: [UInt8]?) {
        self.endpoint = endpoint
        self.serverKey = serverKey
    }

    /// nil unless the text has one of the three forms.
    package init?(_ text: String) {
        guard text.utf8.allSatisfy({ 0x21...0x7E ~= $0 }), text.utf8.count <= 300 else { return nil }
        if text.hasPrefix("ipc://") {
            // Absolute paths only; abstract socket names of libzmq (@…) are refused.
            guard text.dropFirst(6).hasPrefix("/"), text.count > 7 else { return nil }
            self.init(endpoint: text, serverKey: nil)
        } else if text.hasPrefix("tcp://") {
            guard Self.hostAndPort(text.dropFirst(6)) != nil else { return nil }
            self.init(endpoint: text, serverKey: nil)
        } else if text.hasPrefix("curve://") {
            let parts = text.dropFirst(8).split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, Self.hostAndPort(parts[0]) != nil, let key = bytes(hex: parts[1]), key.count == 32 else { return nil }
            self.init(endpoint: "tcp://\(parts[0])", serverKey: key)
        } else {
            return nil
        }
    }

    /// nil unless the text is a host and a port. An IPv6 address is in brackets.
    private static func hostAndPort(_ text: Substring) -> (host: Substring, port: UInt16)? {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else { return nil }
        let host = text[..<colon]
        if host.hasPrefix("[") { return host.hasSuffix("]") && host.count > 3 ? (host.dropFirst().dropLast(), port) : nil }
        return !host.isEmpty && host.utf8.allSatisfy { $0.isLetterOrDigit || ".-".utf8.contains($0) } ? (host, port) : nil
    }

    // MARK: Connecting

    /// Host and port of a TCP address; an IPv6 address has no brackets.
    private var hostAndPort: (host: String, port: Int)? {
        guard endpoint.hasPrefix("tcp://"), let (host, port) = Self.hostAndPort(endpoint.dropFirst(6)) else { return nil }
        return (String(host), Int(port))
    }

    /// Whether the host is a name.
    var isNamed: Bool { hostAndPort.map { IPAddress($0.host) == nil } ?? false }

    /// The socket's address: of a name the first of IPv4, else the first of IPv6. Blocks if the host is a name.
    func resolve() throws(OxenMQClient.Reason) -> SocketAddress {
        do {
            if endpoint.hasPrefix("ipc://") { return try SocketAddress(unixDomainSocketPath: String(endpoint.dropFirst(6))) }
            guard let (host, port) = hostAndPort else { throw OxenMQClient.Reason.failed("invalid address") }
            if !isNamed { return try SocketAddress(ipAddress: host, port: port) }
            for family in [AF_INET, AF_INET6] {
                var hints = addrinfo()
                (hints.ai_family, hints.ai_socktype) = (family, Int32(SOCK_STREAM.rawValue))
                var found: UnsafeMutablePointer<addrinfo>?
                guard getaddrinfo(host, nil, &hints, &found) == 0, let entry = found?.pointee else { continue }
                defer { freeaddrinfo(found) }
                let bytes = UnsafeRawBufferPointer(start: entry.ai_addr, count: Int(entry.ai_addrlen))
                if let address = IPAddress(socketAddress: bytes) {
                    return try SocketAddress(packedIPAddress: ByteBuffer(bytes: address.bytes), port: port)
                }
            }
            throw OxenMQClient.Reason.failed("unknown host")
        } catch {
            throw error as? OxenMQClient.Reason ?? .failed("invalid address")
        }
    }
}
