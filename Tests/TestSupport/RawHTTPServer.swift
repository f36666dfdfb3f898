import Foundation
import Synchronization

/// A server on 127.0.0.1 that reads requests and answers with arbitrary bytes, HTTP or not. Uses a thread per connection.
package final class RawHTTPServer: Sendable {
    package struct Request: Sendable {
        /// Counts the connections from 0.
        package let connection: Int
        /// Request line and headers, without the empty line after them.
        package let head: String
        package let body: [UInt8]

        /// The value of the header with this name, case-insensitive.
        package func header(_ name: String) -> String? {
            for line in head.split(separator: "\r\n").dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                if parts.count == 2, parts[0].lowercased() == name.lowercased() { return parts[1].trimmingCharacters(in: .whitespaces) }
            }
            return nil
        }
    }

    package enum Reply: Sendable {
        case bytes([UInt8])
        /// Ends the connection after the bytes.
        case last([UInt8])
        /// Breaks the connection after the bytes, as a crash would.
        case reset([UInt8])
        /// Sends nothing until the other side disconnects.
        case hang
        /// One byte at a time, with this pause in between, until the other side disconnects.
        case drip([UInt8], every: Duration)

        /// A whole response that keeps the connection.
        package static func status(_ status: Int, headers: [String] = [], body: String = "") -> Reply {
            let lines = ["HTTP/1.1 \(status) Some reason", "Content-Length: \(body.utf8.count)"] + headers
            return .bytes(Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8))
        }
    }

    package let port: UInt16
    package var url: String { "http://127.0.0.1:\(port)" }
    package var requests: [Request] { state.withLock { $0.requests } }

    private struct State {
        var requests: [Request] = []
        var connections: [Int32] = []
    }

    private let listener: Int32
    private let state = Mutex(State())
    private let reply: @Sendable (Request) -> Reply

    package init(reply: @escaping @Sendable (Request) -> Reply) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        port = try LoopbackAddress.bindFreePort(listener)
        guard listen(listener, 64) == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
        self.listener = listener
        self.reply = reply
        Thread.detachNewThread { [self] in acceptConnections() }
    }

    /// Ends all connections. No request is answered afterwards.
    package func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for connection in state.withLock({ $0.connections }) { shutdown(connection, Int32(SHUT_RDWR)) }
    }

    private func acceptConnections() {
        var number = 0
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { break }
            state.withLock { $0.connections.append(connection) }
            let index = number
            Thread.detachNewThread { [self] in serve(connection, number: index) }
            number += 1
        }
        close(listener)
    }

    private func serve(_ connection: Int32, number: Int) {
        var buffer: [UInt8] = []
        while let request = readRequest(connection, number: number, buffer: &buffer) {
            state.withLock { $0.requests.append(request) }
            switch reply(request) {
            case .bytes(let bytes):
                write(bytes, to: connection)
                continue
            case .last(let bytes):
                write(bytes, to: connection)
            case .reset(let bytes):
                write(bytes, to: connection)
                var linger = linger(l_onoff: 1, l_linger: 0)
                setsockopt(connection, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
            case .hang:
                var byte: UInt8 = 0
                while recv(connection, &byte, 1, 0) > 0 {}
            case .drip(let bytes, let pause):
                for byte in bytes {
                    var waiting = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
                    // No data is expected: a readable socket means that the connection ended.
                    guard poll(&waiting, 1, Int32(pause / .milliseconds(1))) == 0 else { break }
                    write([byte], to: connection)
                }
            }
            break
        }
        state.withLock { $0.connections.removeAll { $0 == connection } }
        close(connection)
    }

    /// nil at the end of the connection.
    private func readRequest(_ connection: Int32, number: Int, buffer: inout [UInt8]) -> Request? {
        while true {
            if let end = buffer.firstRange(of: Array("\r\n\r\n".utf8)) {
                let request = Request(connection: number, head: String(decoding: buffer[..<end.lowerBound], as: UTF8.self), body: [])
                let byteCount = end.upperBound + (request.header("Content-Length").flatMap { Int($0) } ?? 0)
                if buffer.count >= byteCount {
                    let body = Array(buffer[end.upperBound..<byteCount])
                    buffer.removeFirst(byteCount)
                    return Request(connection: number, head: request.head, body: body)
                }
            }
            var chunk = [UInt8](repeating: 0, count: 65_536)
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0 else { return nil }
            buffer += chunk[..<count]
        }
    }

    private func write(_ bytes: [UInt8], to connection: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
