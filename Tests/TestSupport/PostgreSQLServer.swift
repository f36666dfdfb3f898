import Foundation
import Synchronization

/// A PostgreSQL server in a temporary folder. It listens on a Unix socket there, and optionally on TCP, where it requires passwords. It is
/// stopped, and its folder deleted, when this object is released or this process ends.
package final class PostgreSQLServer: Sendable {
    /// The socket's folder: `host` in a connection string.
    package let folder: String
    private let process: Process
    /// The server runs while this descriptor is open.
    private let lifeline: Int32

    private static let sharedServer = Result { try PostgreSQLServer() }
    /// A shared server for tests that do not stop it.
    package static func shared() throws -> PostgreSQLServer { try sharedServer.get() }

    /// Connects to database `postgres` as superuser, without a password.
    package var address: String { "host=\(folder) port=\(port) dbname=postgres user=postgres" }
    private let port: UInt16

    /// - Parameters:
    ///   - settings: further settings of `postgresql.conf`.
    ///   - primary: the primary of this server, if it is a standby.
    package init(settings: [String: String] = [:], standbyOf primary: PostgreSQLServer? = nil) throws {
        port = settings["port"].flatMap { UInt16($0) } ?? 5432
        folder = NSTemporaryDirectory() + "waku-push-" + UUID().uuidString
        let programs = try Self.programs()
        let settings = [
            "unix_socket_directories": folder, "listen_addresses": "", "max_connections": "300", "shared_buffers": "32MB",
            "max_prepared_transactions": "0",
        ].merging(settings) { _, new in new }
        let arguments = settings.sorted { $0.key < $1.key }.flatMap { ["-c", "\($0.key)=\($0.value)"] }
        // PostgreSQL refuses to run as root. The shell executes commands from its standard input, and stops the server at its end.
        let script = """
            folder=$1 programs=$2 primary=$3; shift 3; settings=$*
            as=
            mkdir -m 700 "$folder" || exit
            if [ "$(id -u)" = 0 ]; then as="setpriv --reuid postgres --regid postgres --init-groups"; chown postgres "$folder"; fi
            cd "$folder" || exit
            control() { $as "$programs/pg_ctl" -D "$folder/data" -l "$folder/data/log" -o "$settings" -w "$@" >/dev/null 2>&1; }
            if [ "$primary" ]; then
                $as "$programs/pg_basebackup" -D "$folder/data" -d "$primary" -R -c fast >"$folder/log" 2>&1
            else
                $as "$programs/initdb" -D "$folder/data" -U postgres -A trust --auth-host scram-sha-256 -E UTF8 --no-locale -N \
                    >"$folder/log" 2>&1
            fi
            control start && echo done >&0 || exec <&-
            while read -r word; do
                case $word in
                start) control start ;;
                stop) control stop -m fast ;;
                kill) control stop -m immediate ;;
                promote) control promote ;;
                esac && echo done >&0
            done
            control stop -m immediate
            rm -rf "$folder"
            """
        var ends: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw POSIXError(.EMFILE) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script, "sh", folder, programs, primary?.address ?? ""] + arguments
        let input = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        process.standardInput = input
        process.standardOutput = FileHandle.nullDevice
        (self.process, lifeline) = (process, ends[1])
        var limit = timeval(tv_sec: 60 * TestTimeout.factor, tv_usec: 0)
        setsockopt(lifeline, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        try ChildProcess.start(process)
        try input.close()
        try awaitReply()
    }

    deinit {
        close(lifeline)
        process.waitUntilExit()
    }

    /// Stops the server as an administrator does: connections are closed.
    package func stop() throws { try tell("stop") }

    package func start() throws { try tell("start") }

    /// Kills the server, like a machine failure.
    package func kill() throws { try tell("kill") }

    /// Makes a standby a primary.
    package func promote() throws { try tell("promote") }

    /// Creates an empty database, and returns a connection string for its superuser, without a password.
    package func makeDatabase() async throws -> String {
        let name = "d" + UUID().uuidString.lowercased().filter { $0 != "-" }
        try await run("CREATE DATABASE \(name)")
        return "host=\(folder) port=\(port) dbname=\(name) user=postgres"
    }

    /// Runs each statement as superuser in a separate transaction.
    package func run(_ statements: String...) async throws {
        let commands = statements.flatMap { ["-c", $0] }
        let ended = try await ExternalTool.run(
            "psql", ["-qX", "-v", "ON_ERROR_STOP=1", "-h", folder, "-p", "\(port)", "-U", "postgres"] + commands)
        guard ended.status == 0 else { throw TestFailure(ended.errors) }
    }

    /// Copies a file into the data folder, readable only by the server.
    package func install(_ path: String, as name: String) throws {
        let (target, data) = (folder + "/data/" + name, folder + "/data")
        try FileManager.default.copyItem(atPath: path, toPath: target)
        let owner: [FileAttributeKey] = [.ownerAccountID, .groupOwnerAccountID]
        var attributes = try FileManager.default.attributesOfItem(atPath: data).filter { owner.contains($0.key) }
        attributes[.posixPermissions] = 0o600
        try FileManager.default.setAttributes(attributes, ofItemAtPath: target)
    }

    private func tell(_ word: String) throws {
        let line = Array("\(word)\n".utf8)
        guard write(lifeline, line, line.count) == line.count else { throw TestFailure("the shell of PostgreSQL ended") }
        try awaitReply()
    }

    /// Blocks.
    private func awaitReply() throws {
        var reply = [UInt8](repeating: 0, count: 16)
        guard read(lifeline, &reply, reply.count) > 0 else {
            let log = try? String(contentsOfFile: folder + "/data/log", encoding: .utf8)
            throw TestFailure("PostgreSQL was not started or stopped: \(log ?? "")")
        }
    }

    /// The folder of the server's programs: `WAKU_PUSH_TEST_POSTGRESQL`, or that of the latest version of Debian's packages.
    private static func programs() throws -> String {
        if let folder = ProcessInfo.processInfo.environment["WAKU_PUSH_TEST_POSTGRESQL"] { return folder }
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
        let folders = versions.compactMap { Int($0) }.sorted(by: >).map { "/usr/lib/postgresql/\($0)/bin" }
        guard let found = folders.first(where: { FileManager.default.isExecutableFile(atPath: $0 + "/initdb") }) else {
            throw TestFailure("PostgreSQL is not installed: run Deploy/set-up --tests")
        }
        return found
    }
}
