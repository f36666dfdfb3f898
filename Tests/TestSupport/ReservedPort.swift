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
        self.descriptor = descriptor
        number = try LoopbackAddress.bindFreePort(descriptor)
        guard transport == .udp else { return }
        // A socket that is connected to another port refuses datagrams from everywhere else.
        var other = LoopbackAddress(port: 9)
        guard other.withPointer({ connect(descriptor, $0, $1) }) == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
    }

    deinit {
        close(descriptor)
    }
}
