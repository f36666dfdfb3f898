import CPostgres
import Foundation
import StorePostgreSQL
import Storage
import Synchronization

/// The process of a PostgreSQL server that serves a connection, on this machine. Its CPU time is taken from the node's cores.
struct ServerProcess {
    private let folder: String

    /// nil when the server is on another machine, or its processes are not visible.
    ///
    /// - Parameters:
    ///   - backend: the process id on the server.
    ///   - session: a session with that server.
    init?(_ backend: Int32, of session: PostgreSQLConnection) {
        guard Self.isLocal(session) else { return nil }
        folder = "/proc/\(backend)"
        // The id belongs to another process here if the server is in a container or behind a tunnel.
        let command = FileManager.default.contents(atPath: folder + "/cmdline") ?? Data()
        guard command.starts(with: Array("postgres".utf8)) else { return nil }
    }

    /// CPU time so far in nanoseconds, without that of the server's common processes such as the checkpointer.
    var time: UInt64 {
        let text = String(decoding: FileManager.default.contents(atPath: folder + "/schedstat") ?? Data(), as: UTF8.self)
        return text.split(separator: " ").first.flatMap { UInt64($0) } ?? 0
    }

    /// Whether it is connected over a Unix socket or a loopback address.
    private static func isLocal(_ session: PostgreSQLConnection) -> Bool {
        var peer = sockaddr_storage()
        return withUnsafeMutableBytes(of: &peer) { bytes in
            guard let start = bytes.baseAddress else { return false }
            var length = socklen_t(bytes.count)
            let socket = session.library.table.pointee.PQsocket(session.connection)
            guard getpeername(socket, start.assumingMemoryBound(to: sockaddr.self), &length) == 0 else { return false }
            switch Int32(start.load(as: sa_family_t.self)) {
            case AF_UNIX: return true
            // After family and port: 127.0.0.0/8.
            case AF_INET: return bytes[4] == 127
            // After family, port and flow: ::1.
            case AF_INET6: return bytes[8..<24].elementsEqual([UInt8](repeating: 0, count: 15) + [1])
            default: return false
            }
        }
    }
}

/// The processes of a PostgreSQL server that serve this program's sessions in a database.
final class SessionProcesses: Sendable {
    private static let select = Statement(
        "SELECT pid::bigint FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'waku-push%'")

    private let session: Mutex<PostgreSQLConnection>

    /// Blocks.
    ///
    /// - Throws: `StoreError`
    init(at address: PostgreSQLAddress) throws {
        session = Mutex(try PostgreSQLConnection.open(address, name: "waku-push bench"))
    }

    /// CPU time so far, in nanoseconds; nil when the processes are not on this machine. Comparable only while the sessions are the same.
    /// Blocks.
    ///
    /// - Throws: `PostgreSQLError`
    func time() throws -> UInt64? {
        try session.withLock { session in
            let rows = try session.run(Self.select).rows
            let processes = try rows.compactMap { ServerProcess(Int32(try $0.integer(0)), of: session) }
            return processes.count == rows.count ? processes.reduce(0) { $0 + $1.time } : nil
        }
    }
}
