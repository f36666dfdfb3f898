import CurlClient
import Foundation
import TestSupport
import Testing

/// `waku-push serve --session-http` as a process.
@Suite(.timeLimit(.minutes(5)))
struct SessionProcessTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private let port: UInt16
    private var nodes: String { folder.path + "/nodes.json" }
    private let client = CurlClient()

    init() async throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
        port = try freePort()
        #expect(try await run("session", "key", "new", "--out", folder.path + "/onion.key").status == 0)
        // A server to which there is no connection.
        try write(
            #"[{"pubkey_x25519":"\#(String(repeating: "ab", count: 32))","ip":"127.0.0.1","port":1,"swarm_id":"0000000000000001"}]"#,
            to: nodes)
    }

    private func start() async throws -> Daemon {
        let (relay, http) = (try freePort(), try freePort())
        let process = try ChildProcess(
            [
                "serve", "--loopback-listen", "127.0.0.1:\(relay)", "--http", "127.0.0.1:\(http)", "--listen", "off", "--identity",
                key.path, "--data", folder.path + "/data", "--session-http", "127.0.0.1:\(port)", "--session-onion-key",
                folder.path + "/onion.key", "--session-nodes", nodes,
            ], environment: [:], limit: .seconds(300), shell: nil)
        // With subscriptions and without a connected storage server it does not become ready.
        try await eventually {
            let health = HTTPRequest(method: "GET", url: "http://127.0.0.1:\(port)/healthz")
            if !process.isRunning { return true }
            return (try? await client.send(health).status) == 200
        }
        return Daemon(process: process, relayURL: "http://127.0.0.1:\(relay)", httpURL: "http://127.0.0.1:\(http)")
    }

    private func subscribe(_ account: SessionAccount, _ device: SessionDevice) async throws -> String {
        let body = Array(account.json(account.subscription(device)).utf8)
        let url = "http://127.0.0.1:\(port)/subscribe"
        let response = try await client.send(HTTPRequest(method: "POST", url: url, body: body, timeout: .seconds(60)))
        return String(decoding: response.body, as: UTF8.self)
    }

    @Test func withoutARelayNothingListensForOne() async throws {
        // The default address of the loopback relay, unless another program has it already.
        let blocker = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(blocker) }
        var address = LoopbackAddress(port: 8645)
        address.withPointer { _ = bind(blocker, $0, $1) }
        _ = listen(blocker, 1)
        let http = try freePort()
        let process = try ChildProcess(
            [
                "serve", "--http", "127.0.0.1:\(http)", "--identity", key.path, "--data", folder.path + "/data", "--session-http",
                "127.0.0.1:\(port)", "--session-onion-key", folder.path + "/onion.key", "--session-nodes", nodes,
            ], environment: [:], limit: .seconds(300), shell: nil)
        let daemon = Daemon(process: process, relayURL: "", httpURL: "http://127.0.0.1:\(http)")
        try await eventually {
            if !process.isRunning { return true }
            return (try? await daemon.get("/readyz").status) == 200
        }
        #expect(process.isRunning, "\(process.errors)")
        let page = try await daemon.get("/")
        #expect(String(decoding: page.body, as: UTF8.self).contains("protocols over HTTP need none"))
        let doctor = try await run("doctor", "--identity", key.path, "--data", folder.path + "/data")
        #expect(doctor.output.contains("none: protocols over HTTP need none"), "\(doctor.output)")
        // A restart would use the file.
        for (content, finding) in [
            ("zz", "contains neither"), (String(repeating: "9", count: 64), "does not contain the key in use"), (nil, "is missing"),
        ] {
            let file = folder.path + "/onion.key"
            if let content { try write(content, to: file) } else { try FileManager.default.removeItem(atPath: file) }
            let doctor = try await run("doctor", "--identity", key.path, "--data", folder.path + "/data")
            #expect(doctor.output.contains("onion key file \(file) \(finding)"), "\(doctor.output)")
        }
        #expect(await daemon.stop().status == 0)
        #expect(!process.errors.contains("loopback relay listening") && !process.errors.contains("libp2p listening"), "\(process.errors)")
    }

    @Test func answeredChangesSurviveAKill() async throws {
        let (account, device) = (try SessionAccount.sessionID(), SessionDevice())
        let daemon = try await start()
        #expect(try await subscribe(account, device).contains("\"added\":true"))
        #expect(await daemon.stop(SIGKILL).status != 0)
        let again = try await start()
        // There is a subscription, and no storage server for it.
        #expect(try await again.get("/readyz").status == 503)
        let status = try await run("admin", "status", "--data", folder.path + "/data")
        #expect(status.field("Session subscriptions") == "1", "\(status.output)")
        #expect(status.field("storage servers connected") == "0 of 1" && status.field("messages dropped") == "none", "\(status.output)")
        #expect(try await subscribe(account, device).contains("\"updated\":true"))
        #expect(await again.stop().status == 0)
        #expect(!(daemon.process.errors + again.process.errors).contains(device.token))
    }

    @Test func aBrokenListOfStorageServersChangesNothing() async throws {
        let daemon = try await start()
        try write("[{", to: nodes)
        daemon.process.send(SIGHUP)
        try await eventually {
            daemon.process.errors.contains("failed to reload configuration; nothing changed") || !daemon.process.isRunning
        }
        #expect(daemon.process.errors.contains("nodes file \(nodes)"))
        #expect(try await subscribe(try .group(), SessionDevice()).contains("\"added\":true"))
        #expect(await daemon.stop().status == 0)
    }

    @Test func aPortInUseEndsIt() async throws {
        let server = try RawHTTPServer { _ in .hang }
        defer { server.stop() }
        let ended = try await run(
            "serve", "--identity", key.path, "--data", folder.path + "/other", "--http", "127.0.0.1:0", "--listen", "off",
            "--loopback-listen", "127.0.0.1:0", "--session-http", "127.0.0.1:\(server.port)", "--session-onion-key",
            folder.path + "/onion.key", "--session-nodes", nodes)
        #expect(ended.status == 69)
        #expect(ended.errors.contains("waku-push: can't listen on 127.0.0.1:\(server.port)"), "\(ended.errors)")
    }

    @Test func withoutSessionNothingListens() async throws {
        let daemon = try await Daemon.start(["--identity", key.path, "--data", folder.path + "/data"])
        await #expect(throws: (any Error).self) { try await subscribe(try .group(), SessionDevice()) }
        #expect(await daemon.stop().status == 0)
    }

    @Test func libraryThatCannotBeOpenedIsOneLine() async throws {
        try write("not a library", to: folder.path + "/libsodium.so.23")
        let ended = try await run(
            [
                "serve", "--identity", key.path, "--data", folder.path + "/other", "--http", "127.0.0.1:0", "--session-http",
                "127.0.0.1:\(port)", "--session-onion-key", folder.path + "/onion.key", "--session-nodes", nodes,
            ], environment: ["LD_LIBRARY_PATH": folder.path])
        #expect(ended.status == 69)
        #expect(ended.failure?.contains("libsodium.so.23 cannot be used: install libsodium23") == true, "\(ended.errors)")
        // Status' half does not need it.
        let check = ["config", "check", "--identity", key.path]
        #expect(try await run(check, environment: ["LD_LIBRARY_PATH": folder.path]).status == 0)
    }
}
