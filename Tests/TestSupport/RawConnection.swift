import Foundation

/// A client connection that sends only the given bytes.
package final class RawConnection: Sendable {
    private let descriptor: Int32

    /// Connects to a port of 127.0.0.1.
    ///
    /// - Throws: `POSIXError` when the connection fails, for instance because the listener's queue is full.
    package init(port: UInt16, sending text: String = "") throws {
        var address = LoopbackAddress(port: port)
        descriptor = try address.withPointer { try Self.connect(AF_INET, $0, $1) }
        send(text)
    }

    /// Connects to a Unix socket, by a path of at most 107 bytes.
    package init(path: String, sending text: String = "") throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        descriptor = try withUnsafePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try Self.connect(AF_UNIX, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        send(text)
    }

    deinit {
        close(descriptor)
    }

    private static func connect(_ family: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) throws -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0, Glibc.connect(descriptor, address, length) == 0 else {
            let code = POSIXErrorCode(rawValue: errno) ?? .EIO
            if descriptor >= 0 { close(descriptor) }
            throw POSIXError(code)
        }
        return descriptor
    }

    package func send(_ text: String) { send(Array(text.utf8)) }

    /// Sends bytes. They are lost if the peer has closed the connection.
    package func send(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Whether the other side closed the connection. Received bytes are discarded.
    package var isClosed: Bool {
        var bytes: [UInt8] = []
        return receive(into: &bytes)
    }

    /// Adds what has arrived to a text, and returns whether the other side closed the connection.
    package func receive(into text: inout String) -> Bool {
        var bytes: [UInt8] = []
        defer { text += String(decoding: bytes, as: UTF8.self) }
        return receive(into: &bytes)
    }

    /// Adds the bytes that have arrived, and returns whether the other side closed the connection.
    package func receive(into bytes: inout [UInt8]) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count == 0 { return true }
            if count < 0 { return errno != EAGAIN && errno != EINTR }
            bytes += buffer.prefix(count)
        }
    }
}
