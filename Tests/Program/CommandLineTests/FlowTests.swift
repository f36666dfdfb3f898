import Foundation
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import WakuCrypto

/// All client operations, each as a process, with a running daemon.
@Suite(.timeLimit(.minutes(5)))
struct FlowTests {
    private static let deviceToken = "5ec2e7de71ce70ce"
    private static let accessToken = "6f1c1e94-3b5a-4c39-9a61-d7e0b1c2a3f4"

    private let folder: TemporaryFolder
    private let server: KeyFile
    private let bob: KeyFile
    private let alice: KeyFile
    private var data: String { folder.path + "/data" }
    private var bobsHash: String { KeyHash(of: bob.key.publicKey).hex }

    init() throws {
        folder = try TemporaryFolder()
        server = try KeyFile(in: folder, "id.key")
        bob = try KeyFile(in: folder, "bob.key")
        alice = try KeyFile(in: folder, "alice.key")
    }

    /// All output of commands that must not print secrets.
    private final class Printed: Sendable {
        private let texts = Mutex<[String]>([])

        func add(_ ended: Ended) { texts.withLock { $0 += [ended.output, ended.errors] } }
        var all: [String] { texts.withLock { $0 } }
    }

    private let printed = Printed()

    private func recorded(_ arguments: [String]) async throws -> Ended {
        let ended = try await run(arguments)
        printed.add(ended)
        return ended
    }

    private func client(_ daemon: Daemon, _ command: String, _ arguments: String...) async throws -> Ended {
        try await recorded(
            ["client", command, "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "60s"] + arguments)
    }

    private func admin(_ arguments: String...) async throws -> Ended {
        try await recorded(["admin"] + arguments + ["--data", data])
    }

    private func startDaemon(
        _ gorush: RawHTTPServer, _ arguments: String..., environment: [String: String] = [:]
    ) async throws -> Daemon {
        try await Daemon.start(
            ["--identity", server.path, "--data", data, "--gorush", gorush.url, "--log-level", "trace"] + arguments,
            environment: environment)
    }

    private func register(_ daemon: Daemon, _ arguments: String...) async throws -> Ended {
        try await recorded(
            [
                "client", "register", "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "60s", "--identity", bob.path,
                "--device-token", Self.deviceToken, "--access-token", Self.accessToken, "--apn-topic", "im.status.ethereum",
                "--installation", "bobs-phone",
            ] + arguments)
    }

    /// Has Bob notified until the node says success: on a slow machine its first answer may be that gorush needs longer than it waits.
    private func notify(_ daemon: Daemon, messageID: String) async throws -> Ended {
        var last: Ended?
        try await eventually {
            let ended = try await client(
                daemon, "notify", "--registrant", bob.publicKey, "--identity", alice.path, "--message-id", messageID, "--json")
            last = ended
            return !ended.errors.contains("INTERNAL_ERROR")
        }
        return try #require(last)
    }

    private struct Result: Decodable, Equatable {
        let success: Bool
        var error: String?
        let installation: String
        var version: UInt64?
    }

    private struct Device: Decodable, Equatable {
        let installation: String
        let version: UInt64
        let mayBeNotified: Bool
        var accessToken: String?
    }

    @Test func registersQueriesNotifiesAndUnregisters() async throws {
        let gorush = try RawHTTPServer { _ in .status(200, body: #"{"success":"ok","counts":1,"logs":[]}"#) }
        defer { gorush.stop() }
        let daemon = try await startDaemon(gorush)

        let registered = try await register(daemon)
        #expect(registered.status == 0, "\(registered.errors)")
        #expect(registered.field("success") == "yes")
        #expect(registered.field("installation") == "bobs-phone")
        #expect(registered.field("version") == "1")

        let again = try await register(daemon, "--json")
        #expect(again.status == 65)
        #expect(again.failure == "the server refused: VERSION_MISMATCH")
        #expect(try again.json() == Result(success: false, error: "VERSION_MISMATCH", installation: "bobs-phone", version: 1))

        try await query(daemon)
        try await lookBesideTheDaemon()

        let notified = try await notify(daemon, messageID: "c0ffee")
        #expect(notified.status == 0, "\(notified.errors)")
        #expect(try notified.json() == [Result(success: true, installation: "bobs-phone")])
        let repeated = try await notify(daemon, messageID: "c0ffee")
        #expect(repeated.status == 0)
        let bodies = gorush.requests.filter { $0.head.hasPrefix("POST") }.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies.count == 1)
        #expect(bodies.first?.contains(#""tokens":["\#(Self.deviceToken)"]"#) == true)

        let ended = try await client(
            daemon, "unregister", "--identity", bob.path, "--installation", "bobs-phone", "--version", "2", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try ended.json() == Result(success: true, installation: "bobs-phone", version: 2))
        let row = try await admin("registrations", "list").rows.last
        #expect(row?.dropFirst().prefix(3) == ["bobs-phone", "unregistered", "2"])

        let stopped = await daemon.stop()
        printed.add(stopped)
        #expect(stopped.status == 0)
        #expect(stopped.errors.contains("node stopped"))
        expectNoSecrets(among: 20)
    }

    private func query(_ daemon: Daemon) async throws {
        let text = try await client(daemon, "query", "--registrant", bob.publicKey)
        #expect(text.status == 0, "\(text.errors)")
        #expect(text.rows == [["INSTALLATION", "VERSION", "MAY BE NOTIFIED"], ["bobs-phone", "1", "yes"]])
        let compressed = "0x" + hexString(bob.key.publicKey.compressed)
        let json = try await client(daemon, "query", "--registrant", compressed, "--json")
        #expect(try json.json() == [Device(installation: "bobs-phone", version: 1, mayBeNotified: true)])
        let revealed = try await run(
            "client", "query", "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "60s", "--registrant", bob.publicKey,
            "--json", "--reveal")
        #expect(
            try revealed.json()
                == [Device(installation: "bobs-phone", version: 1, mayBeNotified: true, accessToken: Self.accessToken)])
    }

    private func lookBesideTheDaemon() async throws {
        let list = try await admin("registrations", "list")
        let shortHash = String(bobsHash.prefix(16)) + "…"
        #expect(list.rows.dropFirst().map { Array($0.prefix(4)) } == [[shortHash, "bobs-phone", "apn", "1"]])
        let shown = try await admin("registrations", "show", String(bobsHash.prefix(8)), "--identity", server.path)
        #expect(shown.field("key hash") == bobsHash)
        #expect(shown.field("device token") == "<hidden: --reveal shows it>")
        let revealed = try await run(
            "admin", "registrations", "show", bobsHash, "--data", data, "--identity", server.path, "--reveal", "--json")
        let opened = try revealed.json([RegistrationDetail].self).first?.opened
        #expect(opened?.deviceToken == Self.deviceToken)
        #expect(opened?.accessToken == Self.accessToken)
        #expect(try await admin("registrations", "stats").field("registrants") == "1")
        #expect(try await admin("topics", "--identity", server.path, "--json").output.contains(#""query""#))
        #expect(try await admin("outbox", "list", "--json").output == "[\n\n]\n")
    }

    /// Neither as text, nor in the forms in which bytes are printed.
    private func expectNoSecrets(among count: Int) {
        #expect(printed.all.count >= count)
        let tokens = [Self.deviceToken, Self.accessToken].flatMap { token in
            [token, hexString(Array(token.utf8)), Data(token.utf8).base64EncodedString().lowercased()]
        }
        let keys = [server, bob, alice].flatMap { file in
            [file.digits, Data(file.key.withBytes { Array($0) }).base64EncodedString().lowercased()]
        }
        for secret in tokens + keys {
            for text in printed.all { #expect(!text.lowercased().contains(secret)) }
        }
        for text in printed.all { #expect(!text.contains("\u{1B}")) }
    }

    /// Notifications that gorush does not accept stay in the outbox across a restart, until it does.
    @Test func theOutboxWhileGorushFails() async throws {
        let isWell = Mutex(false)
        let gorush = try RawHTTPServer { _ in
            isWell.withLock { $0 } ? .status(200, body: #"{"success":"ok","counts":1,"logs":[]}"#) : .status(503)
        }
        defer { gorush.stop() }
        let first = try await startDaemon(gorush)
        #expect(try await register(first).status == 0)
        let notified = try await client(first, "notify", "--registrant", bob.publicKey)
        #expect(notified.status == 69)
        #expect(notified.failure == "not all devices were notified: INTERNAL_ERROR")
        #expect(notified.rows == [["INSTALLATION", "RESULT"], ["bobs-phone", "INTERNAL_ERROR"]])
        let waiting = try await admin("outbox", "list")
        let shortHash = String(bobsHash.prefix(16)) + "…"
        #expect(waiting.rows.dropFirst().map { Array($0[1...3]) } == [["status", shortHash, "bobs-phone"]])

        let stopped = await first.stop()
        printed.add(stopped)
        #expect(stopped.status == 0)
        #expect(try await admin("outbox", "list").output == waiting.output)

        isWell.withLock { $0 = true }
        let second = try await startDaemon(gorush)
        try await eventually { try await admin("outbox", "list").rows.count == 1 }
        #expect(await second.stop().status == 0)
        #expect(try await admin("registrations", "stats").field("notifications waiting") == "0")
        expectNoSecrets(among: 8)
    }

    @Test func repeatedRegistrationsFollowTheOption() async throws {
        let gorush = try RawHTTPServer { _ in .status(200) }
        defer { gorush.stop() }
        let environment = ["WAKU_PUSH_IDEMPOTENT_REGISTRATIONS": "1"]
        let lenient = try await startDaemon(gorush, environment: environment)
        for _ in 0..<2 { #expect(try await register(lenient).status == 0) }
        #expect(await lenient.stop().status == 0)
        let strict = try await startDaemon(gorush, "--no-idempotent-registrations", environment: environment)
        #expect(try await register(strict).failure == "the server refused: VERSION_MISMATCH")
        #expect(await strict.stop().status == 0)
    }

    /// After a removal by another process the daemon answers the next query correctly.
    @Test func removedWhileTheDaemonRuns() async throws {
        let gorush = try RawHTTPServer { _ in .status(200, body: #"{"success":"ok","counts":1,"logs":[]}"#) }
        defer { gorush.stop() }
        let daemon = try await startDaemon(gorush)
        #expect(try await register(daemon).status == 0)
        #expect(try await admin("registrations", "remove", bobsHash, "--yes").status == 0)
        let silent = try await run(
            "client", "query", "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "500ms", "--registrant",
            bob.publicKey)
        #expect(silent.status == 69)
        #expect(silent.failure != nil, "\(silent.errors)")
        #expect(try await register(daemon, "--version", "2").status == 0)
        #expect(try await client(daemon, "query", "--registrant", bob.publicKey).rows.last == ["bobs-phone", "2", "yes"])
        #expect(await daemon.stop().status == 0)
        #expect(!gorush.requests.contains { $0.head.hasPrefix("POST") })
    }
}
