import Delivery
import Foundation
import PushNode
import StatusServer
import TestSupport
import Testing
import WakuCrypto

@testable import NodeAssembly
@testable import WakuPushCommands

/// The options that nodes with one identity compare.
struct SharedSettingsTests {
    /// Options in which nodes may differ, those of a node's own place first. A new option belongs here or into `SharedSettings`.
    private static let different: Set<String> = [
        "data", "store", "cluster", "relay", "loopback-listen", "listen", "node-key", "exempt-network", "attach", "fleet", "peer-count",
        "dns", "poll-interval", "http", "http-host", "documentation", "log-level", "log-format", "otlp", "otlp-rate", "otlp-slow",
        "otlp-header-file",
        // How it posts.
        "gorush-connections", "gorush-batch", "gorush-ca", "gorush-user", "gorush-password-file", "gorush-token-file",
        "gorush-header", "feedback-secret-file", "web-push-contact", "web-push-allow", "web-push-ca", "web-push-by-origin", "outbox-limit",
        "unknown-hold",
        "reply-delay", "derive-ahead", "derive-ahead-limit", "silence-alarm", "session-proxy", "session-nodes", "session-oxend",
        "session-renewal",
    ]

    /// Options whose values are part of another's.
    private static let parts: Set<String> = ["allow-apn-topic", "sandbox-apn-topic", "web-push-key", "web-push-former-key"]

    private let folder: TemporaryFolder
    private let key: KeyFile

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    /// With all protocols.
    private func shared(_ arguments: String...) async throws -> [String: String] {
        let (onionKey, nodes) = (folder.path + "/onion.key", folder.path + "/nodes.json")
        #expect(try await run("session", "key", "new", "--out", onionKey).status == 0)
        try #"[{"pubkey_x25519":"\#(String(repeating: "ab", count: 32))","ip":"127.0.0.1","port":1,"swarm_id":"0000000000000001"}]"#
            .write(toFile: nodes, atomically: true, encoding: .utf8)
        let invocation = Invocation(
            arguments: [
                "waku-push", "serve", "--identity", key.path, "--data", folder.path + "/data", "--status-v0.1", "--session-http",
                "127.0.0.1:3000", "--session-nodes", nodes, "--session-onion-key", onionKey,
            ] + arguments, environment: [:], columns: 80, writeOutput: { _ in false }, writeError: { _ in false })
        let configuration = try Invocation.$current.withValue(invocation) { try Serve.reloadedPlan().configuration }
        var status = configuration.status
        // As `Server` does.
        status.requestAgeLimit = configuration.node.maximumRequestAge
        return status.sharedSettings(of: configuration.node.identity, gorushTimeout: .seconds(60))
            .merging(configuration.sharedEndpoints([EndpointRule()])) { $1 }
            .merging(SharedSettings.notifications([.combined], [])) { $1 }
    }

    @Test func everyOptionIsComparedOrMayDiffer() async throws {
        let options = try await shared().keys.filter { $0.hasPrefix("--") }
        let compared = Set(options.map { String($0.dropFirst(2).prefix { $0 != " " }) })
        let names = Set(Settings.all.map(\.name))
        #expect(names.subtracting(compared).subtracting(Self.different).subtracting(Self.parts) == [])
        #expect(compared.union(Self.different).union(Self.parts).subtracting(names) == [])
        #expect(compared.isDisjoint(with: Self.different))
        #expect(compared.isSuperset(of: ["identity", "gorush", "web-push", "limit", "session-apns-topic", "v0.1-apns-topic"]))
    }

    @Test(arguments: [("10m", "600 s"), ("1s", "1 s"), ("1500ms", "1500 ms"), ("500ms", "500 ms"), ("2000ms", "2 s")])
    func durationsAreComparedExactly(value: String, text: String) async throws {
        let settings = try await shared("--max-request-age", value, "--registration-lifetime", value)
        #expect(settings["--max-request-age"] == text && settings["--registration-lifetime"] == text)
    }

    @Test func topicsAreCompared() async throws {
        let settings = try await shared("--v0.1-apns-topic", "im.status", "--session-apns-topic", "com.session")
        #expect(settings["--v0.1-apns-topic"] == "im.status" && settings["--session-apns-topic"] == "com.session")
    }
}
