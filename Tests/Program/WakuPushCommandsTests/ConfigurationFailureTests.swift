import Foundation
import TestSupport
import Testing

@testable import WakuPushCommands

/// `config check` and `serve` report all errors of a configuration at once, and `config check` warns.
@Suite(.timeLimit(.minutes(5)))
struct ConfigurationFailureTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private var path: String { folder.path + "/f.yaml" }

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    private func check(_ text: String, _ arguments: String..., environment: [String: String] = [:]) async throws -> Ended {
        try write(text, to: path)
        return try await run(["config", "check", "--config", path, "--identity", key.path] + arguments, environment: environment)
    }

    /// The lines on standard error other than recommendations, without the program's name and the folder.
    private func lines(_ ended: Ended) -> [String] {
        ended.errors.split(separator: "\n").filter { !$0.contains("recommendation: ") }.map {
            String($0).replacing("waku-push: ", with: "").replacing(path, with: "f.yaml")
        }
    }

    @Test func everyErrorHasItsLine() async throws {
        let ended = try await check(
            """
            poll-intervall: 1s
            poll-interval: soon
            reply-delay: 3s
            relay:
              - http://127.0.0.1:8645
              - nonsense
              - ftp://127.0.0.1
            limit:
              requests: lots
              queries: 5/s
              wishes: 1/s
            gorush-endpoints:
              - url: http://127.0.0.1:8088
                platforms: [ios]
                timeout: long
              - name: b
            notifications:
              - priority: urgent
                ttl: never
              - sound: s
                badge: 10000
            """, "--peer-count", "0", "--log-level", "loud", "--poll-interval=later",
            environment: ["WAKU_PUSH_MAX_REQUEST_AGE": "long"])
        #expect(ended.status == 65)
        #expect(ended.output == "")
        let expected = [
            "f.yaml:1: there is no option poll-intervall: did you mean poll-interval?",
            "--log-level has an invalid value, \"loud\": give trace, debug, info, notice, warning, error, critical",
            "--poll-interval has an invalid value, \"later\": give a duration such as 300ms",
            "f.yaml:2: poll-interval has an invalid value for --poll-interval, \"soon\": give a duration such as 300ms",
            "WAKU_PUSH_MAX_REQUEST_AGE has an invalid value for --max-request-age, \"long\": give a duration",
            "f.yaml:3: --reply-delay must be at most 2s", "f.yaml:9: --limit: requests=lots is not a rate",
            "f.yaml:11: --limit: there is no limit wishes", "f.yaml:18: priority can't be urgent: use",
            "f.yaml:19: ttl must be remaining", "f.yaml:21: badge must be from 0 to 9999",
            "f.yaml:14: unknown platform ios: use apn, firebase, huawei", "f.yaml:15: timeout must be from 5s to 10m",
            "f.yaml:16: this endpoint has no url", "f.yaml:6: the node's address", "f.yaml:7: the node's address",
            "--peer-count must be from 1 to 100",
        ]
        let lines = lines(ended)
        for text in expected { #expect(lines.contains { $0.hasPrefix(text) }, "\(text) in \(lines)") }
        #expect(lines.count == expected.count, "\(lines)")
    }

    @Test func anUnusableNodeKeyIsReported() async throws {
        let file = folder.path + "/node.key"
        try write("nonsense", to: file)
        let text = "node-key: \(file)\nlisten: /ip4/127.0.0.1/tcp/0"
        chmod(file, 0o600)
        let nonsense = try await check(text)
        #expect(nonsense.status == 65 && lines(nonsense).first?.hasPrefix("f.yaml:1: node key file \(file) does not contain") == true)
        chmod(file, 0o644)
        let readable = try await check(text)
        #expect(readable.status == 77 && lines(readable).first?.contains("is readable by others (mode 0644)") == true)
        // Without libp2p it is not read.
        #expect(try await check("node-key: \(file)\nrelay: http://127.0.0.1:8645").status == 0)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/other.key"))
    }

    @Test func secretHeadersThatOthersCanReadAreWarnedOf() async throws {
        let header = "Authorization: Bearer 1a2b"
        let given = try await check("gorush: https://gorush.example", "--gorush-header", header)
        #expect(lines(given).contains { $0.hasPrefix("warning: all users of this machine can see --gorush-header") }, "\(given.errors)")
        try write("gorush-header: ['\(header)']", to: path)
        for (mode, isWarned) in [(0o644, true), (0o640, false), (0o600, false)] {
            chmod(path, mode_t(mode))
            let ended = try await run(["config", "check", "--config", path, "--identity", key.path])
            #expect(ended.status == 0)
            #expect(lines(ended).contains { $0.contains("f.yaml:1: all users of this machine can read") } == isWarned, "\(ended.errors)")
        }
        let environment = try await check("gorush: https://gorush.example", environment: ["WAKU_PUSH_GORUSH_HEADER": header])
        #expect(lines(environment).allSatisfy { !$0.contains("all users") })
    }

    @Test func theSameErrorAtTwoPlacesIsReportedTwice() async throws {
        let ended = try await check(
            """
            gorush-endpoints:
              - {name: a, url: "ftp://a", token-file: /nowhere/token}
              - {name: b, url: "ftp://b", token-file: /nowhere/token}
            pubsub-topic: [a, a]
            """)
        let lines = lines(ended)
        for place in ["f.yaml:2: secret file", "f.yaml:2: the URL", "f.yaml:3: secret file", "f.yaml:3: the URL"] {
            #expect(lines.count { $0.hasPrefix(place) } == 1, "\(lines)")
        }
        #expect(lines.count == 5, "\(lines)")
    }

    /// With a command line that can't be parsed, the errors of the file are reported beside the parser's.
    @Test func anUnknownOptionDoesNotHideTheErrorsOfTheFile() async throws {
        let ended = try await check("poll-intervall: 1s\n", "--no-such-option", "1")
        #expect(ended.status == 65)
        #expect(lines(ended).count == 2)
        #expect(ended.errors.contains("f.yaml:1: there is no option poll-intervall") && ended.errors.contains("--no-such-option"))
    }

    /// Other commands report the file's errors too, before they do anything.
    @Test func otherCommandsReportAllErrorsOfTheFile() async throws {
        try write("poll-intervall: 1s\ndata: [a: {b: c}]\n", to: path)
        let ended = try await run(["config", "show", "--config", path])
        #expect(ended.status == 65)
        #expect(lines(ended).count == 2)
        #expect(ended.output == "")
    }

    @Test func errorsAreCountedBeyondTheLimit() throws {
        let failures = ConfigurationFailures()
        for number in 0..<(ConfigurationFailures.limit + 5) {
            failures.check { throw CommandFailure(.data, "error \(number)") }
            failures.check { throw CommandFailure(.data, "error \(number)") }
        }
        let invalid = #expect(throws: InvalidConfiguration.self) { try failures.finish() }
        #expect(invalid?.failures.count == ConfigurationFailures.limit + 1)
        #expect(invalid?.failures.last?.message == "5 more errors: fix these first")
        try ConfigurationFailures().finish()
    }

    // MARK: Warnings

    @Test func defaultsHaveNoWarnings() async throws {
        let ended = try await check("")
        #expect(ended.status == 0)
        #expect(lines(ended) == [])
    }

    @Test func warningsDoNotChangeTheExitCode() async throws {
        try write("secret\n", to: folder.path + "/token")
        try write("# none yet\n", to: folder.path + "/allowed")
        let ended = try await check(
            """
            http: 0.0.0.0:9090
            gorush: http://gorush.example:8088
            gorush-token-file: \(folder.path)/token
            otlp: http://collector.example:4318
            limit:
              requests: 10/s
              installations-by-key: 50
              registration-count: 20
            max-request-age: 50s
            allow-keys: \(folder.path)/allowed
            """)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == "The configuration is valid.\n")
        let expected = [
            "warning: f.yaml:2: device tokens and gorush's credentials cross the network unencrypted to gorush: give it an https:// URL",
            "warning: f.yaml:4: traces cross the network unencrypted to the collector: give --otlp an https:// URL",
            "warning: f.yaml:1: --http 0.0.0.0:9090 can be reached from other machines, and no --http-host is given",
            "warning: f.yaml:6: --limit: requests-by-sender (20/s burst 500) never applies, as requests (10/s burst 10) is lower",
            "warning: f.yaml:7: --limit: installations-by-key (50) never applies, as registration-count (20) is lower",
            "warning: f.yaml:10: the file of --allow-keys lists no key, so that no device may register",
            "warning: a post to gorush may take as long as a notification is kept (--max-request-age)",
        ]
        let lines = lines(ended)
        for text in expected { #expect(lines.contains { $0.hasPrefix(text) }, "\(text) in \(lines)") }
        #expect(lines.count == expected.count, "\(lines)")
        #expect(!ended.errors.contains("secret\n"))
    }

    @Test(arguments: [
        "gorush: https://gorush.example", "gorush: http://localhost:8088", "gorush: http://[::1]:8088",
        "{http: 0.0.0.0:9090, http-host: push.example}", "limit: {requests: off}", "limit: {requests: 20/s burst 500}",
    ])
    func intendedSettingsHaveNoWarning(text: String) async throws {
        let ended = try await check(text)
        #expect(ended.status == 0)
        #expect(lines(ended) == [])
    }

    @Test func tracesNeedACollectorAndASecretHeaderFile() async throws {
        #expect(lines(try await check("otlp-rate: 0.5")) == ["f.yaml:1: --otlp-rate has no effect without --otlp"])
        let url = lines(try await check("otlp: 127.0.0.1:4318"))
        #expect(url.count == 1 && url[0].hasPrefix("f.yaml:1: --otlp is not the URL of a collector"), "\(url)")
        let rate = lines(try await check("{otlp: http://127.0.0.1:4318, otlp-rate: 2}"))
        #expect(rate.count == 1 && rate[0].contains("give a number from 0 to 1"), "\(rate)")
        let header = folder.path + "/header"
        try write("Authorization: Bearer secret\n", to: header)
        let text = "{otlp: http://127.0.0.1:4318, otlp-header-file: \(header)}"
        #expect(chmod(header, 0o644) == 0)
        let readable = lines(try await check(text))
        #expect(readable.count == 1 && readable[0].contains("chmod 600"), "\(readable)")
        #expect(chmod(header, 0o600) == 0)
        #expect(lines(try await check(text)) == [])
    }

    @Test func newInstallationsAreAdvisedToDiscloseNothing() async throws {
        let data = folder.path + "/data"
        func advice(_ text: String, _ arguments: String...) async throws -> [Substring] {
            try write(text, to: path)
            let ended = try await run(["config", "check", "--config", path, "--identity", key.path, "--data", data] + arguments)
            #expect(ended.status == 0 && ended.output == "The configuration is valid.\n")
            return ended.errors.split(separator: "\n").filter { $0.contains("recommendation: for a new installation") }
        }
        #expect(try await advice("").count == 1)
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        try write("k", to: data + "/libp2p.key")
        #expect(try await advice("").count == 1)
        #expect(try await advice("payload-profile: private").isEmpty)
        #expect(try await advice("", "--payload-profile", "combined").isEmpty)
        let endpoints = "gorush-endpoints: [{url: http://localhost:8088, payload-profile: rfc}]"
        #expect(try await advice(endpoints).isEmpty)
        try write("d", to: data + "/waku-push.sqlite")
        #expect(try await advice("").isEmpty)
    }

    @Test func settingsThatTellNotificationsApartAreRefusedWithTheProfilePrivate() async throws {
        let rules = """
            notifications:
              - {kinds: [mention], sound: ping.caf}
              - {ttl: remaining, collapse: chat, thread: chat}
              - {deep-link: "app://{chat}"}
              - {protocols: [session], ttl: remaining}
            """
        let refused = try await check("payload-profile: private\n" + rules)
        #expect(refused.status == 65)
        #expect(
            lines(refused) == [
                "f.yaml:1: notifications for gorush have kinds, ttl: remaining, collapse: chat, thread: chat, placeholders in deep-link, by which Apple and Google could tell them apart: remove these, or choose another payload-profile"
            ])
        #expect(try await check("payload-profile: combined\n" + rules).status == 0)
        let constant = "notifications: [{sound: default, priority: high, ttl: 1h}, {protocols: [session], ttl: remaining}]"
        #expect(try await check("payload-profile: private\n" + constant).status == 0)
    }
}
