import Foundation
import StatusProtocol
import Synchronization
import TestSupport
import WakuCrypto

/// An operator's setup: a node's key and folder, a gorush that works or fails, and clients.
struct OperatedNode {
    static let deviceToken = "5ec2e7de71ce70ce"
    static let accessToken = "6f1c1e94-3b5a-4c39-9a61-d7e0b1c2a3f4"

    let folder: TemporaryFolder
    let server: KeyFile
    let bob: KeyFile
    let alice: KeyFile
    let gorush: RawHTTPServer
    private let gorushStatus: SharedStatus
    private let printed = Printed()
    var data: String { folder.path + "/data" }
    var bobsHash: String { KeyHash(of: bob.key.publicKey).hex }

    /// State shared by the server's threads and the test.
    private final class SharedStatus: Sendable {
        let status = Mutex(200)
    }

    private final class Printed: Sendable {
        let texts = Mutex<[String]>([])
        /// Those of the daemon.
        let logs = Mutex<[String]>([])
    }

    init() throws {
        folder = try TemporaryFolder()
        server = try KeyFile(in: folder, "id.key")
        bob = try KeyFile(in: folder, "bob.key")
        alice = try KeyFile(in: folder, "alice.key")
        let status = SharedStatus()
        gorushStatus = status
        gorush = try RawHTTPServer { request in
            let answer = status.status.withLock(\.self)
            return GorushStandIn.reply(to: request, status: answer)
        }
    }

    /// From now on gorush answers posts with this.
    func gorushAnswers(_ status: Int) {
        gorushStatus.status.withLock { $0 = status }
    }

    func start(_ arguments: String..., environment: [String: String] = [:]) async throws -> Daemon {
        let daemon = try await Daemon.start(
            ["--identity", server.path, "--data", data, "--gorush", gorush.url, "--log-level", "trace"] + arguments,
            environment: environment)
        // The admin socket is opened beside the HTTP port.
        try await eventually { try await run(["admin", "status", "--data", data]).status != 69 }
        return daemon
    }

    /// Runs a command that must not show secrets.
    func recorded(_ arguments: [String]) async throws -> Ended {
        let ended = try await run(arguments)
        printed.texts.withLock { $0 += [ended.output, ended.errors] }
        return ended
    }

    /// Records the log of a daemon, or a page of it. In contrast to commands, it names no client either.
    func record(_ ended: Ended) {
        printed.texts.withLock { $0 += [ended.output, ended.errors] }
        printed.logs.withLock { $0 += [ended.output, ended.errors] }
    }

    func admin(_ arguments: String..., identified: Bool = false) async throws -> Ended {
        try await recorded(["admin"] + arguments + ["--data", data] + (identified ? ["--identity", server.path] : []))
    }

    func client(_ daemon: Daemon, _ command: String, _ arguments: String...) async throws -> Ended {
        try await recorded(
            ["client", command, "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "60s"] + arguments)
    }

    func register(
        _ daemon: Daemon, installation: String = "bobs-phone", version: Int = 1, token: String = Self.deviceToken, isJSON: Bool = false
    ) async throws -> Ended {
        try await recorded(
            [
                "client", "register", "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "60s", "--identity", bob.path,
                "--device-token", token, "--access-token", Self.accessToken, "--apn-topic", "im.status.ethereum", "--installation",
                installation, "--version", "\(version)",
            ] + (isJSON ? ["--json"] : []))
    }

    func query(_ daemon: Daemon) async throws -> Ended {
        try await client(daemon, "query", "--registrant", bob.publicKey)
    }

    /// The number of texts that ``leaks`` looks at.
    var printedCount: Int { printed.texts.withLock(\.count) }

    /// Secrets that were printed without being asked for, as text or in the forms in which bytes are printed; control characters of a terminal; and in
    /// the daemons' logs and pages, identities of clients.
    var leaks: [String] {
        let tokens = [Self.deviceToken, Self.accessToken].flatMap { token in
            [token, hexString(Array(token.utf8)), Data(token.utf8).base64EncodedString().lowercased()]
        }
        let keys = [server, bob, alice].flatMap { file in
            [file.digits, Data(file.key.withBytes { Array($0) }).base64EncodedString().lowercased()]
        }
        // Also abbreviated, as commands print them.
        let clients = [bob, alice].flatMap { file in
            let key = file.key.publicKey
            return [hexString(key.x.prefix(8)), hexString(KeyHash(of: key).bytes.prefix(8))]
        }
        let texts = printed.texts.withLock { $0.map { $0.lowercased() } }
        let logs = printed.logs.withLock { $0.map { $0.lowercased() } }
        return (tokens + keys + ["\u{1B}"]).filter { secret in texts.contains { $0.contains(secret) } }
            + (clients + ["bobs-phone"]).filter { name in logs.contains { $0.contains(name) } }
    }
}

/// gorush's answers, as far as an operator's tools ask it.
enum GorushStandIn {
    static func reply(to request: RawHTTPServer.Request, status: Int) -> RawHTTPServer.Reply {
        struct Body: Decodable {
            struct Entry: Decodable {
                let tokens: [String]
            }
            let notifications: [Entry]
        }
        switch request.head.split(separator: " ").dropFirst().first {
        case "/healthz": return .status(200)
        case "/version": return .status(200, body: #"{"source":"https://github.com/appleboy/gorush","version":"1.18.4"}"#)
        case "/api/config":
            return .status(200, body: "core:\n  sync: true\n  port: \"8088\"\nios:\n  enabled: true\nandroid:\n  enabled: false\n")
        default:
            guard status == 200 else { return .status(status) }
            let tokens = (try? JSONDecoder().decode(Body.self, from: Data(request.body)))?.notifications.flatMap(\.tokens) ?? []
            guard !tokens.isEmpty else { return .status(400, body: #"{"message":"Notifications field is empty."}"#) }
            return .status(200, body: #"{"success":"ok","counts":\#(tokens.count),"logs":[]}"#)
        }
    }
}
