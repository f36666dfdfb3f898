import CurlClient
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct DoctorTests {
    private let node: OperatedNode

    init() throws {
        node = try OperatedNode()
    }

    private struct Finding: Decodable {
        let check, verdict, text: String
        let remedy: String?
    }

    private func doctor(_ arguments: String...) async throws -> Ended {
        try await node.recorded(["doctor", "--data", node.data, "--gorush", node.gorush.url] + arguments)
    }

    private func verdicts(_ ended: Ended) throws -> [String: String] {
        Dictionary(try ended.json([Finding].self).map { ($0.check, $0.verdict) }) { first, second in first == "ok" ? second : first }
    }

    /// Each finding has its remedy.
    @Test func withoutADaemonEachFindingHasARemedy() async throws {
        defer { node.gorush.stop() }
        let text = try await doctor("--relay", "http://127.0.0.1:\(try freePort())")
        #expect(text.status == 2)
        #expect(text.errors == "")
        let key = text.output.split(separator: "\n").first { $0.hasPrefix("key") }
        #expect(key?.contains("fail  --identity is missing: make a key with waku-push identity new") == true)
        #expect(text.output.contains("→ check that the Waku node runs with --rest=true"))
        let found = try verdicts(try await doctor("--relay", "http://127.0.0.1:\(try freePort())", "--json"))
        #expect(found["key"] == "fail")
        #expect(found["relay"] == "fail")
        #expect(found["daemon"] == "warn")
        #expect(found["gorush"] == "ok")
        #expect(found["gorush post"] == "ok")
        #expect(found["message"] == "warn")
        #expect(!FileManager.default.fileExists(atPath: node.data))

        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: node.server.path)
        let readable = try await doctor("--identity", node.server.path, "--json")
        #expect(try readable.json([Finding].self).first?.text.hasSuffix("chmod 600 \(node.server.path)") == true)
        #expect(readable.status == 2)
        #expect(try await doctor("--relay", "not-a-url").status == 64)
    }

    @Test func besideADaemon() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        // The stand-in has Firebase switched off, and the loopback relay is not a network: both are warnings.
        let well = try await doctor("--identity", node.server.path, "--json")
        #expect(well.status == 1, "\(well.output)")
        let found = try verdicts(well)
        #expect(found.filter { $0.value != "ok" } == ["relay": "warn", "gorush setup": "warn", "clock": "warn"])
        let message = try well.json([Finding].self).first { $0.check == "message" }
        #expect(message?.text.hasSuffix("by the running daemon") == true)

        // gorush breaks: the daemon, its readiness and doctor say the same.
        node.gorushAnswers(503)
        #expect(try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "01").status == 69)
        try await eventually { try await daemon.get("/readyz").status == 503 }
        let readiness = String(decoding: try await daemon.get("/readyz").body, as: UTF8.self)
        let broken = try await doctor("--identity", node.server.path, "--json")
        #expect(broken.status == 2)
        let findings = try broken.json([Finding].self)
        #expect(findings.first { $0.check == "daemon" }?.text.contains("gorush: unavailable, 1 waiting") == true)
        #expect(readiness.hasPrefix("gorush: unavailable, 1 waiting"))
        #expect(findings.first { $0.check == "gorush post" }?.verdict == "fail")

        node.gorushAnswers(200)
        #expect(try await node.admin("outbox", "retry", "--all").status == 0)
        try await eventually { try await doctor("--identity", node.server.path).status == 1 }
        node.record(await daemon.stop())
        // Nothing that doctor does is a notification.
        #expect(node.gorush.requests.filter { $0.head.hasPrefix("POST") && $0.body.count > 30 }.count >= 1)
        #expect(node.leaks == [])
    }

    /// Doctor examines the daemon's configuration, with its credentials; options take precedence.
    @Test func configurationComesFromTheDaemon() async throws {
        let secret = "hidden-gorush-token"
        let guarded = try RawHTTPServer { request in
            GorushStandIn.reply(to: request, status: request.header("Authorization") == "Bearer \(secret)" ? 200 : 401)
        }
        defer {
            node.gorush.stop()
            guarded.stop()
        }
        let token = node.folder.path + "/token"
        try write(secret, to: token)
        let topic = "/waku/2/rs/16/64"
        let waku = try await Daemon.start(["--identity", node.bob.path, "--data", node.folder.path + "/waku", "--gorush", node.gorush.url])
        let daemon = try await Daemon.start([
            "--identity", node.server.path, "--data", node.data, "--gorush", guarded.url, "--gorush-token-file", token, "--gorush-header",
            "X-Other: hidden-header", "--relay", waku.relayURL, "--pubsub-topic", topic,
        ])
        try await eventually { try await run(["admin", "status", "--data", node.data]).status != 69 }

        let asked = try await node.recorded(["doctor", "--data", node.data, "--json"])
        let findings = try verdicts(asked)
        for check in ["key", "daemon", "gorush", "gorush post", "message"] { #expect(findings[check] == "ok", "\(check): \(asked.output)") }

        #expect(try asked.json([Finding].self).contains { $0.check == "relay" && $0.text.hasPrefix(waku.relayURL) }, "\(asked.output)")
        #expect(!asked.output.contains("hidden"))

        // Another relay, gorush, credentials or key file on the command line takes precedence.
        let closed = "http://127.0.0.1:\(try freePort())"
        #expect(try verdicts(try await node.recorded(["doctor", "--data", node.data, "--json", "--gorush", closed]))["gorush"] == "fail")
        #expect(try verdicts(try await node.recorded(["doctor", "--data", node.data, "--json", "--relay", closed]))["relay"] == "fail")
        try write("another", to: node.folder.path + "/other-token")
        let other = try await node.recorded([
            "doctor", "--data", node.data, "--json", "--gorush-token-file", node.folder.path + "/other-token",
        ])
        #expect(try verdicts(other)["gorush post"] == "fail")
        let unread = try await node.recorded(["doctor", "--data", node.data, "--json", "--identity", node.folder.path + "/none"])
        #expect(try verdicts(unread)["key"] == "fail")

        var configuration = CurlConfiguration()
        configuration.unixSocketPath = node.data + "/admin.sock"
        let told = try await CurlClient(configuration: configuration).send(HTTPRequest(method: "GET", url: "http://localhost/setup"))
        let text = String(decoding: told.body, as: UTF8.self)
        struct Setup: Decodable, Equatable {
            struct Endpoint: Decodable, Equatable { let url: String }
            let relays, pubsubTopics: [String]
            let gorush: [Endpoint]
        }
        #expect(
            try JSONDecoder().decode(Setup.self, from: Data(told.body))
                == Setup(relays: [waku.relayURL], pubsubTopics: [topic], gorush: [.init(url: guarded.url)]))
        let ended = await daemon.stop()
        #expect(await waku.stop().status == 0)
        for printed in [text, asked.output, asked.errors, ended.errors] { #expect(!printed.contains("hidden")) }
        #expect(node.leaks == [])
    }

    /// Without a daemon on its data folder doctor does not poll the Waku node.
    @Test func theNodesCacheIsNotPolled() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        let elsewhere = node.folder.path + "/elsewhere"
        let ended = try await node.recorded([
            "doctor", "--data", elsewhere, "--identity", node.server.path, "--relay", daemon.relayURL, "--gorush", node.gorush.url,
            "--json",
        ])
        let message = try #require(try ended.json([Finding].self).first { $0.check == "message" })
        #expect(message.verdict == "ok", "\(message)")
        #expect(message.text.contains("in the Waku node's store"))
        #expect(await daemon.stop().status == 0)
    }

    @Test func testPush() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        #expect(await daemon.stop().status == 0)
        let hash = try #require(try await node.admin("registrations", "list", "--json").json([RegistrationRow].self).first?.keyHash)

        func push(_ arguments: String...) async throws -> Ended {
            try await node.recorded(["admin", "test-push", "--data", node.data, "--gorush", node.gorush.url] + arguments)
        }
        let posted = try await push(hash, "--identity", node.server.path)
        #expect(posted.status == 0, "\(posted.errors)")
        #expect(posted.field("gorush") == "accepted")
        let body = String(decoding: try #require(node.gorush.requests.last).body, as: UTF8.self)
        #expect(body.contains(#""tokens":["\#(OperatedNode.deviceToken)"]"#))
        #expect(body.contains(#""topic":"im.status.ethereum""#))

        let tokens = node.folder.path + "/token"
        try write("another-token\n", to: tokens)
        #expect(try await push("--token-file", tokens, "--platform", "firebase").status == 0)
        let other = String(decoding: try #require(node.gorush.requests.last).body, as: UTF8.self)
        #expect(other.contains(#""tokens":["another-token"]"#) && other.contains(#""platform":2"#))

        node.gorushAnswers(401)
        let refused = try await push(hash, "--identity", node.server.path)
        #expect(refused.status == 2)
        #expect(refused.field("reason")?.contains("may not post there") == true)
        #expect(try await node.admin("outbox", "list").rows.count == 1)

        for wrong in [
            [], [hash], [hash, "--token-file", tokens], ["--token-file", tokens], ["--token-file", tokens, "--platform", "apn"],
            [hash, "--platform", "apn", "--identity", node.server.path],
        ] {
            #expect(try await run(["admin", "test-push", "--data", node.data] + wrong).status == 64, "\(wrong)")
        }
        #expect(try await push(hash, "--installation", "x", "--identity", node.server.path).status == 65)
        #expect(node.leaks == [])
    }

    @Test("A test notification of a daemon lives as long as its requests") func testPushLifetime() async throws {
        defer { node.gorush.stop() }
        let (path, token) = (node.folder.path + "/waku-push.yaml", node.folder.path + "/token")
        try write("notifications:\n  - {ttl: remaining}\n", to: path)
        try write("a-token\n", to: token)
        let daemon = try await node.start("--config", path, "--max-request-age", "1h")
        let preview = try await node.recorded(
            ["admin", "test-push", "--data", node.data, "--token-file", token, "--platform", "firebase", "--preview"])
        // 3,600 s; the command's own would be 600 s.
        #expect(preview.status == 0 && preview.output.contains(#""time_to_live":3"#), "\(preview.output)\(preview.errors)")
        #expect(await daemon.stop().status == 0)
    }

    @Test("While a daemon runs it posts a test notification itself, to its own gorush") func testPushOfDaemon() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        let hash = try #require(try await node.admin("registrations", "list", "--json").json([RegistrationRow].self).first?.keyHash)
        func push(_ arguments: String...) async throws -> Ended {
            try await node.recorded(["admin", "test-push", hash, "--data", node.data, "--identity", node.server.path] + arguments)
        }
        let posted = try await push()
        #expect(posted.status == 0, "\(posted.errors)")
        #expect(posted.field("gorush") == "accepted")
        #expect(String(decoding: try #require(node.gorush.requests.last).body, as: UTF8.self).contains(OperatedNode.deviceToken))
        let preview = try await push("--preview")
        #expect(preview.status == 0 && preview.output.contains(#""tokens":["<redacted>"]"#), "\(preview.errors)")
        // One that the command line names is asked in its place.
        #expect(try await push("--gorush", "http://127.0.0.1:1").status == 2)
        #expect(await daemon.stop().status == 0)
        // Without a daemon the default address: no gorush listens there.
        #expect(node.leaks == [])
    }
}
