import CurlClient
import Foundation
import TestSupport
import Testing

/// Admin commands on a running daemon.
@Suite(.timeLimit(.minutes(5)))
struct AdminSocketTests {
    private let node: OperatedNode

    init() throws {
        node = try OperatedNode()
    }

    private struct Status: Decodable {
        struct Live: Decodable {
            struct Finding: Decodable {
                let check, verdict, text: String
            }
            struct Outbox: Decodable {
                let waiting: Int
            }
            let version, publicKey, breaker, logLevel: String
            let isReady, isDraining: Bool
            let findings: [Finding]
            let outbox: Outbox
            let counters: [String: Int]
        }
        struct Registrations: Decodable {
            let apn, waiting: Int
        }
        let live: Live?
        let registrations: Registrations
    }

    private func status() async throws -> Status {
        try await node.admin("status", "--json").json()
    }

    private struct Count: Decodable, Equatable {
        let count: Int
    }

    @Test func statusOfARunningNode() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        let text = try await node.admin("status")
        #expect(text.status == 0, "\(text.errors)")
        #expect(text.field("state") == "ready")
        #expect(text.field("key") == node.server.publicKey)
        #expect(text.field("installations, APN") == "1")
        #expect(text.field("registration stored") == "1")
        let live = try #require(try await status().live)
        #expect(live.version == (try await run("--version").output.trimmingCharacters(in: .whitespacesAndNewlines)))
        #expect(live.isReady && !live.isDraining)
        #expect(live.findings.map(\.check) == ["relay", "store", "gorush", "disk", "files"])
        #expect(live.breaker == "closed")

        let socket = node.data + "/admin.sock"
        let mode = try FileManager.default.attributesOfItem(atPath: socket)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let stopped = await daemon.stop()
        node.record(stopped)
        #expect(!FileManager.default.fileExists(atPath: socket))

        let without = try await node.admin("status")
        #expect(without.status == 69)
        #expect(without.failure?.hasPrefix("no daemon answers on data folder ") == true)
        #expect(without.field("installations, APN") == "1")
        #expect(try await status().live == nil)
        #expect(node.leaks == [])
    }

    /// A socket left by a killed daemon is no obstacle.
    @Test func aStaleSocket() async throws {
        defer { node.gorush.stop() }
        let first = try await node.start()
        first.process.send(SIGKILL)
        _ = await first.process.status
        #expect(FileManager.default.fileExists(atPath: node.data + "/admin.sock"))
        #expect(try await node.admin("drain").status == 69)
        #expect(try await node.admin("health").status == 69)
        let second = try await node.start()
        #expect(try await node.admin("status").status == 0)
        #expect(await second.stop().status == 0)
    }

    /// The path of a socket has room for 107 bytes.
    @Test func aFolderWithALongName() async throws {
        defer { node.gorush.stop() }
        let data = node.folder.path + "/" + String(repeating: "long", count: 40)
        let daemon = try await Daemon.start(["--identity", node.server.path, "--data", data, "--gorush", node.gorush.url])
        try await eventually { try await run("admin", "status", "--data", data).status == 0 }
        #expect(await daemon.stop().status == 0)
    }

    @Test func drain() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        #expect(try await node.admin("drain", "--wait").output == "The node no longer accepts registrations.\n")
        #expect(try await daemon.get("/readyz").status == 503)
        #expect(try await node.admin("status").status == 2)
        let health = try await node.admin("health")
        #expect(health.status == 0)
        #expect(health.output.hasPrefix("not ready\ndrain: "))
        #expect(try await node.admin("health", "--ready").status == 2)
        #expect(try await node.register(daemon, version: 2).failure == "the server refused: INTERNAL_ERROR")
        let unregistered = try await node.client(
            daemon, "unregister", "--identity", node.bob.path, "--installation", "bobs-phone", "--version", "2")
        #expect(unregistered.failure == "the server refused: INTERNAL_ERROR")
        #expect(try await node.query(daemon).rows.last == ["bobs-phone", "1", "yes"])
        // A client with a state tries again, and is not told that the node is silent.
        let late = try await run(
            "client", "register", "--relay", daemon.relayURL, "--server", node.server.publicKey, "--timeout", "8s", "--state",
            node.folder.path + "/late", "--device-token", "lates-token", "--apn-topic", "app")
        #expect(late.status == 69)
        #expect(late.failure?.contains("did not confirm it within 8s (INTERNAL_ERROR, or no answer)") == true, "\(late.errors)")

        #expect(try await node.admin("drain", "--undo").output == "The node accepts registrations.\n")
        let ready = try await node.admin("health", "--ready")
        #expect((ready.status, ready.output) == (0, "ready\n"))
        #expect(try await daemon.get("/readyz").status == 200)
        #expect(try await node.register(daemon, version: 2).status == 0)
        #expect(await daemon.stop().status == 0)
    }

    @Test func logLevel() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.admin("log-level", "critical").output == "log level critical, before trace\n")
        let quiet = daemon.process.errors.count
        _ = try await node.admin("drain")
        #expect(daemon.process.errors.count == quiet)
        #expect(try await node.admin("log-level", "notice").output == "log level notice, before critical\n")
        _ = try await node.admin("drain", "--undo")
        #expect(daemon.process.errors.contains(" notice registrations are accepted again"))
        #expect(await daemon.stop().status == 0)
    }

    @Test func retryPostsWaitingNotifications() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        node.gorushAnswers(503)
        #expect(try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "01").status == 69)
        try await eventually { try await status().live?.isReady == false }
        let live = try #require(try await status().live)
        #expect(live.outbox.waiting == 1)
        #expect(live.findings.first { $0.check == "gorush" }?.text.hasPrefix("unavailable, 1 waiting: status 503") == true)
        node.gorushAnswers(200)
        try await eventually {
            let retried = try await node.admin("outbox", "retry", "--all", "--json").json(Count.self)
            #expect(retried.count <= 1)
            return try await status().live?.outbox.waiting == 0
        }
        #expect(try await node.admin("outbox", "retry", "1", "--json").json() == Count(count: 0))
        try await eventually { try await node.admin("status").status == 0 }
        #expect(await daemon.stop().status == 0)
        #expect(node.leaks == [])
    }

    /// With a daemon and without one.
    @Test(arguments: [true, false])
    func dropWhatWaits(whileRunning: Bool) async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        node.gorushAnswers(503)
        for id in ["01", "02", "03"] {
            #expect(try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", id).status == 69)
        }
        if !whileRunning { #expect(await daemon.stop().status == 0) }
        #expect(try await node.admin("outbox", "drop", "--all").output == "3 notifications would be dropped: repeat with --yes.\n")
        #expect(try await node.admin("outbox", "drop", "1", "17", "--yes", "--json").json() == Count(count: 1))
        #expect(try await node.admin("outbox", "list").rows.dropFirst().map { $0[0] } == ["2", "3"])
        #expect(try await node.admin("outbox", "drop", "--all", "--yes", "--json").json() == Count(count: 2))
        #expect(try await node.admin("outbox", "list").rows.count == 1)
        if whileRunning {
            #expect(try await status().live?.outbox.waiting == 0)
            #expect(try await status().live?.counters["notification dropped by the operator"] == 3)
            #expect(await daemon.stop().status == 0)
        }
    }

    @Test func withoutADaemon() async throws {
        defer { node.gorush.stop() }
        #expect(try await node.admin("status").status == 65)
        #expect(await (try node.start()).stop().status == 0)
        for command in [["drain"], ["log-level", "info"], ["outbox", "retry", "--all"]] {
            let ended = try await run(["admin"] + command + ["--data", node.data])
            #expect(ended.status == 69)
            #expect(ended.failure?.hasPrefix("no daemon answers on data folder ") == true, "\(ended.errors)")
        }
    }
}
