import CurlClient
import Foundation
import HTTPService
import TestSupport
import Testing

/// Options that `serve` refuses before it opens anything: `config check` reads them in the same way. Each is reported on one line, with the
/// exit code of its kind.
@Suite(.timeLimit(.minutes(5)))
struct PlanFailureTests {
    private let folder: TemporaryFolder
    private let key: KeyFile

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    /// Checks otherwise valid options with these.
    private func check(_ arguments: String..., environment: [String: String] = [:]) async throws -> Ended {
        let complete = ["--identity", key.path, "--data", folder.path + "/data", "--gorush", "http://127.0.0.1:8088"]
        return try await run(["config", "check"] + complete + arguments, environment: environment)
    }

    private func expect(_ ended: Ended, _ status: Int32, _ message: String, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(ended.status == status, sourceLocation: sourceLocation)
        #expect(ended.failure?.contains(message) == true, "\(ended.errors)", sourceLocation: sourceLocation)
        #expect(ended.output == "", sourceLocation: sourceLocation)
    }

    @Test func completeOptionsAreValid() async throws {
        let ended = try await check()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == "The configuration is valid.\n")
    }

    @Test func versionZeroOneIsSwitchedOnWithItsTopic() async throws {
        #expect(try await check("--status-v0.1", "--v0.1-apns-topic", "im.status.ethereum").status == 0)
        let environment = ["WAKU_PUSH_STATUS_V0_1": "true", "WAKU_PUSH_V0_1_APNS_TOPIC": "im.status.ethereum"]
        #expect(try await check(environment: environment).status == 0)
        expect(try await check("--v0.1-apns-topic", "im.status"), 64, "--v0.1-apns-topic has no effect without --status-v0.1")
        expect(try await check("--status-v0.1", "--v0.1-apns-topic", "a b"), 64, "--v0.1-apns-topic is not a bundle id")
    }

    @Test func valuesOfTheStoreThatLibpqRefusesAreFoundWithoutAConnection() async throws {
        #expect(try await check("--store", "host=192.0.2.1 dbname=push sslmode=verify-full").status == 0)
        expect(
            try await check("--store", "host=192.0.2.1 dbname=push sslmode=verify_full"), 64,
            "libpq refuses the store's address: invalid sslmode value")
    }

    @Test func theRateOfWebPushIsChecked() async throws {
        let vapid = folder.path + "/vapid.key"
        #expect(try await run("identity", "new-vapid", "--out", vapid).status == 0)
        func check(_ rate: String) async throws -> Ended {
            try await self.check(
                "--web-push", "--web-push-key", vapid, "--web-push-contact", "mailto:a@example.org", "--web-push-by-origin", rate)
        }
        for rate in ["20/s", "600/min burst 50"] { #expect(try await check(rate).status == 0) }
        expect(try await self.check("--web-push-by-origin", "20/s"), 64, "--web-push-by-origin has no effect without --web-push")
        for rate in ["fast", "0/s", "20/s burst", "off"] {
            expect(try await check(rate), 64, "--web-push-by-origin \(rate) is not a rate: write it like 100/s burst 1000")
        }
    }

    /// Clients renew within 30 days when they run.
    @Test func shortRegistrationLifetimesAreWarnedOf() async throws {
        for (lifetime, isShort) in [("59d", true), ("40s", true), ("60d", false), ("off", false)] {
            let ended = try await check("--registration-lifetime", lifetime)
            #expect(ended.status == 0 && ended.errors.contains("--registration-lifetime is below 60 days") == isShort, "\(ended.errors)")
        }
    }

    /// `serve` refuses the same.
    @Test func theDataFolderIsLookedAt() async throws {
        try write("a file", to: folder.path + "/file")
        expect(try await check("--data", folder.path + "/file"), 73, "data folder \(folder.path)/file is a file")
        expect(try await check("--data", ""), 73, "--data is empty")
        let shared = folder.path + "/shared"
        try FileManager.default.createDirectory(atPath: shared, withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: shared)
        expect(try await check("--data", shared), 77, "data folder \(shared) can be written to by everybody (mode 0777)")
        // Another user may be able to.
        let below = try await check("--data", folder.path + "/file/data")
        #expect(below.status == 0)
        #expect(below.errors.contains("warning: data folder \(folder.path)/file/data can't be made by this user"), "\(below.errors)")
    }

    @Test func listenersHaveDifferentAddresses() async throws {
        expect(
            try await check("--http", "127.0.0.1:8645"), 64,
            "--loopback-listen has the address of --http, 127.0.0.1:8645: give them different ports")
        #expect(try await check("--http", "127.0.0.1:8645", "--relay", "http://127.0.0.1:9000").status == 0)
        #expect(try await check("--http", "127.0.0.1:0", "--loopback-listen", "127.0.0.1:0").status == 0)
    }

    @Test(arguments: [["config", "check"], ["config", "show"], ["doctor"], ["serve"]])
    func unknownOptionsNameTheHelpOfTheirCommand(command: [String]) async throws {
        let ended = try await run(command + ["--no-such-option"])
        #expect(ended.status == 64)
        #expect(ended.failure?.contains("(see waku-push \(command.joined(separator: " ")) --help)") == true, "\(ended.errors)")
    }

    @Test func anIdentityIsNeeded() async throws {
        expect(
            try await run("config", "check"), 64, "--identity is missing: make a key with waku-push identity new --out id.key")
        expect(
            try await run("config", "check", "--identity", folder.path + "/none"), 65,
            "identity file \(folder.path)/none is missing: make one with waku-push identity new")
    }

    @Test func severalIdentitiesAreDistinctAndFew() async throws {
        let keys = try (1...4).map { try KeyFile(in: folder, "other-\($0).key") }
        #expect(try await check("--identity", keys[0].path).status == 0)
        let environment = ["WAKU_PUSH_IDENTITY": "\(key.path), \(keys[0].path)"]
        #expect(try await run(["config", "check"], environment: environment).status == 0)
        let config = folder.path + "/identities.yaml"
        try "identity:\n  - \(key.path)\n  - \(keys[0].path)\n".write(toFile: config, atomically: true, encoding: .utf8)
        #expect(try await run(["config", "check", "--config", config]).status == 0)
        expect(try await check("--identity", key.path), 64, "has the same key as another one: give each key once")
        #expect(try await check("--identity", keys[0].path, "--status-v0.1").status == 0)
        let five = try await run(["config", "check"] + ([key] + keys).flatMap { ["--identity", $0.path] })
        expect(five, 64, "--identity is given 5 times: at most 4 are served")
    }

    @Test(arguments: [
        "nonsense", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://127.0.0.1/?a=b", "http://user:hidden@127.0.0.1",
    ])
    func badRelay(url: String) async throws {
        let ended = try await check("--relay", url)
        expect(ended, 64, "the node's address ")
        #expect(!ended.errors.contains("hidden"))
    }

    @Test(arguments: [
        "nonsense", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://127.0.0.1/?a=b", "http://user:hidden@127.0.0.1",
    ])
    func badGorush(url: String) async throws {
        let ended = try await check("--gorush", url)
        expect(ended, 64, "gorush")
        #expect(!ended.errors.contains("hidden"))
    }

    @Test(arguments: ["banana", "300", "0ms", "-1s", "1.5s", "9999999999h", ""])
    func badPollInterval(interval: String) async throws {
        expect(try await check("--poll-interval=\(interval)"), 64, "--poll-interval")
    }

    @Test(arguments: [
        ("--http", "9090"), ("--http", "127.0.0.1:65536"), ("--loopback-listen", "here"), ("--payload-profile", "fancy"),
        ("--log-level", "loud"), ("--log-format", "xml"), ("--max-request-age", "soon"), ("--pubsub-topic", "no-slash"),
        ("--gorush-header", "no colon"), ("--gorush-header", "X Key: v"), ("--gorush-header", "X-Key: a\u{1}b"), ("--listen", "60000"),
        ("--listen", "/dns4/localhost/tcp/1"),
        ("--relay", "/ip4/127.0.0.1/tcp/60000"), ("--fleet", "status.none"), ("--fleet", "enrtree://AA@x"), ("--peer-count", "0"),
        ("--exempt-network", "10.0.0.0/33"), ("--exempt-network", "localhost"),
        ("--reply-delay", "3s"), ("--unknown-hold", "61s"), ("--poll-interval", "61s"), ("--derive-ahead-limit", "0"),
        ("--derive-ahead", "perhaps"),
        ("--dns", "localhost:53"), ("--http-host", "push.example:9090"), ("--limit", "registrations=1/d burst 200000"),
        ("--no-such-option", "1"),
    ])
    func otherBadOptions(option: String, value: String) async throws {
        expect(try await check(option, value), 64, option)
    }

    @Test(arguments: [
        ("POLL_INTERVAL", "banana"), ("HTTP", "9090"), ("LOOPBACK_LISTEN", "here"), ("PAYLOAD_PROFILE", "fancy"), ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"), ("MAX_REQUEST_AGE", "soon"), ("IDEMPOTENT_REGISTRATIONS", "perhaps"),
    ])
    func badEnvironment(name: String, value: String) async throws {
        expect(try await check(environment: ["WAKU_PUSH_" + name: value]), 64, "WAKU_PUSH_\(name) ")
    }

    @Test func certificatesThatAreMissing() async throws {
        let file = folder.path + "/missing.pem"
        expect(try await check("--gorush-ca", file), 65, "certificates \(file) can't be read: give --gorush-ca a PEM file")
        expect(try await check("--gorush-ca", folder.path), 65, "certificates \(folder.path) can't be read: give --gorush-ca a PEM file")
        try "nonsense\n".write(toFile: file, atomically: true, encoding: .utf8)
        expect(try await check("--gorush-ca", file), 65, "certificates \(file) has no certificate in PEM format")
        let webPush = try await check("--web-push", "--web-push-ca", file)
        #expect(webPush.errors.contains("certificates \(file) has no certificate in PEM format: give --web-push-ca a PEM file"))
    }

    @Test("A file of certificates that libcurl could not load is refused, also if only its end is cut off")
    func certificatesThatAreDamaged() async throws {
        let authority = try #require(TrialCertificate(hosts: ["localhost"])).authority
        let file = folder.path + "/authorities.pem"
        let other = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let url = "https" + server.url.dropFirst("http".count)
        for (text, isComplete) in [(authority + authority, true), (authority + authority.prefix(300), false), (authority + other, false)] {
            try text.write(toFile: file, atomically: true, encoding: .utf8)
            let checked = try await check("--gorush-ca", file)
            let message = "certificates \(file) are damaged or cut off: give --gorush-ca a complete PEM file"
            #expect(checked.errors.contains(message) != isComplete)
            // libcurl agrees.
            let client = CurlClient(configuration: CurlConfiguration(trust: .file(path: file)))
            let error = await #expect(throws: HTTPError.self) { try await client.send(HTTPRequest(url: url)) }
            #expect((error?.message == "the file of trusted certificates can't be used") != isComplete, "\(error?.message ?? "")")
        }
    }

    @Test func secretsThatAreMissing() async throws {
        let file = folder.path + "/missing"
        expect(try await check("--gorush-token-file", file), 65, "secret file \(file) can't be read")
        expect(try await check("--gorush-user", "u", "--gorush-password-file", file), 65, "secret file \(file) can't be read")
        expect(try await check("--gorush-user", "u"), 64, "--gorush-user needs --gorush-password-file")
        expect(try await check("--gorush-password-file", file), 64, "--gorush-password-file needs --gorush-user")
    }

    @Test func listenNeedsAGossipRelay() async throws {
        expect(
            try await check("--listen", "/ip4/127.0.0.1/tcp/0", "--relay", "http://127.0.0.1:8645"), 64,
            "--listen needs --fleet or a --relay that is a multiaddr or loopback")
    }

    /// Messages that the loopback relay missed are not looked up at peers.
    @Test(arguments: [
        ("--fleet", "status.prod"), ("--relay", "/ip4/10.0.0.5/tcp/60000/p2p/16Uiu2HAmLhLvBoYaoZfaMUKuibM6ac163GwKY74c5kiSLg5KvLpY"),
    ])
    func theLoopbackRelayDialsNoPeers(option: String, value: String) async throws {
        expect(
            try await check("--relay", "loopback", option, value), 64,
            "--relay loopback excludes --fleet and a --relay that is a multiaddr")
    }
}
