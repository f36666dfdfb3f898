import CurlClient
import Foundation
import TestSupport
import Testing
import WakuCrypto

/// Start, readiness and stop of a daemon.
@Suite(.timeLimit(.minutes(5)))
struct DaemonTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private var standard: [String] { ["--identity", key.path, "--data", folder.path + "/data"] }

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
    }

    @Test func health() async throws {
        let daemon = try await Daemon.start(standard)
        let health = try await daemon.get("/healthz")
        #expect(health.status == 200)
        #expect(String(decoding: health.body, as: UTF8.self) == "ok\n")
        let readiness = try await daemon.get("/readyz")
        #expect(readiness.status == 200)
        #expect(String(decoding: readiness.body, as: UTF8.self) == "ready\n")
        #expect(try await daemon.get("/elsewhere").status == 404)
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/data")
        #expect(attributes[.posixPermissions] as? Int == 0o700)
        #expect(await daemon.stop().status == 0)
    }

    /// The daemon runs and reports the missing relay until it is available.
    @Test func anUnreachableRelay() async throws {
        let http = try freePort()
        let process = try ChildProcess(
            ["serve", "--http", "127.0.0.1:\(http)", "--relay", "http://127.0.0.1:\(try freePort())"] + standard)
        let daemon = Daemon(process: process, relayURL: "", httpURL: "http://127.0.0.1:\(http)")
        try await eventually { (try? await daemon.get("/readyz").status) == 503 || !process.isRunning }
        let readiness = try await daemon.get("/readyz")
        #expect(readiness.status == 503)
        #expect(String(decoding: readiness.body, as: UTF8.self).hasPrefix("relay: "))
        #expect(try await daemon.get("/healthz").status == 200)
        #expect(await daemon.stop().status == 0)
    }

    /// A silent shard raises an alarm if configured: it is logged, and the node is not ready.
    @Test(arguments: [(["--silence-alarm", "500ms"], [:]), ([], ["WAKU_PUSH_SILENCE_ALARM": "500ms"])] as [([String], [String: String])])
    func silence(arguments: [String], environment: [String: String]) async throws {
        let (relay, http) = (try freePort(), try freePort())
        let process = try ChildProcess(
            ["serve", "--http", "127.0.0.1:\(http)", "--loopback-listen", "127.0.0.1:\(relay)", "--listen", "off"] + standard + arguments,
            environment: environment)
        let daemon = Daemon(process: process, relayURL: "", httpURL: "http://127.0.0.1:\(http)")
        try await eventually { process.errors.contains(" error no messages received on the shard seconds=") || !process.isRunning }
        try await eventually { (try? await daemon.get("/readyz").status) == 503 || !process.isRunning }
        #expect(String(decoding: try await daemon.get("/readyz").body, as: UTF8.self).hasPrefix("silence: no message for "))
        #expect(await daemon.stop().status == 0)
    }

    /// By default only beside a Waku node, which is away here.
    @Test(
        arguments: [
            ([], "silence-alarm=\"10 min\""), (["--silence-alarm", "off"], "silence-alarm=off"),
            (["--silence-alarm", "0"], "silence-alarm=off"),
            (["--silence-alarm", "90s"], "silence-alarm=\"90 s\""), (["--relay", "loopback"], "silence-alarm=off"),
        ] as [([String], String)])
    func silenceLimit(arguments: [String], logged: String) async throws {
        let relay = arguments.first == "--relay" ? [] : ["--relay", "http://127.0.0.1:\(try freePort())"]
        let process = try ChildProcess(
            [
                "serve", "--http", "127.0.0.1:\(try freePort())", "--loopback-listen", "127.0.0.1:\(try freePort())", "--listen", "off",
            ] + standard + relay + arguments)
        try await eventually { process.errors.contains("node started") || !process.isRunning }
        process.send(SIGTERM)
        #expect(await process.status == 0)
        #expect(process.errors.contains(logged), "\(process.errors)")
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func signals(signal: Int32) async throws {
        let daemon = try await Daemon.start(standard)
        let ended = await daemon.stop(signal)
        #expect(ended.status == 0)
        #expect(ended.output == "")
        #expect(ended.errors.hasSuffix(" info node stopped\n"))
        #expect(!daemon.process.isRunning)
    }

    // MARK: Log

    private static var time: Regex<Substring> { /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/ }

    /// A daemon can be ready, and be stopped, before it has logged that it started.
    private func log(_ arguments: [String]) async throws -> String {
        let daemon = try await Daemon.start(arguments)
        try await eventually { daemon.process.errors.contains("node started") }
        return await daemon.stop().errors
    }

    @Test func logAsText() async throws {
        let log = try await log(standard)
        let lines = log.split(separator: "\n")
        #expect(lines.count >= 3)
        for line in lines { #expect(line.prefixMatch(of: Self.time) != nil, "\(line)") }
        // Each server beside the node logs that it listens, before or after the node.
        let started = try #require(lines.first { $0.contains(" info node started ") }, "\(log)")
        #expect(started.contains(" info node started http=127.0.0.1:"))
        #expect(started.contains(" key=\(key.key.publicKey.hex) "))
        #expect(lines.last?.hasSuffix(" info node stopped") == true)
    }

    @Test func logAsJSON() async throws {
        let log = try await log(standard + ["--log-format", "json"])
        let records = try log.split(separator: "\n").map { line in
            try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        let messages = records.compactMap { $0["message"] as? String }
        #expect(messages.count == records.count)
        #expect(messages.contains("node started"))
        #expect(messages.contains("stopping"))
        #expect(messages.last == "node stopped")
        for record in records {
            #expect((record["time"] as? String)?.wholeMatch(of: Self.time) != nil)
            let level = try #require(record["level"] as? String)
            #expect(["trace", "debug", "info", "notice", "warning", "error", "critical"].contains(level))
        }
        let started = try #require(records.first { $0["message"] as? String == "node started" })
        #expect(started["waiting"] as? Int == 0)
    }

    @Test func aQuietLog() async throws {
        #expect(await (try Daemon.start(standard + ["--log-level", "critical"])).stop().errors == "")
    }
}
