import Foundation
import TestSupport
import Testing
import WakuCrypto

/// Daemons that take their options from the environment.
@Suite(.timeLimit(.minutes(5)))
struct ServeEnvironmentTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private let other: KeyFile

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
        other = try KeyFile(in: folder, "other.key")
    }

    /// All options of a daemon can come from its environment.
    @Test func serve() async throws {
        let data = folder.path + "/data"
        let (relay, http) = (try freePort(), try freePort())
        let environment = [
            "WAKU_PUSH_IDENTITY": key.path, "WAKU_PUSH_DATA": data, "WAKU_PUSH_LOOPBACK_LISTEN": "127.0.0.1:\(relay)",
            "WAKU_PUSH_HTTP": "127.0.0.1:\(http)", "WAKU_PUSH_LOG_FORMAT": "json", "WAKU_PUSH_LOG_LEVEL": "info",
            "WAKU_PUSH_RELAY": "loopback", "WAKU_PUSH_PUBSUB_TOPIC": "/waku/2/rs/16/1, /waku/2/rs/16/2", "WAKU_PUSH_POLL_INTERVAL": "1s",
            "WAKU_PUSH_IDEMPOTENT_REGISTRATIONS": "yes", "WAKU_PUSH_SILENCE_ALARM": "off",
            "WAKU_PUSH_LISTEN": "/ip4/127.0.0.1/tcp/0, /ip4/127.0.0.1/tcp/0", "WAKU_PUSH_NODE_KEY": folder.path + "/node.key",
        ]
        let process = try ChildProcess(["serve"], environment: environment)
        try await eventually { process.errors.contains("node started") || !process.isRunning }
        process.send(SIGTERM)
        #expect(await process.status == 0)
        let record = try #require(startRecord(in: process.errors))
        #expect(record.key == key.key.publicKey.hex)
        #expect(record.http == "127.0.0.1:\(http)")
        #expect(FileManager.default.fileExists(atPath: data + "/waku-push.sqlite"))
    }

    /// The same, each of them wrong, or pointing elsewhere, but overruled.
    @Test func theCommandLineTakesPrecedence() async throws {
        let data = folder.path + "/data"
        let daemon = try await Daemon.start(
            ["--identity", key.path, "--data", data, "--relay", "loopback", "--log-format", "json"],
            environment: [
                "WAKU_PUSH_IDENTITY": other.path, "WAKU_PUSH_DATA": folder.path + "/other", "WAKU_PUSH_RELAY": "nonsense",
                "WAKU_PUSH_HTTP": "127.0.0.1:1", "WAKU_PUSH_LOOPBACK_LISTEN": "127.0.0.1:1", "WAKU_PUSH_LOG_FORMAT": "text",
                "WAKU_PUSH_LISTEN": "nonsense",
            ])
        // It is ready before it logs that it has started.
        try await eventually { startRecord(in: daemon.process.errors) != nil }
        let ended = await daemon.stop()
        #expect(ended.status == 0)
        let record = try #require(startRecord(in: ended.errors))
        #expect(record.key == key.key.publicKey.hex)
        #expect(FileManager.default.fileExists(atPath: data + "/waku-push.sqlite"))
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/other"))
    }

    /// The node is not ready for signals yet when it makes its database.
    @Test(
        "SIGTERM during its start ends a daemon that is the first process of a container",
        .enabled(if: FirstProcess.isAllowed, "user namespaces are not allowed here"))
    func signalDuringTheStart() async throws {
        let data = folder.path + "/data"
        let daemon = try FirstProcess.start(
            [
                "serve", "--identity", key.path, "--data", data, "--gorush", "http://127.0.0.1:1", "--relay", "loopback",
                "--http", "127.0.0.1:\(try freePort())", "--loopback-listen", "127.0.0.1:\(try freePort())",
            ], endingAt: data + "/waku-push.sqlite")
        #expect([0, 128 + SIGTERM].contains(await daemon.status), "\(daemon.errors)")
    }

    /// A core dump would have its keys.
    @Test func aCrashWritesNoCoreFile() async throws {
        let daemon = try await Daemon.start(
            ["--identity", key.path, "--data", folder.path + "/data"],
            // Swift's backtraces, in builds with its shared runtime, keep a process alive that got the signal from another one.
            environment: ["FOLDER": folder.path, "SWIFT_BACKTRACE": "enable=no"],
            shell: #"ulimit -c "$(ulimit -H -c)"; cd "$FOLDER"; exec "$0" "$@""#)
        let limits = try String(contentsOfFile: "/proc/\(daemon.process.processID)/limits", encoding: .utf8)
        let limit = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
        #expect(limit.split(separator: " ").dropFirst(4).first == "0", "\(limit)")
        #expect(await daemon.stop(SIGSEGV).status != 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).allSatisfy { !$0.hasPrefix("core") })
    }

    /// A proxy would see device tokens of posts to a gorush on this machine, which it can't reach.
    @Test func aProxyIsNotUsedForThisMachine() async throws {
        let (proxy, gorush) = (try RawHTTPServer { _ in .status(200, body: "{}") }, try RawHTTPServer { _ in .status(200, body: "{}") })
        defer {
            proxy.stop()
            gorush.stop()
        }
        let token = folder.path + "/token"
        try Data("1a2b3c".utf8).write(to: URL(fileURLWithPath: token))
        func push(_ url: String, _ environment: [String: String]) async throws -> Int32 {
            let push = ["admin", "test-push", "--token-file", token, "--platform", "firebase", "--data", folder.path + "/data"]
            return try await run(push + ["--gorush", url], environment: environment).status
        }
        let local = ["http://127.0.0.1:\(gorush.port)", "http://localhost:\(gorush.port)"]
        for environment in [["http_proxy": proxy.url], ["all_proxy": proxy.url, "no_proxy": "other.invalid"]] {
            for url in local { #expect(try await push(url, environment) == 0) }
            #expect(try await push("http://gorush.invalid", environment) == 0)
        }
        #expect(gorush.requests.count == 4)
        let lines = proxy.requests.map { $0.head.prefix { $0 != "\r\n" } }
        #expect(lines == Array(repeating: "POST http://gorush.invalid/api/push HTTP/1.1", count: 2))
        for list in ["*", "gorush.invalid"] {
            #expect(try await push("http://gorush.invalid", ["http_proxy": proxy.url, "no_proxy": list]) == 2)
        }
        #expect(proxy.requests.count == 2)
    }

    /// The log line of the start. The relay may have logged others before.
    private func startRecord(in log: String) -> StartRecord? {
        log.split(separator: "\n").lazy.compactMap { try? JSONDecoder().decode(StartRecord.self, from: Data($0.utf8)) }.first
    }

    private struct StartRecord: Decodable {
        let key: String
        let http: String
    }
}
