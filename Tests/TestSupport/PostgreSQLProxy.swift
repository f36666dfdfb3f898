import Foundation
import Synchronization

/// A Unix socket in front of a server's, which inspects the traffic.
package final class PostgreSQLProxy: Sendable {
    package enum Direction {
        case toServer, toClient
    }

    package enum Verdict {
        case pass
        case replace([UInt8])
        /// Drops the data and closes both connections.
        case cut
        /// Drops the data and keeps the connections open.
        case hold
    }

    package typealias Inspection = @Sendable (Direction, [UInt8]) -> Verdict

    private static let name = "/.s.PGSQL.5432"

    private let folder: TemporaryFolder
    private let server: String
    private let listener: Int32
    private let inspection: Mutex<Inspection?>
    private let connections = Mutex<[Int32]>([])

    /// The folder of the socket: `host` in a connection string.
    package var path: String { folder.path }

    package init(_ server: PostgreSQLServer) throws {
        folder = try TemporaryFolder()
        self.server = server.folder + Self.name
        inspection = Mutex(nil)
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard Self.withAddress(folder.path + Self.name, { bind(listener, $0, $1) }) == 0, listen(listener, 10) == 0 else {
            throw POSIXError(.EADDRNOTAVAIL)
        }
        Thread.detachNewThread { [weak self, listener] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                self?.connect(client)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        cutAll()
    }

    /// Inspects all traffic from now on.
    package func inspect(_ body: @escaping Inspection) {
        inspection.withLock { $0 = body }
    }

    package func cutAll() {
        connections.withLock { sockets in
            for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
            sockets = []
        }
    }

    private func connect(_ client: Int32) {
        let upstream = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard Self.withAddress(server, { Foundation.connect(upstream, $0, $1) }) == 0 else {
            close(client)
            close(upstream)
            return
        }
        connections.withLock { $0 += [client, upstream] }
        for (direction, from, to) in [(Direction.toServer, client, upstream), (.toClient, upstream, client)] {
            Thread.detachNewThread { [weak self] in
                var buffer = [UInt8](repeating: 0, count: 1 << 16)
                while true {
                    let count = recv(from, &buffer, buffer.count, 0)
                    guard count > 0 else { break }
                    var bytes = Array(buffer[..<count])
                    // Not { $0 }, which would store the function again with another wrapper each time.
                    let verdict = self?.inspection.withLock(\.self)?(direction, bytes) ?? .pass
                    if case .cut = verdict { break }
                    if case .hold = verdict { continue }
                    if case .replace(let other) = verdict { bytes = other }
                    guard send(to, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { break }
                }
                // The descriptors are not reused before the process ends.
                shutdown(from, Int32(SHUT_RDWR))
                shutdown(to, Int32(SHUT_RDWR))
            }
        }
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }
}
