import TestSupport
import Testing
import WakuCrypto

/// All client operations, each as a process, with a running daemon.
@Suite(.timeLimit(.minutes(5)))
struct FlowTests {
    private let operated: OperatedNode

    init() throws {
        operated = try OperatedNode()
    }

    /// Has Bob notified until the node says success: on a slow machine its first answer may be that gorush needs longer than it waits.
    private func notify(_ daemon: Daemon, messageID: String) async throws -> Ended {
        var last: Ended?
        try await eventually {
            let ended = try await operated.client(
                daemon, "notify", "--registrant", operated.bob.publicKey, "--identity", operated.alice.path, "--message-id", messageID,
                "--json")
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
        defer { operated.gorush.stop() }
        let daemon = try await operated.start()

        let registered = try await operated.register(daemon)
        #expect(registered.status == 0, "\(registered.errors)")
        #expect(registered.field("success") == "yes")
        #expect(registered.field("installation") == "bobs-phone")
        #expect(registered.field("version") == "1")

        let again = try await operated.register(daemon, isJSON: true)
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
        let bodies = operated.gorush.requests.filter { $0.head.hasPrefix("POST") }.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies.count == 1)
        #expect(bodies.first?.contains(#""tokens":["\#(OperatedNode.deviceToken)"]"#) == true)

        let ended = try await operated.client(
            daemon, "unregister", "--identity", operated.bob.path, "--installation", "bobs-phone", "--version", "2", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try ended.json() == Result(success: true, installation: "bobs-phone", version: 2))
        let row = try await operated.admin("registrations", "list").rows.last
        #expect(row?.dropFirst().prefix(3) == ["bobs-phone", "unregistered", "2"])

        let stopped = await daemon.stop()
        operated.record(stopped)
        #expect(stopped.status == 0)
        #expect(stopped.errors.contains("node stopped"))
        #expect(operated.leaks == [] && operated.printedCount >= 20)
    }

    private func query(_ daemon: Daemon) async throws {
        let text = try await operated.client(daemon, "query", "--registrant", operated.bob.publicKey)
        #expect(text.status == 0, "\(text.errors)")
        #expect(text.rows == [["INSTALLATION", "VERSION", "MAY BE NOTIFIED"], ["bobs-phone", "1", "yes"]])
        let compressed = "0x" + hexString(operated.bob.key.publicKey.compressed)
        let json = try await operated.client(daemon, "query", "--registrant", compressed, "--json")
        #expect(try json.json() == [Device(installation: "bobs-phone", version: 1, mayBeNotified: true)])
        let revealed = try await run(
            "client", "query", "--relay", daemon.relayURL, "--server", operated.server.publicKey, "--timeout", "60s", "--registrant",
            operated.bob.publicKey,
            "--json", "--reveal")
        #expect(
            try revealed.json()
                == [Device(installation: "bobs-phone", version: 1, mayBeNotified: true, accessToken: OperatedNode.accessToken)])
    }

    private func lookBesideTheDaemon() async throws {
        let list = try await operated.admin("registrations", "list")
        let shortHash = String(operated.bobsHash.prefix(16)) + "…"
        #expect(list.rows.dropFirst().map { Array($0.prefix(4)) } == [[shortHash, "bobs-phone", "apn", "1"]])
        let shown = try await operated.admin(
            "registrations", "show", String(operated.bobsHash.prefix(8)), "--identity", operated.server.path)
        #expect(shown.field("key hash") == operated.bobsHash)
        #expect(shown.field("device token") == "<hidden: --reveal shows it>")
        let revealed = try await run(
            "admin", "registrations", "show", operated.bobsHash, "--data", operated.data, "--identity", operated.server.path, "--reveal",
            "--json")
        let opened = try revealed.json([RegistrationDetail].self).first?.opened
        #expect(opened?.deviceToken == OperatedNode.deviceToken)
        #expect(opened?.accessToken == OperatedNode.accessToken)
        #expect(try await operated.admin("registrations", "stats").field("registrants") == "1")
        #expect(try await operated.admin("topics", "--identity", operated.server.path, "--json").output.contains(#""query""#))
        #expect(try await operated.admin("outbox", "list", "--json").output == "[\n\n]\n")
    }

    /// Notifications that gorush does not accept stay in the outbox across a restart, until it does.
    @Test func theOutboxWhileGorushFails() async throws {
        defer { operated.gorush.stop() }
        operated.gorushAnswers(503)
        let first = try await operated.start()
        #expect(try await operated.register(first).status == 0)
        let notified = try await operated.client(first, "notify", "--registrant", operated.bob.publicKey)
        #expect(notified.status == 69)
        #expect(notified.failure == "not all devices were notified: INTERNAL_ERROR")
        #expect(notified.rows == [["INSTALLATION", "RESULT"], ["bobs-phone", "INTERNAL_ERROR"]])
        let waiting = try await operated.admin("outbox", "list")
        let shortHash = String(operated.bobsHash.prefix(16)) + "…"
        #expect(waiting.rows.dropFirst().map { Array($0[1...3]) } == [["status", shortHash, "bobs-phone"]])

        let stopped = await first.stop()
        operated.record(stopped)
        #expect(stopped.status == 0)
        #expect(try await operated.admin("outbox", "list").output == waiting.output)

        operated.gorushAnswers(200)
        let second = try await operated.start()
        try await eventually { try await operated.admin("outbox", "list").rows.count == 1 }
        #expect(await second.stop().status == 0)
        #expect(try await operated.admin("registrations", "stats").field("notifications waiting") == "0")
        #expect(operated.leaks == [] && operated.printedCount >= 8)
    }

    @Test func repeatedRegistrationsFollowTheOption() async throws {
        defer { operated.gorush.stop() }
        let environment = ["WAKU_PUSH_IDEMPOTENT_REGISTRATIONS": "1"]
        let lenient = try await operated.start(environment: environment)
        for _ in 0..<2 { #expect(try await operated.register(lenient).status == 0) }
        #expect(await lenient.stop().status == 0)
        let strict = try await operated.start("--no-idempotent-registrations", environment: environment)
        #expect(try await operated.register(strict).failure == "the server refused: VERSION_MISMATCH")
        #expect(await strict.stop().status == 0)
    }

    /// After a removal by another process the daemon answers the next query correctly.
    @Test func removedWhileTheDaemonRuns() async throws {
        defer { operated.gorush.stop() }
        let daemon = try await operated.start()
        #expect(try await operated.register(daemon).status == 0)
        #expect(try await operated.admin("registrations", "remove", operated.bobsHash, "--yes").status == 0)
        let silent = try await run(
            "client", "query", "--relay", daemon.relayURL, "--server", operated.server.publicKey, "--timeout", "500ms", "--registrant",
            operated.bob.publicKey)
        #expect(silent.status == 69)
        #expect(silent.failure != nil, "\(silent.errors)")
        #expect(try await operated.register(daemon, version: 2).status == 0)
        #expect(try await operated.client(daemon, "query", "--registrant", operated.bob.publicKey).rows.last == ["bobs-phone", "2", "yes"])
        #expect(await daemon.stop().status == 0)
        #expect(!operated.gorush.requests.contains { $0.head.hasPrefix("POST") })
    }
}
