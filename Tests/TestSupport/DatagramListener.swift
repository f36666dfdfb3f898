import Foundation

/// A Unix datagram socket that receives datagrams.
package final class DatagramListener: Sendable {
    /// The address in the format of `NOTIFY_SOCKET`.
    package let address: String
    private let handle: Int32

    /// - Parameter address: a path, or an abstract name that starts with `@`.
    package init(_ address: String) throws {
        self.address = address
        handle = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = Array(address.utf8)
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count + (address.hasPrefix("@") ? 0 : 1))
        let status = withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(handle, $0, length) }
        }
        guard status == 0 else { throw POSIXError(.EADDRINUSE) }
    }

    deinit {
        close(handle)
    }

    /// The next received datagram; nil when there is none.
    package func next() -> String? {
        var buffer = [UInt8](repeating: 0, count: 8_192)
        let count = recv(handle, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
    }
}
