import CurlClient
import Foundation
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

/// An operator's workflow as in the README, with processes and files.
@Suite(.timeLimit(.minutes(10)))
struct OperatorWalkTests {
    private let node: OperatedNode

    init() throws {
        node = try OperatedNode()
    }

    private func text(_ daemon: Daemon, _ path: String) async throws -> String {
        let text = String(decoding: try await daemon.get(path).body, as: UTF8.self)
        node.record(Ended(status: 0, output: text, errors: ""))
        return text
    }

    private func doctor() async throws -> Ended {
        try await node.recorded(["doctor", "--identity", node.server.path, "--data", node.data, "--gorush", node.gorush.url])
    }

    private func notify(_ daemon: Daemon) async throws -> Ended {
        try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", hexString(randomBytes(32)))
    }

    @Test func walk() async throws {
        defer { node.gorush.stop() }

        // A registered client is shown.
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        #expect(try await notify(daemon).status == 0)
        let listed = try await node.admin("registrations", "list")
        #expect(listed.output.contains(KeyHash(of: node.bob.key.publicKey).hex.prefix(8)))
        let shown = try await node.admin("registrations", "show", node.bob.publicKey, identified: true)
        #expect(shown.status == 0 && shown.output.contains("bobs-phone"))
        let status = try await node.admin("status")
        #expect(status.status == 0, "\(status.output)\(status.errors)")
        #expect(try await text(daemon, "/readyz") == "ready\n")
        #expect(try await text(daemon, "/").contains(">available<"))
        #expect(try await text(daemon, "/metrics").contains("waku_push_gorush_breaker{endpoint=\"1\",state=\"closed\"} 1"))

        // gorush fails: every view of the node reports it.
        node.gorushAnswers(500)
        #expect(try await notify(daemon).output.contains("INTERNAL_ERROR"))
        try await eventually { try await daemon.get("/readyz").status == 503 }
        #expect(try await text(daemon, "/readyz").hasPrefix("gorush: unavailable, 1 waiting: status 500"))
        #expect(try await text(daemon, "/").contains("given up"))
        #expect(try await text(daemon, "/status.json").contains("\"waiting\":1"))
        let metrics = try await text(daemon, "/metrics")
        #expect(metrics.contains("waku_push_gorush_breaker{endpoint=\"1\",state=\"closed\"} 0"))
        #expect(metrics.contains("\nwaku_push_ready 0"))
        let ill = try await doctor()
        #expect(ill.status == 2)
        #expect(ill.output.split(separator: "\n").contains { $0.hasPrefix("gorush post") && $0.contains("fail") })
        #expect(try await node.admin("status").status == 2)
        #expect(try await node.admin("outbox", "list").output.split(separator: "\n").count == 2)

        // gorush works again: waiting notifications arrive, and the node recovers by itself.
        node.gorushAnswers(200)
        try await eventually { try await daemon.get("/readyz").status == 200 }
        try await eventually { try await text(daemon, "/status.json").contains("\"waiting\":0") }
        #expect(try await doctor().status == 1)

        // A backup under load, the loss of all data, and a restore.
        let load = Task {
            var count = 0
            while !Task.isCancelled, count < 1000 {
                if try await node.register(daemon, installation: "other-\(count)").status == 0 { count += 1 }
            }
        }
        let backup = node.folder.path + "/backup"
        #expect(try await node.admin("backup", backup, identified: true).status == 0)
        load.cancel()
        _ = await load.result
        node.record(await daemon.stop())
        try FileManager.default.removeItem(atPath: node.data)
        #expect(try await node.admin("restore", backup, identified: true).status == 0)
        let again = try await node.start()
        #expect(try await node.query(again).output.contains("bobs-phone"))
        let notified = try await notify(again)
        #expect(notified.status == 0, "\(notified.output)\(notified.errors)")
        #expect(try await node.admin("check", identified: true).status == 0)
        for path in ["/", "/status.json", "/metrics"] { _ = try await text(again, path) }
        node.record(await again.stop())

        // Nothing that was printed, logged or shown had a secret in it; on demand, admin shows one.
        #expect(node.leaks == [])
        let revealed = try await run([
            "admin", "registrations", "show", node.bob.publicKey, "--reveal", "--data", node.data, "--identity", node.server.path,
        ])
        #expect(revealed.output.contains(OperatedNode.deviceToken))
    }
}
