import Foundation

/// A port of 127.0.0.1 that refuses connections, as if no server listened, and that no other socket can use while
/// this object exists.
package final class ReservedPort: Sendable {
    package enum Transport: Sendable {
        case tcp, udp
    }

    package let number: UInt16
    private let descriptor: Int32

    package init(_ transport: Transport = .tcp) throws {
        let descriptor = socket(AF_INET, Int32((transport == .tcp ? SOCK_STREAM : SOCK_DGRAM).rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        self.descriptor = descriptor
        number = UInt16(bigEndian: address.sin_port)
        guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        guard transport == .udp else { return }
        // A socket that is connected to another port refuses datagrams from everywhere else.
        var other = Self.loopback(port: 9)
        let isConnected = withUnsafePointer(to: &other) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, length) == 0 }
        }
        guard isConnected else { throw POSIXError(.EADDRNOTAVAIL) }
    }

    deinit {
        close(descriptor)
    }

    private static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }
}
