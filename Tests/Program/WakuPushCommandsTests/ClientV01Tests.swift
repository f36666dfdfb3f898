import Core
import Foundation
import LoopbackRelay
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import WakuPushCommands

/// `waku-push client v0.1`, beside a node in this process.
@Suite("waku-push client v0.1", .timeLimit(.minutes(5)))
struct ClientV01Tests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func state(_ name: String) -> String { folder.path + "/" + name }

    private func client(_ server: LoopbackPushServer, _ command: String, _ arguments: String...) async throws -> Ended {
        try await run(["client", "v0.1", command, "--relay", server.relayURL, "--timeout", "60s"] + arguments)
    }

    private func register(_ server: LoopbackPushServer, _ name: String, _ arguments: String...) async throws -> Ended {
        try await run(
            [
                "client", "v0.1", "register", "--relay", server.relayURL, "--timeout", "60s", "--state", state(name), "--server",
                server.publicKey, "--device-token", name + "-token",
            ] + arguments)
    }

    private struct Status: Decodable {
        struct Server: Decodable {
            let state: String
            let version: UInt64?
        }
        let publicKey, installation: String
        let receiving, sending: Bool
        let servers: [Server]
    }

    private func status(_ name: String) async throws -> Status {
        try await run("client", "v0.1", "status", "--state", state(name), "--json").json()
    }

    @Test func registersQueriesNotifiesAndUnregisters() async throws {
        try await LoopbackPushServer.run(hasV01: true) { server in
            for _ in 0..<2 {
                let registered = try await register(server, "bob")
                // Nothing is sent when nothing changed.
                #expect(
                    registered.rows == [["SERVER", "STATE", "VERSION"], [server.publicKey, "registered", "1"]], "\(registered.errors)")
            }
            let bob = try await status("bob")
            #expect(bob.receiving && !bob.sending && bob.servers.map(\.state) == ["registered"])

            // From the network's store: Alice was not running when Bob advertised.
            let found = try await client(server, "query", "--state", state("alice"), bob.publicKey)
            #expect(found.rows.last == [bob.installation, "yes", server.publicKey], "\(found.errors)")
            let remembered = try await run(
                "client", "v0.1", "query", "--relay", "http://127.0.0.1:1", "--timeout", "1s", "--state", state("alice"),
                bob.publicKey)
            #expect(remembered.status == 69 && remembered.rows.last == found.rows.last, "\(remembered.errors)")
            for _ in 0..<2 {
                let notified = try await client(
                    server, "notify", "--state", state("alice"), bob.publicKey, "--chat", "family", "--message-id", "c0ffee",
                    "--json")
                #expect(notified.status == 0, "\(notified.errors)")
                #expect(notified.output.contains(#""event":"notified""#) && notified.output.contains(#""message":"c0ffee""#))
            }
            #expect(server.postCount == 1)
            #expect(try await status("alice").sending)

            let before = try advertisedRowCounts(on: server, of: PublicKey(hex: bob.publicKey))
            let ended = try await client(server, "unregister", "--state", state("bob"))
            #expect(ended.status == 0 && ended.rows.last == [server.publicKey, "unregistered", "-"], "\(ended.errors)")
            #expect(try await status("bob").receiving == false)
            let gone = try await client(server, "query", "--state", state("alice"), bob.publicKey)
            #expect(gone.status == 69 && gone.rows.isEmpty, "\(gone.output)")
            // The command that unregisters advertises no device.
            let after = try advertisedRowCounts(on: server, of: PublicKey(hex: bob.publicKey)).dropFirst(before.count)
            #expect(before.contains(1) && !after.isEmpty && after.allSatisfy { $0 == 0 }, "\(before) \(after)")
        }
    }

    /// The number of devices in each advertisement, the oldest first.
    private func advertisedRowCounts(on server: LoopbackPushServer, of owner: PublicKey) throws -> [Int] {
        let topic = StatusTopics.contactCode(owner)
        var query = LoopbackQuery.all
        query.contentTopics = [ContentTopic(TopicTag(of: topic))]
        return try server.network.withState { $0.query(query).messages }.map { received in
            let payload = try EnvelopeSealing.open(received.message, identity: nil, topicKeys: [KeyDerivation.topicKey(topic)])
            return try V01.SignedAdvertisement(parsing: payload.data).advertisement.info.count
        }
    }

    /// Not a server that is still being left.
    @Test func registersWithTheServersOfBefore() async throws {
        try await LoopbackPushServer.run(hasV01: true) { server in
            let gone = "0x" + PrivateKey.generate().publicKey.hex
            #expect(try await register(server, "bob", "--server", gone, "--timeout", "2s").status == 69)
            #expect(try await register(server, "bob").status == 0)
            func again() async throws -> Ended {
                try await client(server, "register", "--state", state("bob"), "--device-token", "bob-token")
            }
            let registered = try await again()
            let states = [[server.publicKey, "registered", "1"], [gone, "pending", "-"]].sorted { $0[0] < $1[0] }
            #expect(registered.rows == [["SERVER", "STATE", "VERSION"]] + states, "\(registered.errors)")
            // The stopped server is still retried.
            #expect(try await client(server, "unregister", "--state", state("bob"), "--timeout", "2s").status == 69)
            #expect(try await again().rows.contains { $0.prefix(2) == [server.publicKey, "registered"] })
        }
    }

    @Test func queriesAndNotifiesWithoutState() async throws {
        try await LoopbackPushServer.run(hasV01: true) { server in
            let registered = try await register(server, "bob", "--block-chat", "spam")
            #expect(registered.status == 0, "\(registered.errors)")
            let bob = try await status("bob")
            let found = try await client(server, "query", bob.publicKey, "--server", server.publicKey, "--json")
            #expect(found.status == 0 && found.output.contains(#""mayBeNotified" : true"#), "\(found.errors)")
            for (chat, posts) in [("spam", 0), ("family", 1)] {
                let notified = try await client(server, "notify", bob.publicKey, "--chat", chat)
                #expect(notified.status == 0, "\(notified.errors)")
                #expect(server.postCount == posts)
            }
        }
    }

    @Test func contactsAloneMayNotify() async throws {
        try await LoopbackPushServer.run(hasV01: true) { server in
            let contact = try KeyFile(in: folder, "contact.key")
            let registered = try await register(server, "bob", "--contacts-only", "--contact", contact.publicKey)
            #expect(registered.status == 0, "\(registered.errors)")
            let bob = try await status("bob").publicKey
            let notified = try await client(server, "notify", bob, "--identity", contact.path)
            #expect(notified.status == 0, "\(notified.errors)")
            let refused = try await client(server, "notify", bob)
            #expect(refused.status == 65)
            #expect(refused.failure == "none of the devices may be notified by this key: their owner did not allow it", "\(refused.errors)")
            #expect(server.postCount == 1)
        }
    }

    /// The same key, each with a state of its own.
    @Test func oneFolderHasAClientOfEachProtocol() async throws {
        try await LoopbackPushServer.run(hasV01: true) { server in
            #expect(try await register(server, "bob").status == 0)
            let deployed = try await run(
                "client", "register", "--relay", server.relayURL, "--timeout", "60s", "--state", state("bob"), "--server", server.publicKey,
                "--device-token", "t", "--apn-topic", "a", "--mute-chat", "work")
            #expect(deployed.rows.last == [server.publicKey, "registered", "1"], "\(deployed.errors)")
            let ended = try await client(server, "unregister", "--state", state("bob"))
            #expect(ended.rows.last == [server.publicKey, "unregistered", "-"], "\(ended.errors)")
            #expect(try await run("client", "status", "--state", state("bob")).output.contains("registered"))
            #expect(try await status("bob").servers.map(\.state) == ["unregistered"])
        }
    }

    /// The node listens, and drops messages of version 0.1.
    @Test func serverWithoutVersion01IsOneClearLine() async throws {
        try await LoopbackPushServer.run { server in
            let ended = try await register(server, "bob", "--timeout", "3s")
            #expect(ended.status == 69)
            #expect(
                ended.failure == "server \(server.publicKey) did not answer within 3s; waku-push client v0.1 run goes on trying",
                "\(ended.errors)")
            #expect(try await status("bob").servers.map(\.state) == ["pending"])
        }
    }

    @Test(arguments: [
        ["run"], ["status"], ["unregister"], ["register", "--device-token", "t"], ["register", "--state", "x", "--server", "0x04"],
        ["query"], ["notify", "0x04"], ["notify", "--message-id", "c0ffee"], ["run", "--state", "x", "--receiving", "maybe"],
        ["register", "--state", "x", "--device-token", "t", "--apn-topic", "a"], ["discover", "0x04"],
    ])
    func wrongUsage(arguments: [String]) async throws {
        let ended = try await run(["client", "v0.1"] + arguments)
        #expect(ended.status == 64)
        #expect(ended.failure != nil, "\(ended.errors)")
        #expect(!FileManager.default.fileExists(atPath: "x"))
    }

    @Test func wrongArgumentsAreOneClearLine() async throws {
        let key = "0x" + PrivateKey.generate().publicKey.hex
        for (arguments, failure) in [
            (["notify", key, "--message", "xyz"], "--message must be an even number of hexadecimal digits"),
            (["notify", key, "--message-id", ""], "--message-id must be an even number of hexadecimal digits"),
            (["register", "--state", state("x"), "--device-token", "t"], "--server is missing: give the public key of a push server"),
            (["query", "--state", state("x"), "--identity", "y", key], "--identity is for commands without --state"),
        ] {
            let ended = try await run(["client", "v0.1"] + arguments)
            #expect(ended.status == 64 && ended.failure?.hasPrefix(failure) == true, "\(ended.errors)")
        }
        #expect(try await run("client", "v0.1", "unregister", "--state", state("nobody")).status == 65)
    }

    @Test func stateOfAnotherProcessIsOneClearLine() async throws {
        let folder = ClientFolder(path: state("bob"))
        let running = try await folder.open([])
        for command in [["status"], ["run"], ["unregister"], ["query", "0x" + PrivateKey.generate().publicKey.hex]] {
            let ended = try await run(["client", "v0.1"] + command + ["--state", folder.path])
            #expect(ended.status == 69)
            #expect(ended.failure?.contains("is in use by another process") == true, "\(ended.errors)")
        }
        withExtendedLifetime(running) {}
    }
}
