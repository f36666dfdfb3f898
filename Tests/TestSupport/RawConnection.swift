import Foundation

/// A client connection that sends only the given bytes.
package final class RawConnection: Sendable {
    private let descriptor: Int32

    /// Connects to a port of 127.0.0.1.
    ///
    /// - Throws: `POSIXError` when the connection fails, for instance because the listener's queue is full.
    package init(port: UInt16, sending text: String = "") throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        descriptor = try Self.connect(AF_INET, &address)
        send(text)
    }

    /// Connects to a Unix socket, by a path of at most 107 bytes.
    package init(path: String, sending text: String = "") throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        descriptor = try Self.connect(AF_UNIX, &address)
        send(text)
    }

    deinit {
        close(descriptor)
    }

    private static func connect<Address>(_ family: Int32, _ address: inout Address) throws -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
        guard descriptor >= 0, result == 0 else {
            let code = POSIXErrorCode(rawValue: errno) ?? .EIO
            if descriptor >= 0 { close(descriptor) }
            throw POSIXError(code)
        }
        return descriptor
    }

    /// Sends bytes. They are lost if the peer has closed the connection.
    package func send(_ text: String) {
        guard !text.isEmpty else { return }
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Whether the other side closed the connection. Received bytes are discarded.
    package var isClosed: Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count == 0 { return true }
            if count < 0 { return errno != EAGAIN && errno != EINTR }
        }
    }
}
