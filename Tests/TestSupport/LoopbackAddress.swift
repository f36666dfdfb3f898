package import Foundation

/// An address of IPv4 for the C functions of sockets.
package struct LoopbackAddress {
    private var name = sockaddr_in()

    /// - Parameter host: 127.0.0.1, or another address of the loopback interface.
    package init(host: UInt32 = 0x7f00_0001, port: UInt16 = 0) {
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        name.sin_addr.s_addr = host.bigEndian
    }

    package var port: UInt16 { UInt16(bigEndian: name.sin_port) }

    @discardableResult
    package mutating func withPointer<R>(_ body: (UnsafeMutablePointer<sockaddr>, inout socklen_t) throws -> R) rethrows -> R {
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return try withUnsafeMutablePointer(to: &name) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body($0, &length) }
        }
    }

    /// Binds a socket to a free port of 127.0.0.1, and returns the port.
    package static func bindFreePort(_ descriptor: Int32) throws -> UInt16 {
        var address = LoopbackAddress()
        guard address.withPointer({ bind(descriptor, $0, $1) == 0 && getsockname(descriptor, $0, &$1) == 0 }) else {
            throw POSIXError(.EADDRNOTAVAIL)
        }
        return address.port
    }
}
