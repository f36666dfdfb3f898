import Foundation
import TestSupport
import Testing
import WakuCrypto

/// Remembered clients as processes, beside running daemons.
@Suite(.timeLimit(.minutes(5)))
struct ClientProcessTests {
    private let node: OperatedNode

    init() throws {
        node = try OperatedNode()
    }

    private func state(_ name: String) -> String { node.folder.path + "/" + name }

    private func client(_ relay: String, _ command: String, _ name: String, _ arguments: String...) async throws -> Ended {
        try await node.recorded(["client", command, "--relay", relay, "--timeout", "60s", "--state", state(name)] + arguments)
    }

    private func register(_ relay: String, _ arguments: String...) async throws -> Ended {
        try await node.recorded(
            [
                "client", "register", "--relay", relay, "--timeout", "60s", "--state", state("bob"), "--server", node.server.publicKey,
                "--apn-topic", "im.status.ethereum", "--device-token", OperatedNode.deviceToken,
            ] + arguments)
    }

    private struct Event: Decodable {
        let event: String
        let publicKey, server, registrant: String?
        let version: UInt64?
        let rows, devices: Int?
    }

    /// `client run --json`, and its events so far.
    private struct Running {
        let process: ChildProcess

        var events: [Event] { process.lines.compactMap { try? JSONDecoder().decode(Event.self, from: Data($0.utf8)) } }

        func waitFor(_ name: String) async throws -> Event {
            try await eventually { events.contains { $0.event == name } || !process.isRunning }
            return try #require(events.first { $0.event == name }, "\(process.errors)")
        }

        func kill() async {
            process.send(SIGKILL)
            #expect(await process.status == -SIGKILL)
        }
    }

    private func runClient(_ relay: String, _ name: String, _ arguments: String...) throws -> Running {
        Running(
            process: try ChildProcess(
                ["client", "run", "--json", "--relay", relay, "--state", state(name)] + arguments, limit: .seconds(240)))
    }

    private func publicKey(_ name: String) async throws -> String {
        struct Status: Decodable { let publicKey: String }
        let status: Status = try await run("client", "status", "--state", state(name), "--json").json()
        return status.publicKey
    }

    private var postCount: Int { node.gorush.requests.count { $0.head.hasPrefix("POST") } }

    /// Until gorush was fast enough for the server: on a slow machine its first answer may be INTERNAL_ERROR.
    private func notify(_ relay: String, _ name: String, _ arguments: String...) async throws {
        try await eventually {
            let notified = try await node.recorded(
                ["client", "notify", "--relay", relay, "--timeout", "60s", "--state", state(name)] + arguments)
            #expect(notified.status == 0 || notified.status == 69, "\(notified.errors)")
            return notified.status == 0
        }
    }

    @Test func clientsRegisterDiscoverAndNotifyOverALoopbackServe() async throws {
        let daemon = try await node.start()
        let registered = try await register(daemon.relayURL)
        #expect(registered.rows.last == [node.server.publicKey, "registered", "1"], "\(registered.errors)")
        let bob = try await publicKey("bob")
        let discovered = try await client(daemon.relayURL, "discover", "alice", bob)
        #expect(discovered.rows.last?[1...2] == ["1", "yes"], "\(discovered.errors)")
        try await notify(daemon.relayURL, "alice", bob, "--chat", "family", "--message-id", "c0ffee")
        #expect(postCount == 1)
        let ended = try await client(daemon.relayURL, "unregister", "bob")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try await node.admin("registrations", "list").rows.last?.contains("unregistered") == true)
        #expect(await daemon.stop().status == 0)
        #expect(node.leaks.isEmpty)
    }

    /// It neither registers nor sends, and ends in order.
    @Test func newClientOnlyWatches() async throws {
        let daemon = try await node.start()
        let running = try runClient(daemon.relayURL, "new")
        let started = try await running.waitFor("started")
        #expect(started.publicKey != nil)
        running.process.send(SIGTERM)
        #expect(await running.process.status == 0)
        #expect(running.events.map(\.event) == ["started"] && running.process.errors == "")
        let status = try await run("client", "status", "--state", state("new"))
        #expect(status.field("receiving") == "off" && status.field("sending") == "off")
        #expect(await daemon.stop().status == 0)
    }

    @Test func startsWithinASecond() async throws {
        let daemon = try await node.start()
        #expect(try await register(daemon.relayURL).status == 0)
        let limit = Duration.seconds(1) * TestTimeout.factor
        var fastest = Duration.seconds(1000)
        // Other tests take the processor meanwhile.
        for _ in 0..<5 where fastest >= limit {
            let began = ContinuousClock.now
            let running = try runClient(daemon.relayURL, "bob")
            _ = try await running.waitFor("started")
            fastest = min(fastest, ContinuousClock.now - began)
            await running.kill()
        }
        #expect(fastest < limit)
        #expect(await daemon.stop().status == 0)
    }

    /// Killed while it runs, and while its registration is unanswered: the next start continues.
    @Test func killedClientContinues() async throws {
        let hubKey = try KeyFile(in: node.folder, "hub.key")
        let hub = try await Daemon.start(["--identity", hubKey.path, "--data", node.folder.path + "/hub"])
        let relay = hub.relayURL
        let first = try await node.start("--relay", relay)
        #expect(try await register(relay).status == 0)
        let running = try runClient(relay, "bob")
        #expect(try await running.waitFor("advertised").rows == 1)
        // One process at a time.
        let second = try await client(relay, "register", "bob", "--device-token", "t", "--apn-topic", "a")
        #expect(second.status == 69 && second.failure?.contains("in use by another process") == true, "\(second.errors)")
        await running.kill()

        #expect(await first.stop().status == 0)
        let unanswered = try await register(relay, "--mute-chat", "work", "--timeout", "1s")
        #expect(unanswered.status == 69 && unanswered.failure?.hasSuffix("waku-push client run goes on trying") == true)
        let waiting = try runClient(relay, "bob")
        _ = try await waiting.waitFor("started")
        await waiting.kill()
        #expect(try await run("client", "status", "--state", state("bob")).output.contains("pending"))

        // The server finds the registration in the network's store, and the client its answer there.
        let again = try await node.start("--relay", relay)
        let last = try runClient(relay, "bob")
        let registered = try await last.waitFor("registered")
        #expect(registered.version == 2)
        await last.kill()
        let shown = try await node.admin("registrations", "list").rows.last
        #expect(shown?.contains("2") == true, "\(String(describing: shown))")
        #expect(await again.stop().status == 0)
        #expect(await hub.stop().status == 0)
        #expect(node.leaks.isEmpty)
    }

    // MARK: Version 0.1

    private func v01(_ relay: String, _ command: String, _ name: String, _ arguments: String...) async throws -> Ended {
        try await node.recorded(["client", "v0.1", command, "--relay", relay, "--timeout", "60s", "--state", state(name)] + arguments)
    }

    @Test func clientsOfVersion01RegisterDiscoverAndNotify() async throws {
        let daemon = try await node.start("--status-v0.1")
        let relay = daemon.relayURL
        let registered = try await v01(
            relay, "register", "bob", "--server", node.server.publicKey, "--device-token", OperatedNode.deviceToken)
        #expect(registered.rows.last == [node.server.publicKey, "registered", "1"], "\(registered.errors)")
        let bob = try await publicKey("bob")
        let found = try await v01(relay, "query", "alice", bob)
        #expect(found.rows.last?[1] == "yes", "\(found.errors)")
        // On a slow machine gorush's first answer may take longer than the server waits for it.
        try await eventually {
            let notified = try await v01(relay, "notify", "alice", bob, "--chat", "family", "--message-id", "c0ffee")
            #expect(notified.status == 0 || notified.status == 69, "\(notified.errors)")
            return notified.status == 0
        }
        #expect(postCount == 1)
        #expect(try await v01(relay, "unregister", "bob").status == 0)
        #expect(await daemon.stop().status == 0)
        #expect(node.leaks.isEmpty)
    }

    /// Killed while its registration is unanswered: the next start continues.
    @Test func killedClientOfVersion01Continues() async throws {
        let hubKey = try KeyFile(in: node.folder, "hub.key")
        let hub = try await Daemon.start(["--identity", hubKey.path, "--data", node.folder.path + "/hub"])
        let relay = hub.relayURL
        let unanswered = try await v01(
            relay, "register", "bob", "--server", node.server.publicKey, "--device-token", OperatedNode.deviceToken, "--timeout", "1s")
        #expect(unanswered.status == 69 && unanswered.failure?.hasSuffix("waku-push client v0.1 run goes on trying") == true)
        let arguments = ["client", "v0.1", "run", "--json", "--relay", relay, "--state", state("bob")]
        let waiting = Running(process: try ChildProcess(arguments, limit: .seconds(240)))
        _ = try await waiting.waitFor("started")
        await waiting.kill()

        // The server finds the Register in the network's store, and the client its answer there.
        let daemon = try await node.start("--relay", relay, "--status-v0.1")
        let last = Running(process: try ChildProcess(arguments, limit: .seconds(240)))
        #expect(try await last.waitFor("registered").version == 1)
        #expect(try await last.waitFor("advertised").rows == 1)
        last.process.send(SIGTERM)
        #expect(await last.process.status == 0)
        #expect(await daemon.stop().status == 0)
        #expect(await hub.stop().status == 0)
        #expect(node.leaks.isEmpty)
    }

    /// There is no store: Alice runs, and receives Bob's advertisement.
    @Test func clientsMeetOverLibP2P() async throws {
        let daemon = try await node.start()
        let address = try await daemon.multiaddr()
        let running = try runClient(address, "bob")
        let bob = try #require(try await running.waitFor("started").publicKey)
        await running.kill()
        #expect(try await client(address, "discover", "alice", bob, "--timeout", "2s").status == 69)
        let alice = try runClient(address, "alice")
        _ = try await alice.waitFor("started")
        // Gossip keeps no messages for peers outside of a mesh, but Bob advertises at each start, so Alice receives one in the end.
        try await eventually {
            let registered = try await register(address)
            #expect(registered.status == 0, "\(registered.errors)")
            return alice.events.contains { $0.event == "discovered" }
        }
        alice.process.send(SIGINT)
        #expect(await alice.process.status == 0)
        try await notify(address, "alice", bob, "--message-id", "c0ffee")
        #expect(postCount == 1)
        #expect(await daemon.stop().status == 0)
        #expect(node.leaks.isEmpty)
    }
}
