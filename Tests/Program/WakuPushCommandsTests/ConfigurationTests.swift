import Foundation
import TestSupport
import Testing

/// Configuration files that `config` and other commands read.
@Suite(.timeLimit(.minutes(5)))
struct ConfigurationTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private var path: String { folder.path + "/waku-push.yaml" }

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    private func check(_ text: String, _ arguments: [String] = [], environment: [String: String] = [:]) async throws -> Ended {
        try write(text, to: path)
        return try await run(["config", "check", "--config", path, "--identity", key.path] + arguments, environment: environment)
    }

    /// The printed file sets nothing, and is valid with all options uncommented.
    @Test func defaults() async throws {
        let text = try await run(["config", "default"]).output
        #expect(try await check(text).status == 0)
        let words = text.split(separator: "\n").filter { $0.hasPrefix("#") && !$0.hasPrefix("# ") }
        #expect(words.count > 25)
        // Options without a default have no value and count as unset.
        let all = words.map { String($0.dropFirst()) }.filter {
            !$0.hasPrefix("gorush-endpoints") && !$0.hasPrefix("  - ") && !$0.hasPrefix("    ")
        }
        let ended = try await check(all.joined(separator: "\n"))
        #expect(ended.status == 0, "\(ended.errors)")
    }

    /// A template that left out a value must not open the node unnoticed.
    @Test func optionsWithoutAValueAreWarnedOf() async throws {
        let ended = try await check("data: d\nallow-keys:\n", environment: ["WAKU_PUSH_STORE": ""])
        #expect(ended.status == 0)
        #expect(ended.errors.contains(":2: allow-keys has no value, which counts as not set"), "\(ended.errors)")
        #expect(ended.errors.contains("WAKU_PUSH_STORE is empty, which counts as not set"), "\(ended.errors)")
    }

    @Test func variablesOfNoOptionAreWarnedOf() async throws {
        let environment = [
            "WAKU_PUSH_POLL_INTERVALL": "1s", "WAKU_PUSH_STATUS_V0.1": "true", "WAKU_PUSH_UNRELATED_WORD": "1", "WAKU_PUSH_FOO": "1",
            // Those of an option, of another program and of Kubernetes.
            "WAKU_PUSH_POLL_INTERVAL": "1s", "WAKU_PUSHER": "1", "WAKU_PUSH_SERVICE_HOST": "10.0.0.1",
            "WAKU_PUSH_SERVICE_PORT_HTTP": "9090", "WAKU_PUSH_PORT": "tcp://10.0.0.1:9090", "WAKU_PUSH_PORT_9090_TCP_ADDR": "10.0.0.1",
        ]
        let ended = try await check("payload-profile: private", environment: environment)
        #expect(ended.status == 0)
        let prefix = "waku-push: warning: the environment variable "
        #expect(
            ended.errors.split(separator: "\n").map(String.init) == [
                prefix + "WAKU_PUSH_FOO belongs to no option: waku-push config show lists all options",
                prefix + "WAKU_PUSH_POLL_INTERVALL belongs to no option: did you mean WAKU_PUSH_POLL_INTERVAL?",
                prefix + "WAKU_PUSH_STATUS_V0.1 belongs to no option: did you mean WAKU_PUSH_STATUS_V0_1?",
                prefix + "WAKU_PUSH_UNRELATED_WORD belongs to no option: waku-push config show lists all options",
            ])
    }

    @Test func showPrintsValuesAndSources() async throws {
        try write("0x" + String(repeating: "ab", count: 64) + " # a hash\n\n# nobody\n\(key.publicKey)\n", to: folder.path + "/keys")
        try write("secret\n", to: folder.path + "/token")
        let ended = try await check(
            """
            poll-interval: 1s
            relay: [http://127.0.0.1:8645, "http://127.0.0.1:8646"]
            pubsub-topic: /waku/2/rs/16/32
            idempotent-registrations: true
            allow-keys: \(folder.path)/keys
            registration-lifetime: 90d
            limit:
              requests-by-sender: 5/s burst 50
              installations-by-key: 10
              queries: off
            gorush-endpoints:
              - {name: apple, url: "https://a.example", platforms: [apn], apn-topics: [a, b], token-file: \(folder.path)/token, connections: 4}
              - {name: google, url: "https://b.example/gorush", platforms: firebase, headers: ["X-One: 1"], timeout: 90s}
            """)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == "The configuration is valid.\n")
    }

    @Test(
        arguments: [
            ("poll-intervall: 1s", ":1: there is no option poll-intervall: did you mean poll-interval?"),
            ("data: d\nxyzzy: 1", ":2: there is no option xyzzy: waku-push config default lists all options"),
            ("poll-interval: soon", ":1: poll-interval has an invalid value for --poll-interval, \"soon\": give a duration such as 300ms"),
            ("idempotent-registrations: perhaps", ":1: idempotent-registrations is neither true nor false: set it to true or false"),
            ("gorush-endpoints: [{url: \"http://a\", token-file: }]", ":1: token-file has no value: give it one, or remove the key"),
            ("- a\n- b", ": it must consist of lines \"option: value\""),
            ("relay: [a: {b: c}]", ":1: items of relay must be plain values"), ("data: [a]", ":1: data must be one value, not a list"),
            ("data: \"open", ": line "),
            ("data: a\ndata: b", "duplicate key data on lines 1, 2: remove all but one"),
            ("limit: {wishes: 1/s}", "--limit: there is no limit wishes"),
            ("limit: {requests: lots}", "--limit: requests=lots is not a rate"),
            ("limit: {registrations: 1/d burst 200000}", "can't be counted: the burst takes over 100 years to refill"),
            ("gorush-endpoints: {url: x}", ":1: gorush-endpoints must be a list of endpoints"),
            ("gorush-endpoints: [{name: a}]", ":1: this endpoint has no url"),
            ("gorush-endpoints: [{url: \"http://a\", platfrom: apn}]", ":1: there is no option platfrom: did you mean platforms?"),
            (
                "gorush-endpoints: [{url: \"http://a\", services: [fcm]}]",
                ":1: unknown service fcm: use apns, apns-sandbox, firebase, huawei"
            ),
            ("gorush-endpoints: [{url: \"http://a\", platforms: [ios]}]", ":1: unknown platform ios: use apn, firebase, huawei"),
            ("gorush-endpoints: [{url: \"http://a\", connections: 0}]", ":1: connections must be from 1 to 64"),
            ("gorush-endpoints: [{url: \"http://a\", timeout: 4s}]", ":1: timeout must be from 5s to 10m"),
            ("gorush-endpoints: [{url: \"http://a\", timeout: long}]", ":1: timeout must be from 5s to 10m"),
            ("gorush-timeout: 11m", "--gorush-timeout must be from 5s to 10m"),
            ("gorush-connections: 0\ngorush-endpoints: [{url: \"http://a\"}]", "--gorush-connections must be from 1 to 64"),
            ("gorush-endpoints: [{url: \"ftp://a\"}]", "does not begin with http"),
            ("gorush-endpoints: [{url: \"http://a\", name: x}, {url: \"http://b\", name: x}]", ":1: duplicate endpoint name x"),
            ("gorush: http://a\ngorush-endpoints: [{url: \"http://b\"}]", "gorush-endpoints and gorush are mutually exclusive"),
            ("gorush-token-file: /nowhere/token", "secret file /nowhere/token can't be read"),
            ("allow-keys: /nowhere/keys", "list of keys /nowhere/keys can't be read"),
        ])
    func problems(text: String, message: String) async throws {
        let ended = try await check(text)
        #expect(ended.status == 64 || ended.status == 65)
        #expect(ended.failure?.contains(message) == true, "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").count == 1)
    }

    @Test func aMissingConfigurationFileIsAnError() async throws {
        for command in [["serve"], ["doctor"], ["config", "show"], ["admin", "status"]] {
            let ended = try await run(command + ["--config", folder.path + "/none.yaml"])
            #expect(ended.status == 65)
            let unreadable = "can't be read: is it there, a regular file, and may this user read it?"
            #expect(ended.failure == "configuration \(folder.path)/none.yaml \(unreadable)")
        }
    }

    /// Flag, environment, file, default, in this order.
    @Test func precedence() async throws {
        try write("poll-interval: 1s\nmax-request-age: 2m\noutbox-limit: 3\ngorush-header: [\"Authorization: hidden-secret\"]\n", to: path)
        let ended = try await run(
            ["config", "show", "--config", path, "--poll-interval=4s", "--json"],
            environment: ["WAKU_PUSH_MAX_REQUEST_AGE": "5m", "WAKU_PUSH_POLL_INTERVAL": "6s"])
        struct Value: Decodable {
            let option: String
            let values: [String]
            let source: String
        }
        let values = try JSONDecoder().decode([Value].self, from: Data(ended.output.utf8))
        func shown(_ option: String) -> [String]? { values.first { $0.option == option }.map { $0.values + [$0.source] } }
        #expect(shown("poll-interval") == ["4s", "command line"])
        #expect(shown("max-request-age") == ["5m", "WAKU_PUSH_MAX_REQUEST_AGE"])
        #expect(shown("outbox-limit") == ["3", "\(path):3"])
        #expect(shown("data") == ["data", "default"])
        #expect(shown("gorush") == ["http://127.0.0.1:8088", "default"])
        #expect(shown("pubsub-topic") == ["/waku/2/rs/16/32", "default"])
        #expect(shown("store") == ["default"])
        #expect(shown("gorush-header") == ["Authorization: …", "\(path):4"])
        #expect(!ended.output.contains("hidden-secret"))
        let table = try await run(["config", "show", "--config", path])
        #expect(table.output.split(separator: "\n").contains { $0.hasPrefix("poll-interval ") && $0.hasSuffix("\(path):1") })
        #expect(!table.output.contains("hidden-secret"))
    }
}
