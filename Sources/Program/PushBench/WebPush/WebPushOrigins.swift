import CTLS
import Foundation
import WakuPushCommands

/// Push services of ``WebPushBench`` in a process of their own: TLS servers on loopback addresses that answer every post with 201. Each connection has a
/// thread, which is the least work for so few.
struct WebPushOrigins: Sendable {
    /// Written by the benchmark's process: `server.pem`, `server.key`.
    let folder: String
    let count: Int

    /// The address of the origin with this number: an address each, as push services have.
    static func address(_ number: Int) -> String { "127.0.0.\(number + 1)" }

    /// Prints the ports on one line, then serves until the process is killed.
    func run() async throws {
        let context = try TLSContext(certificate: folder + "/server.pem", key: folder + "/server.key")
        var ports: [String] = []
        for number in 0..<count {
            let (listener, port) = try FreePort.bind(Self.address(number))
            guard listen(listener, 128) == 0 else {
                throw BenchError(code: .unavailable, message: "can't listen on \(Self.address(number))")
            }
            ports.append(String(port))
            Thread.detachNewThread {
                while true {
                    let connection = accept(listener, nil, nil)
                    if connection >= 0 { Thread.detachNewThread { context.serve(connection) } }
                }
            }
        }
        Output.line("ports \(ports.joined(separator: " "))")
        try await Task.sleep(for: .seconds(24 * 3600))
    }
}

private final class TLSContext: Sendable {
    private static let answer = Array("HTTP/1.1 201 Created\r\nTTL: 60\r\nContent-Length: 0\r\n\r\n".utf8)
    /// Configured by `init` only; libssl locks what connections change in it.
    private nonisolated(unsafe) let context: OpaquePointer

    init(certificate: String, key: String) throws {
        guard let context = SSL_CTX_new(TLS_server_method()), SSL_CTX_use_certificate_chain_file(context, certificate) == 1,
            SSL_CTX_use_PrivateKey_file(context, key, X509_FILETYPE_PEM) == 1
        else { throw BenchError(code: .unavailable, message: "the certificate of the push services can't be used") }
        self.context = context
    }

    /// Answers requests until the connection ends.
    func serve(_ connection: Int32) {
        var on: Int32 = 1
        setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        defer { close(connection) }
        guard let tls = SSL_new(context) else { return }
        defer { SSL_free(tls) }
        guard SSL_set_fd(tls, connection) == 1, SSL_accept(tls) == 1 else { return }
        var buffer = [UInt8](repeating: 0, count: 32_768)
        var count = 0
        while true {
            let read = SSL_read(tls, &buffer[count], Int32(buffer.count - count))
            guard read > 0 else { return }
            count += Int(read)
            while let end = Self.requestEnd(buffer, count) {
                buffer.withUnsafeMutableBytes { bytes in
                    guard let start = bytes.baseAddress else { return }
                    memmove(start, start + end, count - end)
                }
                count -= end
                guard SSL_write(tls, Self.answer, Int32(Self.answer.count)) > 0 else { return }
            }
        }
    }

    /// The length of the first request; nil while it is not complete.
    private static func requestEnd(_ buffer: [UInt8], _ count: Int) -> Int? {
        buffer.withUnsafeBytes { whole in
            let bytes = UnsafeRawBufferPointer(rebasing: whole[..<count])
            guard let head = position(of: "\r\n\r\n", in: bytes) else { return nil }
            let headLength = head + 4
            let name: StaticString = "Content-Length: "
            guard let field = position(of: name, in: UnsafeRawBufferPointer(rebasing: bytes[..<headLength])) else { return headLength }
            let digits = bytes[(field + name.utf8CodeUnitCount)...].prefix { (0x30...0x39).contains($0) }
            let length = headLength + digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            return length <= count ? length : nil
        }
    }

    private static func position(of text: StaticString, in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let start = bytes.baseAddress else { return nil }
        let length = text.utf8CodeUnitCount
        var next = 0
        while next + length <= bytes.count, let found = memchr(start + next, Int32(text.utf8Start.pointee), bytes.count - length + 1 - next)
        {
            next = UnsafeRawPointer(found) - start
            if memcmp(start + next, text.utf8Start, length) == 0 { return next }
            next += 1
        }
        return nil
    }
}
