import Foundation
import GRDB
import LoopbackRelay
@testable import PushClient
import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import WakuPushCommands

/// `waku-push client` with `--state`.
@Suite(.timeLimit(.minutes(5)))
struct ClientTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func state(_ name: String) -> String { folder.path + "/" + name }

    private func client(_ server: LoopbackPushServer, _ command: String, _ arguments: String...) async throws -> Ended {
        try await run(["client", command, "--relay", server.relayURL, "--timeout", "60s"] + arguments)
    }

    private func register(_ server: LoopbackPushServer, _ arguments: String...) async throws -> Ended {
        try await run(
            [
                "client", "register", "--relay", server.relayURL, "--timeout", "60s", "--state", state("bob"), "--server", server.publicKey,
                "--device-token", "bobs-token", "--apn-topic", "im.status.ethereum",
            ] + arguments)
    }

    private struct Status: Decodable {
        struct Server: Decodable {
            let server, state: String
            let version: UInt64?
            let tries: Int
            let nextTryInSeconds: Int?
        }
        struct Contact: Decodable, Equatable {
            let registrant: String
            let devices, servers, tokensKnown: Int
        }
        let publicKey, installation: String
        let receiving, sending: Bool
        let servers: [Server]
        let contacts: [Contact]
    }

    private func status(_ name: String) async throws -> Status {
        try await run("client", "status", "--state", state(name), "--json").json()
    }

    /// The public key of the client in a state folder.
    private func key(_ name: String) async throws -> String { try await status(name).publicKey }

    @Test func registersDiscoversNotifiesAndUnregisters() async throws {
        try await LoopbackPushServer.run { server in
            let registered = try await register(server)
            #expect(registered.status == 0 && registered.errors == "", "\(registered.errors)")
            #expect(registered.rows == [["SERVER", "STATE", "VERSION"], [server.publicKey, "registered", "1"]])
            let bob = try await status("bob")
            #expect(bob.receiving && !bob.sending)
            #expect(bob.servers.map(\.state) == ["registered"] && bob.servers.first?.version == 1)
            for file in ["identity.key", "client.sqlite"] {
                let attributes = try FileManager.default.attributesOfItem(atPath: state("bob/" + file))
                #expect(attributes[.posixPermissions] as? Int == 0o600, "\(file)")
            }

            // From the network's store: Alice was not running when Bob advertised.
            let discovered = try await client(server, "discover", "--state", state("alice"), bob.publicKey)
            #expect(discovered.rows.last == [bob.installation, "1", "yes", server.publicKey], "\(discovered.errors)")
            let contacts = try await status("alice").contacts
            #expect(contacts == [Status.Contact(registrant: bob.publicKey, devices: 1, servers: 1, tokensKnown: 1)])

            let notify = ["--state", state("alice"), bob.publicKey, "--chat", "family", "--message-id", "c0ffee", "--json"]
            for _ in 0..<2 {
                let notified = try await run(["client", "notify", "--relay", server.relayURL, "--timeout", "60s"] + notify)
                #expect(notified.status == 0, "\(notified.errors)")
                #expect(notified.output.contains(#""event":"notified""#) && notified.output.contains(#""message":"c0ffee""#))
            }
            #expect(server.postCount == 1)
            #expect(try await status("alice").sending)

            let ended = try await client(server, "unregister", "--state", state("bob"))
            #expect(ended.status == 0 && ended.rows.last == [server.publicKey, "unregistered", "-"], "\(ended.errors)")
            #expect(try await status("bob").receiving == false)
            // The command that unregisters advertises no device.
            let rowCounts = try advertisedRowCounts(on: server, of: PublicKey(hex: bob.publicKey))
            #expect(rowCounts.first == 1 && rowCounts.count > 1 && rowCounts.dropFirst().allSatisfy { $0 == 0 }, "\(rowCounts)")
        }
    }

    /// The number of devices in each advertisement, the oldest first.
    private func advertisedRowCounts(on server: LoopbackPushServer, of owner: PublicKey) throws -> [Int] {
        let topic = StatusTopics.contactCode(owner)
        var query = LoopbackQuery.all
        query.contentTopics = [ContentTopic(TopicTag(of: topic))]
        return try server.network.withState { $0.query(query).messages }.map { received in
            let payload = try EnvelopeSealing.open(received.message, identity: nil, topicKeys: [KeyDerivation.topicKey(topic)])
            return try SignedAdvertisement(parsing: payload.data).advertisement.pushNotificationInfo.count
        }
    }

    /// A trigger in place of a full disk.
    @Test func aStateThatCanNotBeWrittenIsNamed() async throws {
        try await LoopbackPushServer.run { server in
            #expect(try await register(server).status == 0)
            let database = try DatabaseQueue(path: state("bob/client.sqlite"))
            try await database.write {
                try $0.execute(sql: "CREATE TRIGGER failing BEFORE INSERT ON record BEGIN SELECT RAISE(ABORT, ''); END")
            }
            try database.close()
            let failed = try await register(server, "--device-token", "another", "--timeout", "1s")
            #expect(failed.status == 69)
            #expect(failed.failure?.hasPrefix("the client's changes were not stored: client state ") == true, "\(failed.errors)")
        }
    }

    @Test func statusVerifiesAndPings() async throws {
        try await LoopbackPushServer.run { server in
            #expect(try await register(server).status == 0)
            let verified = try await client(server, "status", "--state", state("bob"), "--ping")
            #expect(
                verified.status == 0 && verified.rows.last == [server.publicKey, "matches, version 1", "accepted"], "\(verified.errors)")
            #expect(server.postCount == 1)
            // No device of this client is registered anywhere.
            #expect(try await client(server, "status", "--state", state("alice"), "--verify").status == 65)
        }
    }

    @Test func failedPingIsNamed() {
        var check = RegistrationCheck(
            server: PrivateKey.generate().publicKey, status: .registered(version: 1), finding: .matches(version: 1))
        check.ping = .refused(.internalError)
        let row = RegistrationCheckRow(check)
        #expect(row.problem == "the registration matches, version 1, but the notification failed: INTERNAL_ERROR")
        #expect(row.passes && !row.isHealthy)
        check.ping = .refused(.wrongToken)
        #expect(!RegistrationCheckRow(check).passes)
    }

    @Test func aServerThatDoesNotAnswerMayLater() {
        let server = PrivateKey.generate().publicKey
        let findings: [(RegistrationCheck.Finding, Bool)] = [
            (.noAnswer(.noAnswer(within: .seconds(3))), true), (.notRegistered, false), (.otherToken, false),
        ]
        for (finding, passes) in findings {
            let row = RegistrationCheckRow(RegistrationCheck(server: server, status: .registered(version: 1), finding: finding))
            #expect(row.passes == passes && !row.isHealthy, "\(finding)")
        }
    }

    @Test func refusalIsNamedInsteadOfAnotherRegistration() {
        let server = PrivateKey.generate().publicKey
        for finding in [RegistrationCheck.Finding.notRegistered, .otherToken] {
            let row = RegistrationCheckRow(RegistrationCheck(server: server, status: .refused(.malformedMessage), finding: finding))
            #expect(row.finding.hasSuffix("; the server refused the registration: MALFORMED_MESSAGE"))
        }
    }

    /// The wrong server must not cost the working registration.
    @Test func aServerIsLeftWhenAnotherOneHasAccepted() async throws {
        try await LoopbackPushServer.run { server in
            #expect(try await register(server).status == 0)
            let gone = "0x" + PrivateKey.generate().publicKey.hex
            let moved = try await client(
                server, "register", "--state", state("bob"), "--server", gone, "--device-token", "bobs-token", "--apn-topic",
                "im.status.ethereum", "--timeout", "2s")
            #expect(moved.status == 69 && moved.rows.contains([server.publicKey, "registered", "1"]), "\(moved.errors)")
            let notified = try await client(server, "notify", "--state", state("alice"), try await key("bob"))
            #expect(notified.status == 0 && server.postCount == 1, "\(notified.errors)")
        }
    }

    @Test func aSubscriptionForAnotherVAPIDKeyIsRefused() async throws {
        let (named, other) = (P256PrivateKey.generate().publicKey, P256PrivateKey.generate().publicKey)
        let keys = try #require(WebPushKeys(publicKey: other, secret: randomBytes(WebPushKeys.secretByteCount)))
        let subscription = try #require(PushSubscription(endpoint: "https://push.example/a", keys: keys, vapidKey: named))
        let file = folder.path + "/subscription.json"
        try write(String(decoding: subscription.json, as: UTF8.self), to: file)
        let server = "0x\(PrivateKey.generate().publicKey.hex),vapid=\(Base64URL.encode(other.bytes))"
        let ended = try await run(
            "client", "register", "--relay", "http://127.0.0.1:1", "--state", state("bob"), "--server", server, "--web-push", file)
        #expect(ended.status == 64 && ended.failure?.contains("another VAPID key") == true, "\(ended.errors)")
    }

    /// Over libp2p there may be no store to look advertisements up in.
    @Test func queriesListedServers() async throws {
        try await LoopbackPushServer.run { server in
            #expect(try await register(server).status == 0)
            let bob = try await key("bob")
            let found = try await client(server, "discover", "--state", state("alice"), "--server", server.publicKey, bob)
            #expect(found.rows.last?.last == server.publicKey, "\(found.errors)")
            let notified = try await client(server, "notify", "--state", state("alice"), "--server", server.publicKey, bob)
            #expect(notified.status == 0 && server.postCount == 1, "\(notified.errors)")
            let stranger = "0x" + PrivateKey.generate().publicKey.hex
            let none = try await client(server, "discover", "--state", state("carol"), stranger)
            #expect(none.status == 69 && none.errors.contains("no server of this registrant is known"), "\(none.errors)")
            #expect(none.errors.hasSuffix("or name its server with --server\n"), "\(none.errors)")
        }
    }

    @Test(arguments: [true, false]) func rememberedDevicesAreNoAnswer(isHanging: Bool) async throws {
        struct Row: Decodable {
            let installation: String
            let remembered: Bool?
        }
        let silent = try RawHTTPServer { _ in isHanging ? .hang : .status(500) }
        defer { silent.stop() }
        try await LoopbackPushServer.run { server in
            #expect(try await register(server).status == 0)
            let bob = try await key("bob")
            let discover = ["client", "discover", "--state", state("alice"), bob, "--json", "--relay"]
            for _ in 0..<2 {
                let found = try await run(discover + [server.relayURL, "--timeout", "60s"])
                #expect(try found.status == 0 && found.json([Row].self).map(\.remembered) == [nil], "\(found.errors)")
                let remembered = try await run(discover + [silent.url, "--timeout", "500ms"])
                #expect(try remembered.status == 69 && remembered.json([Row].self).map(\.remembered) == [true])
                #expect(remembered.errors.contains("no store or server answered: the devices are remembered"), "\(remembered.errors)")
            }
        }
    }

    @Test func oneShotCommandsAcceptThePreferences() async throws {
        try await LoopbackPushServer.run { server in
            let bob = try KeyFile(in: folder, "bob.key")
            let registered = try await client(
                server, "register", "--server", server.publicKey, "--identity", bob.path, "--device-token", "t", "--apn-topic", "a",
                "--block-chat", "spam", "--installation", "phone")
            #expect(registered.field("installation") == "phone", "\(registered.errors)")
            for (chat, posts) in [("spam", 0), ("family", 1)] {
                let notified = try await client(
                    server, "notify", "--server", server.publicKey, "--registrant", bob.publicKey, "--chat", chat)
                #expect(notified.rows.last == ["phone", "success"], "\(notified.errors)")
                #expect(server.postCount == posts)
            }
        }
    }

    @Test func onlyAllowedKeysMayNotify() async throws {
        try await LoopbackPushServer.run { server in
            let (bob, alice, mallory) = (
                try KeyFile(in: folder, "bob.key"), try KeyFile(in: folder, "alice.key"), try KeyFile(in: folder, "mallory.key")
            )
            let registered = try await client(
                server, "register", "--server", server.publicKey, "--identity", bob.path, "--device-token", "t", "--apn-topic", "a",
                "--allow", alice.publicKey)
            #expect(registered.status == 0, "\(registered.errors)")
            for (sender, status) in [(mallory, 65), (alice, 0)] as [(KeyFile, Int32)] {
                let notified = try await client(
                    server, "notify", "--server", server.publicKey, "--registrant", bob.publicKey, "--chat", "family", "--identity",
                    sender.path)
                #expect(notified.status == status, "\(notified.errors)")
            }
            #expect(server.postCount == 1)
        }
    }

    @Test func nothingIsSentWhenNothingChanged() async throws {
        try await LoopbackPushServer.run { server in
            for _ in 0..<2 { #expect(try await register(server).rows.last?.last == "1") }
            #expect(try await register(server, "--mute-chat", "work").rows.last?.last == "2")
            // The servers of before.
            let again = try await client(
                server, "register", "--state", state("bob"), "--device-token", "bobs-token", "--apn-topic", "im.status.ethereum")
            #expect(again.rows.last == [server.publicKey, "registered", "3"], "\(again.errors)")
        }
    }

    /// Not a server that is still being left.
    @Test func registersWithTheServersOfBefore() async throws {
        try await LoopbackPushServer.run { server in
            let gone = "0x" + PrivateKey.generate().publicKey.hex
            #expect(try await register(server, "--server", gone, "--timeout", "2s").status == 69)
            #expect(try await register(server).status == 0)
            func again() async throws -> Ended {
                try await client(
                    server, "register", "--state", state("bob"), "--device-token", "bobs-token", "--apn-topic", "im.status.ethereum")
            }
            let registered = try await again()
            let states = [[server.publicKey, "registered", "1"], [gone, "pending", "-"]].sorted { $0[0] < $1[0] }
            #expect(registered.rows == [["SERVER", "STATE", "VERSION"]] + states, "\(registered.errors)")
            // The stopped server is still retried.
            #expect(try await client(server, "unregister", "--state", state("bob"), "--timeout", "2s").status == 69)
            #expect(try await again().rows.contains { $0.prefix(2) == [server.publicKey, "registered"] })
        }
    }

    @Test func wishesReachTheServer() async throws {
        try await LoopbackPushServer.run { server in
            #expect(try await run("client", "status", "--state", state("alice")).status == 65)
            // Keys are made by the first command with a folder.
            for name in ["alice", "mallory"] {
                #expect(try await client(server, "discover", "--state", state(name), server.publicKey, "--timeout", "1s").status == 69)
            }
            let registered = try await register(
                server, "--contacts-only", "--contact", try await key("alice"), "--block-chat", "spam", "--mute-chat", "work",
                "--mentions-in", "work", "--block-author", try await key("mallory"))
            #expect(registered.status == 0, "\(registered.errors)")
            let bob = try await key("bob")
            func notify(_ name: String, _ chat: String, _ kind: String = "message") async throws -> Ended {
                try await client(server, "notify", "--state", state(name), bob, "--chat", chat, "--kind", kind)
            }
            // The registrant's filter blocks it: the server reports success, and posts nothing.
            for (chat, kind, posts) in [
                ("spam", "message", 0), ("work", "message", 0), ("work", "mention", 1), ("other", "mention", 1), ("family", "message", 2),
            ] {
                let notified = try await notify("alice", chat, kind)
                #expect(notified.status == 0, "\(notified.errors)")
                #expect(server.postCount == posts, "\(chat) \(kind)")
            }
            let refused = try await notify("mallory", "family")
            #expect(refused.status == 65)
            #expect(refused.failure == "none of the devices may be notified by this key: their owner did not allow it", "\(refused.errors)")
            #expect(server.postCount == 2)
        }
    }

    // MARK: Bad input

    @Test func unknownServerIsOneClearLine() async throws {
        try await LoopbackPushServer.run { server in
            let unknown = PrivateKey.generate().publicKey
            let ended = try await register(server, "--server", "0x" + unknown.hex, "--timeout", "9s")
            #expect(ended.status == 69)
            #expect(
                ended.failure == "server 0x\(unknown.hex) did not answer within 9s; waku-push client run goes on trying", "\(ended.errors)")
            // The other server accepted it.
            #expect(ended.rows.contains([server.publicKey, "registered", "1"]))
            #expect(try await status("bob").servers.first { $0.server == "0x" + unknown.hex }?.state == "pending")
        }
        let topic = try await run("client", "run", "--state", state("x"), "--pubsub-topic", "no topic")
        #expect(topic.status == 64 && topic.failure?.contains("--pubsub-topic") == true, "\(topic.errors)")
        let malformed = try await run("client", "register", "--state", state("x"), "--server", "0x04", "--device-token", "t")
        #expect(malformed.status == 64 && malformed.failure != nil)
        #expect(!FileManager.default.fileExists(atPath: state("x")))
    }

    @Test func relayThatRefusesIsOneClearLine() async throws {
        let relay = try RawHTTPServer { request in
            request.head.hasPrefix("POST") ? .status(400, body: "no") : .status(200, body: #"{"statusCode":200,"messages":[]}"#)
        }
        defer { relay.stop() }
        let server = PrivateKey.generate().publicKey
        for url in [relay.url, "http://127.0.0.1:1"] {
            let ended = try await run(
                "client", "register", "--relay", url, "--timeout", "9s", "--state", state("bob"), "--server", "0x" + server.hex,
                "--device-token", "t", "--apn-topic", "a")
            #expect(ended.status == 69)
            let failure = try #require(ended.failure, "\(ended.errors)")
            #expect(failure.hasPrefix("server 0x\(server.hex) did not get it: "), "\(failure)")
            #expect(failure.hasSuffix("; waku-push client run goes on trying"))
        }
        let filter = try await run("client", "discover", "--state", state("bob"), "0x" + server.hex, "--attach", "filter")
        #expect(filter.status == 64 && filter.failure == "--attach filter is for a --relay that is a multiaddr, or a --fleet")
    }

    @Test func stateOfAnotherProcessIsOneClearLine() async throws {
        let folder = ClientFolder(path: state("bob"))
        let running = try await folder.open([])
        for command in [["status"], ["run"], ["unregister"], ["notify", "0x" + PrivateKey.generate().publicKey.hex]] {
            let ended = try await run(["client"] + command + ["--state", folder.path])
            #expect(ended.status == 69)
            #expect(ended.failure?.contains("is in use by another process") == true, "\(ended.errors)")
            #expect(ended.output == "")
        }
        withExtendedLifetime(running) {}
    }

    @Test(arguments: ["garbage", "open to others", "key of another client", "key missing", "key open to others", "file in the way"])
    func unusableStateIsOneClearLine(what: String) async throws {
        let path = state("bob")
        _ = try await ClientFolder(path: path).open([])
        let code: Int32
        switch what {
        case "garbage":
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + "/client.sqlite" + suffix) }
            try write(String(repeating: "garbage", count: 1000), to: path + "/client.sqlite")
            code = 65
        case "open to others":
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path + "/client.sqlite")
            code = 77
        case "key of another client":
            try FileManager.default.removeItem(atPath: path + "/identity.key")
            _ = try KeyFile(in: folder, "bob/identity.key")
            code = 65
        case "key missing":
            try FileManager.default.removeItem(atPath: path + "/identity.key")
            code = 65
        case "key open to others":
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path + "/identity.key")
            code = 77
        default:
            try FileManager.default.removeItem(atPath: path)
            try write("a file", to: path)
            code = 73
        }
        let ended = try await run("client", "discover", "--state", path, "0x" + PrivateKey.generate().publicKey.hex)
        #expect(ended.status == code)
        #expect(ended.failure?.contains(path) == true, "\(ended.errors)")
        #expect(ended.output == "")
    }

    @Test func anEmptyStateIsNamed() async throws {
        let path = state("bob")
        _ = try await ClientFolder(path: path).open([])
        #expect(try await run("client", "status", "--state", path).errors == "")
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + "/client.sqlite" + suffix) }
        #expect(
            FileManager.default.createFile(atPath: path + "/client.sqlite", contents: Data(), attributes: [.posixPermissions: 0o600]))
        let ended = try await run("client", "status", "--state", path)
        #expect(ended.status == 0 && ended.failure?.hasPrefix("warning: \(path)/client.sqlite is empty") == true, "\(ended.errors)")
    }

    @Test func damagedAdvertisementIsOneClearLine() async throws {
        try await LoopbackPushServer.run { server in
            let bob = PrivateKey.generate()
            let topic = StatusTopics.contactCode(bob.publicKey)
            let row = PushNotificationQueryInfo(
                accessToken: AccessToken("6f1c1e94-3b5a-4c39-9a61-d7e0b1c2a3f4"), installationID: InstallationID("phone"),
                publicKey: KeyHash(of: bob.publicKey).bytes, allowedKeyList: [], grant: [1, 2, 3], version: 1,
                serverPublicKey: server.key.compressed)
            let advertisement = ContactCodeAdvertisement(pushNotificationInfo: [row])
            let signed = SignedAdvertisement.encode(advertisement, from: InstallationID("phone"), signedBy: bob)
            let foreign = SignedAdvertisement.encode(advertisement, from: InstallationID("phone"), signedBy: .generate())
            for (data, text) in [
                (signed, "has a row without server key or with a wrong grant"), (foreign, "is signed by another key"),
                (Array("neither protobuf nor signed".utf8), "is damaged"),
            ] {
                let key = KeyDerivation.topicKey(topic)
                for message in EnvelopeSealing.seal(data, to: .topic(topic, key), wakuSigner: bob, at: .now()) {
                    server.network.publish(message, on: .statusDefault)
                }
                let ended = try await client(
                    server, "discover", "--state", state("alice-" + UUID().uuidString), "0x" + bob.publicKey.hex, "--timeout", "4s")
                #expect(ended.status == 65)
                #expect(ended.failure == "no device is known: the registrant's advertisement \(text)", "\(ended.errors)")
            }
        }
    }

    @Test(arguments: [
        ["run"], ["status"], ["discover", "0x04"], ["notify", "--state", "x"], ["register", "--state", "x", "--server", "0x04"],
        ["register", "--device-token", "t"], ["unregister"], ["unregister", "--state", "x", "--version", "2"],
        ["run", "--state", "x", "more"],
        ["run", "--state", "x", "--receiving", "maybe"], ["query", "--state", "x"],
    ])
    func wrongUsageOfTheTwoForms(arguments: [String]) async throws {
        let ended = try await run(["client"] + arguments)
        #expect(ended.status == 64)
        #expect(ended.failure != nil, "\(ended.errors)")
        #expect(!FileManager.default.fileExists(atPath: "x"))
    }

    @Test func optionsOfTheOtherFormAreRefused() async throws {
        let key = "0x" + PrivateKey.generate().publicKey.hex
        for (arguments, option) in [
            (["register", "--device-token", "t", "--server", key, "--version", "2"], "version"),
            (["unregister", "--installation", "phone"], "installation"), (["notify", key, "--identity", "x"], "identity"),
        ] {
            let ended = try await run(["client"] + arguments + ["--state", state("x")])
            #expect(ended.status == 64)
            #expect(ended.failure?.hasPrefix("--\(option) is for commands without --state") == true, "\(ended.errors)")
        }
        let two = try await run("client", "register", "--device-token", "t", "--server", key, "--server", key, "--identity", "x")
        #expect(two.status == 64 && two.failure?.hasPrefix("Without --state, give exactly one --server") == true)
        let queried = try await run("client", "query", key, "--server", key, "--server", key)
        #expect(queried.status == 64 && queried.failure?.hasPrefix("Give exactly one --server") == true, "\(queried.errors)")
        let without = try await run("client", "register", "--state", state("x"), "--device-token", "t", "--apn-topic", "a")
        #expect(without.status == 64 && without.failure == "--server is missing: give the public key of a push server")
    }

    /// Such as those of variables that are not set. A server would answer MALFORMED_MESSAGE.
    @Test func valuesThatNoServerAcceptsAreNamed() async throws {
        let key = "0x" + PrivateKey.generate().publicKey.hex
        let register = ["client", "register", "--server", key, "--identity", "x", "--apn-topic", "a"]
        let long = String(repeating: "i", count: InstallationID.maximumByteCount + 1)
        let (wide, lined) = ("６f1c1e94-3b5a-4c39-9a61-d7e0b1c2a3f4", "6f1c1e94-3b5a-4c39-9a61-d7e0b1c2a3f4\n")
        for (arguments, failure) in [
            (register + ["--device-token", ""], "--device-token is empty"),
            (["client", "v0.1", "register", "--state", state("x"), "--device-token", ""], "--device-token is empty"),
            (register + ["--device-token", "t", "--installation", ""], "--installation must have 1 to 128 bytes"),
            (register + ["--device-token", "t", "--installation", long], "--installation must have 1 to 128 bytes"),
            (register + ["--device-token", "t", "--access-token", "zz"], "--access-token must be a UUID"),
            (register + ["--device-token", "t", "--access-token", wide], "--access-token must be a UUID"),
            (register + ["--device-token", "t", "--access-token", lined], "--access-token must be a UUID"),
            (register + ["--device-token", "t", "--version", "0"], "--version must be at least 1"),
            // ArgumentParser would print the program's version.
            (register + ["--version", "2", "--device-token", ""], "--device-token is empty"),
            (register + ["--version=2", "--device-token", ""], "--device-token is empty"),
            (register + ["--device-token", "t", "--version", "2", "--timeout", "10"], "The value '10' is invalid for '--timeout"),
            (register + ["--device-token", "t", "--version", "x"], "The value 'x' is invalid for '--version"),
            (["client", "unregister", "--server", key, "--installation", "", "--version", "2"], "--installation must have 1 to 128 bytes"),
            (
                ["client", "notify", key, "--server", key, "--message-id", "0xab"],
                "--message-id must be an even number of hexadecimal digits"
            ),
            (
                ["client", "notify", key, "--server", key, "--message-id", "abc"],
                "--message-id must be an even number of hexadecimal digits"
            ),
        ] {
            let ended = try await run(arguments)
            #expect(ended.status == 64 && ended.failure?.hasPrefix(failure) == true, "\(ended.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: state("x")))
        #expect(try await run("client", "register", "--version", "2", "--help").output.contains("USAGE: waku-push client register"))
        #expect(try await run("client", "--version").output == Version.current + "\n")
    }

    /// Values that newcomers give: the path of a key file, and no app for APNs.
    @Test func mistakesAreAnsweredWithTheRemedy() async throws {
        let key = "0x" + PrivateKey.generate().publicKey.hex
        for arguments in [
            ["register", "--device-token", "t", "--server", "id.key"], ["query", "--server", key, "--registrant", "bob.key"],
        ] {
            let ended = try await run(["client"] + arguments)
            #expect(ended.status == 64)
            #expect(ended.failure?.contains("give a public key in hexadecimal digits") == true, "\(ended.errors)")
        }
        for form in [["--state", state("x")], ["--identity", "bob.key"]] {
            let ended = try await run(["client", "register", "--device-token", "t", "--server", key] + form)
            #expect(ended.status == 64 && ended.failure?.hasPrefix("--apn-topic is missing") == true, "\(ended.errors)")
        }
        try await LoopbackPushServer.run { server in
            let ended = try await client(server, "query", "--server", server.publicKey, "--timeout", "1s", key)
            #expect(ended.status == 69)
            #expect(ended.failure?.hasSuffix("or has no registration of this registrant") == true, "\(ended.errors)")
        }
    }

    /// Scripts drop a contact for this code, and try again for 69.
    @Test func exitCodeTellsAnUnregisteredDeviceFromSilence() {
        let key = PrivateKey.generate().publicKey
        for (reason, code) in [(DeviceOutcome.GiveUpReason.notRegistered, CommandFailure.Code.data), (.noServer, .unavailable)] {
            let outcomes = [DeviceOutcome(registrant: key, installationID: nil, result: .gaveUp(reason))]
            let timeout = DurationArgument("1s")
            let failure = #expect(throws: CommandFailure.self) { try outcomes.report([1], asJSON: true, nil, timeout) }
            #expect(failure?.code == code)
        }
    }

    /// A server that answered INTERNAL_ERROR has the notification in its outbox.
    @Test func aTimeOutNamesTheIdWithWhichARepetitionNotifiesOnce() {
        let outcomes = [DeviceOutcome(registrant: PrivateKey.generate().publicKey, installationID: nil, result: .gaveUp(.cancelled))]
        let failure = #expect(throws: CommandFailure.self) {
            try outcomes.report([0xC0, 0xFF, 0xEE], asJSON: true, nil, DurationArgument("1s"))
        }
        #expect(failure?.code == .unavailable)
        #expect(failure?.message.hasSuffix("one may still notify: a repetition with --message-id c0ffee notifies once") == true)
    }

    /// In any order of the devices.
    @Test func anAttemptThatMaySucceedLaterTakesPrecedenceInTheExitCode() {
        let key = PrivateKey.generate().publicKey
        let results: [DeviceOutcome.Result] = [.gaveUp(.notRegistered), .gaveUp(.noServer), .notAllowed, .notified(by: key)]
        for results in [results, results.reversed()] {
            let outcomes = results.map { DeviceOutcome(registrant: key, installationID: nil, result: $0) }
            let failure = #expect(throws: CommandFailure.self) { try outcomes.report([1], asJSON: true, nil, DurationArgument("1s")) }
            #expect(failure?.code == .unavailable && failure?.message.hasSuffix("they did not answer, or failed") == true)
        }
        // Without --state.
        for errors in [[PushNotificationReport.ErrorType.notRegistered, .internalError], [.internalError, .notRegistered]] {
            #expect(CommandFailure(errors)?.code == .unavailable)
        }
        #expect(CommandFailure([.wrongToken])?.code == .data)
        #expect(CommandFailure([PushNotificationReport.ErrorType]()) == nil)
    }

    @Test func exitCodeOfDevicesForOthersDependsOnTheRest() throws {
        let key = PrivateKey.generate().publicKey
        func outcome(_ id: String, _ result: DeviceOutcome.Result) -> DeviceOutcome {
            DeviceOutcome(registrant: key, installationID: InstallationID(id), result: result)
        }
        let timeout = DurationArgument("1s")
        try [outcome("phone", .notAllowed), outcome("tablet", .notified(by: key))].report([1], asJSON: true, nil, timeout)
        let none = [outcome("phone", .notAllowed), outcome("tablet", .notAllowed)]
        #expect(throws: CommandFailure.self) { try none.report([1], asJSON: true, nil, timeout) }
    }

    // MARK: Events

    @Test func eventsAreLines() throws {
        let key = PrivateKey.generate().publicKey
        let outcome = DeviceOutcome(registrant: key, installationID: InstallationID("phone\u{1B}"), result: .gaveUp(.noServer))
        let events: [PushClientEvent] = [
            .registered(with: key, version: 3), .refused(by: key, .malformedMessage), .willRetry(key, tries: 2, after: .seconds(60)),
            .unregistered(from: key), .advertised(rowCount: 2), .discovered(key, deviceCount: 1), .advertisementRejected(key, .badRow),
            .notified(messageID: [1], DeviceOutcome(registrant: key, installationID: InstallationID("p"), result: .notified(by: key))),
            .gaveUp(messageID: [1], outcome), .relayFailed(reason: "refused"), .storeFailed(reason: "disk full"),
        ]
        let lines = try events.map { try ClientEventLine($0).text(asJSON: false) }
        #expect(lines[0] == "registered server=0x\(key.hex) version=3")
        #expect(lines[2] == "will-retry server=0x\(key.hex) tries=2 seconds=60")
        #expect(lines[6] == "advertisement-rejected registrant=0x\(key.hex) reason=bad-row")
        #expect(lines[8] == "gave-up registrant=0x\(key.hex) installation=phone\\u{1b} message=01 reason=noServer")
        #expect(lines[10] == "store-failed reason=disk full")
        let names = try events.map { event in
            let text = try ClientEventLine(event).text(asJSON: true)
            #expect(!text.contains { $0.isNewline })
            struct Named: Decodable { let event: String }
            return try JSONDecoder().decode(Named.self, from: Data(text.utf8)).event
        }
        #expect(names == lines.map { String($0.prefix { $0 != " " }) } && Set(names).count == names.count)
    }
}
