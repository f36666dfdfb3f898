import CurlClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// Attacks by services that the daemon uses, and from its machine: the relay's REST API, gorush, a page in the operator's browser, a local
/// user. See the table in the Privacy article.
@Suite("Hostile relays, gorush servers, web pages and local users", .timeLimit(.minutes(5)))
struct HostileNeighboursTests {
    private static let secret = "0123456789abcdef0123"
    /// Times what is bounded by time, or by memory: sanitizers are slower and larger.
    private static let isSanitized = ProcessInfo.processInfo.environment["TEST_TIMEOUT_FACTOR"] != nil
    /// For an answer of 64 MiB, a copy of it, and what a debug build needs besides.
    private static let room = (isSanitized ? 2048 : 320) << 20

    private let node: OperatedNode
    private let client = CurlClient()

    init() throws {
        node = try OperatedNode()
    }

    /// A daemon that is attached to one relay. It need not become ready.
    private func start(relay: String, data: String? = nil) async throws -> (process: ChildProcess, url: String) {
        let port = try freePort()
        let process = try ChildProcess(
            [
                "serve", "--identity", node.server.path, "--data", data ?? node.data, "--gorush", node.gorush.url, "--relay", relay,
                "--http", "127.0.0.1:\(port)", "--log-level", "info",
            ], limit: .seconds(240))
        let url = "http://127.0.0.1:\(port)"
        try await eventually { [client] in
            if !process.isRunning { return true }
            return (try? await client.send(HTTPRequest(url: url + "/healthz")).status) == 200
        }
        return (process, url)
    }

    private func readiness(_ url: String) async throws -> String {
        String(decoding: try await client.send(HTTPRequest(url: url + "/readyz", timeout: .seconds(60))).body, as: UTF8.self)
    }

    /// One that does not end is killed at its limit: then the status is another one.
    private func stop(_ process: ChildProcess) async {
        process.send(SIGTERM)
        #expect(await process.status == 0, "\(process.errors.suffix(500))")
    }

    // MARK: The relay's REST API

    /// Answers of the maximum length, which take many times as much memory when decoded.
    enum LargeAnswer: CaseIterable {
        case emptyObjects, hashes, numbers, nesting, cursor

        var body: [UInt8] {
            let byteCount = 60 << 20
            func repeated(_ text: String) -> [UInt8] {
                let bytes = Array(text.utf8)
                var result: [UInt8] = []
                result.reserveCapacity(byteCount + bytes.count)
                while result.count < byteCount { result += bytes }
                return result
            }
            return switch self {
            case .emptyObjects: Array(#"{"statusCode":200,"messages":["#.utf8) + repeated("{},") + Array("{}]}".utf8)
            case .hashes: Array(#"{"messages":["#.utf8) + repeated(#"{"messageHash":"0x00"},"#) + Array("{}]}".utf8)
            case .numbers: Array(#"{"messages":[],"x":["#.utf8) + repeated("1,") + Array("1]}".utf8)
            case .nesting: Array(#"{"messages":"#.utf8) + repeated("[")
            case .cursor: Array(#"{"messages":[],"paginationCursor":""#.utf8) + repeated("a") + Array(#""}"#.utf8)
            }
        }
    }

    @Test(arguments: LargeAnswer.allCases)
    func aStoreCannotExhaustMemoryOrDelayTheStop(answer: LargeAnswer) async throws {
        defer { node.gorush.stop() }
        let body = answer.body
        let head = Array("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
        let relay = try LyingNode { call in call.hasPrefix("GET /store") ? .bytes(head + body) : nil }
        defer { relay.server.stop() }
        let daemon = try await start(relay: relay.url)
        let before = try #require(residentBytes(daemon.process.processID, "VmRSS"))
        // It is asked again once the first answer was read, and polls go on beside it.
        try await eventually { relay.count("GET /store") >= 2 }
        let polls = relay.count("GET /relay")
        try await eventually { relay.count("GET /relay") > polls + 5 }
        #expect(try await readiness(daemon.url) == "ready\n")
        let highest = try #require(residentBytes(daemon.process.processID, "VmHWM"))
        #expect(highest - before < Self.room, "\(before >> 20) MiB before, \(highest >> 20) MiB at most")
        await stop(daemon.process)
    }

    /// On the node's own topic, so that each is looked at.
    @Test func aLargePollDoesNotDelayTheStop() async throws {
        defer { node.gorush.stop() }
        let shown = try await run("identity", "show", "--identity", node.server.path)
        let topic = try #require(shown.field("partitioned topic"))
        let element = { (number: Int) in #"{"payload":"AA==","contentTopic":"\#(topic)","timestamp":\#(number),"version":1}"# }
        let poll = "[" + (0..<600_000).map(element).joined(separator: ",") + "]"
        let relay = try LyingNode { call in call.hasPrefix("GET /relay/v1/messages") ? LyingNode.page(poll) : nil }
        defer { relay.server.stop() }
        let daemon = try await start(relay: relay.url)
        try await eventually { relay.count("GET /relay/v1/messages") >= 1 }
        try await eventually { try await dropped(daemon.url) > 0 }
        await stop(daemon.process)
    }

    private func dropped(_ url: String) async throws -> Int {
        let text = String(decoding: try await client.send(HTTPRequest(url: url + "/metrics", timeout: .seconds(60))).body, as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("waku_push_messages_dropped_total") }
        return lines.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0) { $0 + Int($1) }
    }

    /// Its texts are shown as plain text everywhere: no escape sequences (U+009B begins some), no characters that change the text direction,
    /// no markup.
    @Test func textFromTheRelayIsShownAsPlainText() async throws {
        defer { node.gorush.stop() }
        let words = "\u{9b}31mred\u{202e}evil<script>alert(1)</script>\u{1b}[2J\u{2028}forged line\r\nforged line"
        let relay = try LyingNode { call in call.hasPrefix("GET /relay") ? .status(500, body: words) : nil }
        defer { relay.server.stop() }
        let daemon = try await start(relay: relay.url)
        try await eventually { try await readiness(daemon.url).contains("500") }
        let answer = try await client.send(HTTPRequest(url: daemon.url + "/readyz"))
        #expect(String(decoding: answer.body, as: UTF8.self).split(separator: "\n").count == 1)
        #expect(answer.body.allSatisfy { (0x20..<0x7F).contains($0) || $0 == 0x0A })
        #expect(answer.header("X-Content-Type-Options") == "nosniff")
        let page = String(decoding: try await client.send(HTTPRequest(url: daemon.url + "/")).body, as: UTF8.self)
        #expect(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert"))
        try await eventually { daemon.process.errors.contains("failed to attach to relay") }
        await stop(daemon.process)
        for scalar in ["\u{9b}", "\u{202e}", "\u{1b}", "\u{2028}"] { #expect(!daemon.process.errors.contains(scalar)) }
        #expect(!daemon.process.errors.contains("forged line"))
    }

    /// Neither those of the relay nor those of gorush: its credentials would be sent along.
    @Test(arguments: [301, 302, 307, 308])
    func redirectsAreNotFollowed(status: Int) async throws {
        defer { node.gorush.stop() }
        let other = try RawHTTPServer { _ in .status(200, body: #"{"counts":1}"#) }
        defer { other.stop() }
        let redirect = { @Sendable (path: String) in RawHTTPServer.Reply.status(status, headers: ["Location: \(other.url)\(path)"]) }
        let relay = try LyingNode { call in call.hasPrefix("GET /relay") ? redirect("/relay/v1/messages/x") : nil }
        defer { relay.server.stop() }
        let daemon = try await start(relay: relay.url)
        try await eventually { relay.count("GET /relay") >= 2 }
        await stop(daemon.process)

        let gorush = try RawHTTPServer { _ in redirect("/api/push") }
        defer { gorush.stop() }
        let token = node.folder.path + "/token"
        try write("a-secret-token", to: token)
        let second = try await Daemon.start([
            "--identity", node.server.path, "--data", node.data, "--gorush", gorush.url, "--gorush-token-file", token,
        ])
        #expect(try await node.register(second).status == 0)
        #expect(
            try await node.client(second, "notify", "--registrant", node.bob.publicKey, "--message-id", "01").failure
                == "not all devices were notified: INTERNAL_ERROR")
        try await eventually { try await second.get("/readyz").status == 503 }
        let ended = await second.stop()
        #expect(ended.status == 0 && !ended.errors.contains("a-secret-token"))
        #expect(other.requests.isEmpty)
    }

    // MARK: gorush

    enum GorushAttack: CaseIterable {
        case longBody, endlessHeaders, interimResponses, wrongLength, negativeLength, falseEncoding, nesting, hugeNumbers, manyValues,
            strangeStatus

        var reply: RawHTTPServer.Reply {
            func ok(_ body: String, _ headers: [String] = []) -> RawHTTPServer.Reply { .status(200, headers: headers, body: body) }
            return switch self {
            case .longBody: .last(Array("HTTP/1.1 200 OK\r\n\r\n".utf8) + [UInt8](repeating: 0x20, count: 16 << 20))
            case .endlessHeaders:
                .last(
                    Array(("HTTP/1.1 200 OK\r\n" + String(repeating: "X-A: \(String(repeating: "a", count: 8000))\r\n", count: 1000)).utf8))
            case .interimResponses: .last(Array(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 100_000).utf8))
            case .wrongLength: .last(Array("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}".utf8))
            case .negativeLength: .last(Array("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}".utf8))
            case .falseEncoding: ok("\u{1f}\u{8b}zeros", ["Content-Encoding: gzip"])
            case .nesting: ok(#"{"counts":1,"logs":"# + String(repeating: "[", count: 1_000_000))
            case .hugeNumbers:
                ok(#"{"counts":1e400,"logs":[{"notif_id":1e999,"error":"Unregistered"}],"counts":99999999999999999999999999}"#)
            case .manyValues: ok(#"{"counts":1,"logs":["# + Array(repeating: "{}", count: 340_000).joined(separator: ",") + "]}")
            case .strangeStatus: .last(Array("HTTP/1.1 999 <script>\u{1b}[2J\r\nRetry-After: 99999999999999999999\r\n\r\n".utf8))
            }
        }
    }

    /// Waiting notifications are delivered when gorush recovers.
    @Test(arguments: GorushAttack.allCases)
    func invalidAnswersOfGorushAreHarmless(attack: GorushAttack) async throws {
        defer { node.gorush.stop() }
        let reply = SharedReply()
        let gorush = try RawHTTPServer { request in reply.reply.withLock(\.self) ?? GorushStandIn.reply(to: request, status: 200) }
        defer { gorush.stop() }
        let daemon = try await Daemon.start([
            "--identity", node.server.path, "--data", node.data, "--gorush", gorush.url, "--log-level", "info",
        ])
        #expect(try await node.register(daemon).status == 0)
        let before = try #require(residentBytes(daemon.process.processID, "VmRSS"))
        reply.reply.withLock { $0 = attack.reply }
        _ = try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "0a")
        #expect(gorush.requests.contains { $0.head.hasPrefix("POST") })
        let highest = try #require(residentBytes(daemon.process.processID, "VmHWM"))
        #expect(highest - before < (Self.isSanitized ? 1024 : 48) << 20, "\(before >> 20) MiB before, \(highest >> 20) MiB at most")
        reply.reply.withLock { $0 = nil }
        try await eventually { try await daemon.get("/readyz").status == 200 }
        #expect(try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "0b").status == 0)
        let ended = await daemon.stop()
        #expect(ended.status == 0)
        #expect(!ended.errors.contains("\u{1b}") && !ended.errors.contains("<script>"))
        node.record(ended)
        #expect(node.leaks == [])
    }

    private final class SharedReply: Sendable {
        let reply = Mutex<RawHTTPServer.Reply?>(nil)
    }

    /// A reply affects only the notifications of its own post, and repeated failures of a token, as from a gorush that retries, count once, so
    /// that they do not trigger the guard.
    @Test func repliesCountOnlyForTheirOwnPostAndOncePerToken() async throws {
        defer { node.gorush.stop() }
        let isLying = SharedReply()
        let gorush = try RawHTTPServer { request in
            let pattern = /"notif_id":"([0-9a-f]+)"/
            let ids = String(decoding: request.body, as: UTF8.self).matches(of: pattern).map { String($0.1) }
            guard isLying.reply.withLock({ $0 != nil }), !ids.isEmpty else { return GorushStandIn.reply(to: request, status: 200) }
            let named = Array(
                repeating: ids + [String(repeating: "0", count: 32), "", "../..", String(repeating: "f", count: 4000)], count: 50)
            let logs = named.flatMap(\.self).map { id in
                #"{"notif_id":"\#(id)","type":"failed-push","platform":"ios","token":"****************","error":"Unregistered"}"#
            }
            return .status(200, body: #"{"success":"ok","counts":\#(ids.count),"logs":[\#(logs.joined(separator: ","))]}"#)
        }
        defer { gorush.stop() }
        let daemon = try await Daemon.start([
            "--identity", node.server.path, "--data", node.data, "--gorush", gorush.url, "--log-level", "info",
        ])
        #expect(try await node.register(daemon).status == 0)
        // A device of another registrant that was notified before: this reply must not report its failure.
        #expect(
            try await node.client(
                daemon, "register", "--identity", node.alice.path, "--device-token", "a11ce", "--apn-topic", "im.status.ethereum",
                "--installation", "alices-phone"
            ).status == 0)
        #expect(try await node.client(daemon, "notify", "--registrant", node.alice.publicKey, "--message-id", "01").status == 0)
        isLying.reply.withLock { $0 = .hang }
        _ = try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "02")
        isLying.reply.withLock { $0 = nil }
        try await eventually {
            let listed = try await node.admin("registrations", "list", "--platform", "apn")
            return !listed.output.contains("bobs-phone")
        }
        #expect(try await node.admin("registrations", "list", "--platform", "apn").output.contains("alices-phone"))
        let ended = await daemon.stop()
        #expect(ended.status == 0 && !ended.errors.contains("too many tokens fail alike"))
    }

    // MARK: A page in the operator's browser

    @Test func aPageInABrowserCanNeitherReadNorChangeAnything() async throws {
        defer { node.gorush.stop() }
        let secretFile = node.folder.path + "/secret"
        try write(Self.secret, to: secretFile)
        let daemon = try await node.start("--feedback-secret-file", secretFile)
        let origin = ("Origin", "http://evil.example")
        let feedback = #"{"notif_id":"00000000000000000000000000000000","platform":"ios","token":"*","error":"Unregistered"}"#
        // A form, or a fetch without a preflight, sends such bodies to anywhere, without headers of its choice.
        for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let post = HTTPRequest(
                method: "POST", url: daemon.httpURL + "/feedback", headers: [origin, ("Content-Type", type)], body: Array(feedback.utf8))
            #expect(try await client.send(post).status == 401)
        }
        // Secrets that are almost right, and those in the wrong place.
        for (name, value) in [
            ("X-Waku-Push-Secret", Self.secret + "0"), ("X-Waku-Push-Secret", String(Self.secret.dropLast())),
            ("X-Waku-Push-Secret", Self.secret.uppercased()), ("Authorization", "Bearer"), ("Authorization", "Bearer  \(Self.secret) x"),
        ] {
            let post = HTTPRequest(method: "POST", url: daemon.httpURL + "/feedback", headers: [(name, value)], body: Array(feedback.utf8))
            #expect([401, 403].contains(try await client.send(post).status), "\(name)")
        }
        // No preflight succeeds, for lack of Access-Control headers, and no answer may be read by another origin.
        for (method, path) in [
            ("OPTIONS", "/feedback"), ("OPTIONS", "/"), ("GET", "/"), ("GET", "/status.json"), ("GET", "/metrics"), ("GET", "/readyz"),
            ("TRACE", "/"), ("DELETE", "/"), ("PUT", "/status.json"),
        ] {
            let answer = try await client.send(
                HTTPRequest(
                    method: method, url: daemon.httpURL + path,
                    headers: [origin, ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "X-Waku-Push-Secret")]))
            #expect(answer.headers.allSatisfy { !$0.name.lowercased().hasPrefix("access-control-") }, "\(method) \(path)")
            if method == "OPTIONS" {
                #expect(answer.status == 204, "\(method) \(path)")
            } else if method != "GET" {
                #expect(answer.status >= 400, "\(method) \(path)")
            }
        }
        for path in ["/relay/v1/messages/%2Fwaku%2F2%2Frs%2F16%2F32", "/store/v3/messages", "/health"] {
            #expect(
                try await client.send(HTTPRequest(url: daemon.relayURL + path, headers: [("Sec-Fetch-Site", "cross-site")])).status == 403)
        }
        #expect(try await node.register(daemon).status == 0)
        #expect(await daemon.stop().status == 0)
    }

    // MARK: A local user without rights

    /// Even with the umask 0, and in a folder that others may list.
    @Test func otherUsersCannotReadTheDataFolder() async throws {
        defer { node.gorush.stop() }
        try FileManager.default.createDirectory(atPath: node.data, withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: node.data)
        let daemon = try await Daemon.start(
            ["--identity", node.server.path, "--data", node.data, "--gorush", node.gorush.url], shell: "umask 0; exec \"$0\" \"$@\"")
        #expect(try await node.register(daemon).status == 0)
        try await eventually { FileManager.default.fileExists(atPath: node.data + "/admin.sock") }
        let names = try FileManager.default.contentsOfDirectory(atPath: node.data)
        #expect(Set(names).isSuperset(of: ["admin.sock", "lock", "node.key", "waku-push.sqlite", "waku-push.sqlite-wal"]), "\(names)")
        for name in names {
            let attributes = try FileManager.default.attributesOfItem(atPath: node.data + "/" + name)
            let mode = try #require(attributes[.posixPermissions] as? Int)
            #expect(mode & 0o077 == 0, "\(name) has mode \(String(mode, radix: 8))")
        }
        #expect(await daemon.stop().status == 0)
    }

    /// A user with write access to the folder could create a database, a node key or an admin socket there.
    @Test(arguments: [0o777, 0o1777, 0o703])
    func aWorldWritableFolderIsRefused(mode: Int) async throws {
        defer { node.gorush.stop() }
        try FileManager.default.createDirectory(atPath: node.data, withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: node.data)
        // Through a link as well.
        let link = node.folder.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: node.data)
        for path in [node.data, link] {
            let ended = try await run("serve", "--identity", node.server.path, "--data", path, "--listen", "off", "--http", "127.0.0.1:0")
            #expect(ended.status == 77)
            #expect(
                ended.failure
                    == "data folder \(path) can be written to by everybody (mode 0\(String(mode, radix: 8))): chmod 700 \(path), or give a "
                    + "folder in it by --data")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: node.data).isEmpty)
    }

    /// Files written by commands neither follow links nor replace existing files.
    @Test func symbolicLinksAreNotFollowed() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        let victim = node.folder.path + "/victim"
        try write("precious", to: victim, mode: 0o644)
        for (number, command) in [["backup"], ["registrations", "export"]].enumerated() {
            let file = node.folder.path + "/out\(number)"
            try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: victim)
            let refused = try await node.recorded(
                ["admin"] + command + [file, "--data", node.data, "--identity", node.server.path])
            #expect(refused.status == 73, "\(refused.errors)")
            // The name that a backup has until it is whole.
            let next = node.folder.path + "/next\(number)"
            try FileManager.default.createSymbolicLink(atPath: next + ".partial", withDestinationPath: victim)
            let made = try await node.recorded(["admin"] + command + [next, "--data", node.data, "--identity", node.server.path])
            #expect(made.status == 0, "\(made.errors)")
            let attributes = try FileManager.default.attributesOfItem(atPath: next)
            #expect(attributes[.type] as? FileAttributeType == .typeRegular && attributes[.posixPermissions] as? Int == 0o600)
        }
        #expect(try String(contentsOfFile: victim, encoding: .utf8) == "precious")
        #expect(await daemon.stop().status == 0)
        // A lock that leads elsewhere is no lock.
        try FileManager.default.removeItem(atPath: node.data + "/lock")
        try FileManager.default.createSymbolicLink(atPath: node.data + "/lock", withDestinationPath: victim)
        let ended = try await run("serve", "--identity", node.server.path, "--data", node.data, "--listen", "off", "--http", "127.0.0.1:0")
        #expect(ended.status == 77)
        #expect(node.leaks == [])
    }

    /// Errors about a secret in the wrong file do not quote it.
    @Test func errorsDoNotQuoteSecretFiles() async throws {
        defer { node.gorush.stop() }
        let other = node.folder.path + "/other"
        try write("root:$6$hash-of-a-password:19000:0:99999:7:::\nsecond line", to: other)
        let common = ["serve", "--data", node.data, "--listen", "off", "--http", "127.0.0.1:0"]
        for arguments in [
            common + ["--identity", other], common + ["--identity", node.server.path, "--feedback-secret-file", other],
            common + ["--identity", node.server.path, "--gorush-token-file", other],
            common + ["--identity", node.server.path, "--allow-keys", other],
            common + ["--identity", node.server.path, "--config", other],
            ["client", "query", "--server", node.server.publicKey, "--registrant", other],
            ["admin", "restore", other, "--data", node.data, "--identity", node.server.path],
            ["admin", "registrations", "import", other, "--data", node.data, "--identity", node.server.path],
        ] {
            let ended = try await run(arguments)
            #expect(ended.status > 0, "\(arguments)")
            #expect(!(ended.errors + ended.output).contains("hash-of-a-password"), "\(arguments): \(ended.errors)")
        }
    }
}
