import CurlClient
import Foundation
import NwakuRelay
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

/// Attacks by clients, who can generate keys and publish, and by a relay that replays their messages.
@Suite("Hostile clients", .timeLimit(.minutes(5)))
struct HostileClientsTests {
    private let node: OperatedNode
    private let client = CurlClient()

    init() throws {
        node = try OperatedNode()
    }

    private func api(_ daemon: Daemon) throws -> NwakuAPI {
        NwakuAPI(address: try NodeAddress(daemon.relayURL), client: client)
    }

    /// The sum of a metric over its labels.
    private func metric(_ daemon: Daemon, _ name: String) async throws -> Int {
        let text = String(decoding: try await daemon.get("/metrics").body, as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix(name + " ") || $0.hasPrefix(name + "{") }
        return lines.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0) { $0 + Int($1) }
    }

    // MARK: Texts

    /// Escape sequences, line breaks, forged log lines, characters that change the text direction: in every text that a client chooses.
    private static let hostileTexts = [
        "\u{1b}[2J\u{1b}]0;owned\u{7}", "x\r\n2030-01-01T00:00:00Z error forged", "\u{202e}desrever\u{2066}", "\u{9b}31m\u{2028}\u{feff}",
        "a\u{301}\u{200b}", String(repeating: "x", count: 128), "<script>alert(1)</script>", "'; DROP TABLE registration; --",
        "../../etc/passwd",
    ]

    @Test func textFromClientsIsEscapedEverywhere() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        for text in Self.hostileTexts {
            let registered = try await node.client(
                daemon, "register", "--identity", node.bob.path, "--device-token", "t" + text, "--access-token", OperatedNode.accessToken,
                "--apn-topic", "a" + text, "--installation", text, "--version", "18446744073709551615")
            #expect(registered.status == 0, "\(registered.errors)")
        }
        let notified = try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "01")
        #expect(notified.status == 0, "\(notified.errors)")
        let (list, show) = (
            try await node.admin("registrations", "list"),
            try await node.admin("registrations", "show", node.bob.publicKey, identified: true)
        )
        let asJSON = [
            try await node.admin("registrations", "list", "--json"),
            try await node.admin("registrations", "show", node.bob.publicKey, "--json", "--reveal", identified: true),
            try await node.client(daemon, "query", "--registrant", node.bob.publicKey, "--json"),
        ]
        let removed = try await node.admin("registrations", "remove", node.bob.publicKey)
        let queried = try await node.query(daemon)
        for ended in [list, show, removed, queried, notified] + asJSON {
            #expect(ended.status == 0)
            #expect(Self.isPlain(ended.output), "\(ended.output)")
        }
        #expect(list.rows.count == Self.hostileTexts.count + 1)
        #expect(list.output.contains(#"\u{1b}[2J\u{1b}]0;owned\u{7}"#))
        for path in ["/", "/metrics", "/status.json", "/readyz"] {
            let text = String(decoding: try await daemon.get(path).body, as: UTF8.self)
            for part in ["owned", "forged", "desrever", "alert(1)", "DROP TABLE", "passwd"] { #expect(!text.contains(part), "\(path)") }
        }
        // gorush gets JSON, with each text as it is.
        struct Body: Decodable {
            struct Entry: Decodable {
                let tokens: [String]
                let topic: String
            }
            let notifications: [Entry]
        }
        let posts = node.gorush.requests.filter { $0.head.hasPrefix("POST") }
        let entries = try posts.flatMap { try JSONDecoder().decode(Body.self, from: Data($0.body)).notifications }
        #expect(Set(entries.map { Array($0.tokens[0].utf8) }) == Set(Self.hostileTexts.map { Array("t\($0)".utf8) }))
        #expect(Set(entries.map { Array($0.topic.utf8) }) == Set(Self.hostileTexts.map { Array("a\($0)".utf8) }))
        let ended = await daemon.stop()
        #expect(ended.status == 0)
        #expect(Self.isPlain(ended.errors))
        for part in ["owned", "forged", "desrever"] { #expect(!ended.errors.contains(part)) }
    }

    /// No characters that move a cursor or change the text direction.
    private static func isPlain(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control: scalar == "\n"
            case .format, .lineSeparator, .paragraphSeparator, .surrogate: false
            default: true
            }
        }
    }

    @Test(arguments: [("--device-token", String(repeating: "x", count: 4097)), ("--apn-topic", String(repeating: "x", count: 4097))])
    func invalidRegistrationsAreRefused(option: String, value: String) async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        var options = [
            "--device-token": "token", "--access-token": OperatedNode.accessToken, "--apn-topic": "app", "--installation": "phone",
            "--version": "1",
        ]
        options[option] = value
        let refused = try await run(
            [
                "client", "register", "--relay", daemon.relayURL, "--server", node.server.publicKey, "--timeout", "60s", "--identity",
                node.bob.path,
            ]
                + options.flatMap { ["\($0.key)=\($0.value)"] })
        #expect(refused.failure == "the server refused: MALFORMED_MESSAGE")
        #expect(try await node.admin("registrations", "list").rows.count == 1)
        #expect(await daemon.stop().status == 0)
    }

    // MARK: Reflection

    /// Answers go to the partitioned topic of the sender's key. A key in the node's own partition makes the node receive its own
    /// answers; they are not handled, and nothing is answered twice.
    @Test func answersOnTheNodesOwnTopicAreNotAnswered() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        let topic = StatusTopics.partitioned(node.server.key.publicKey)
        var asker = PrivateKey.generate()
        while StatusTopics.partitioned(asker.publicKey) != topic { asker = .generate() }
        let registrant = KeyHash(of: node.bob.key.publicKey)
        let query = PushNotificationQuery(publicKeys: [registrant]).encoded()
        let queryTopic = Recipient.topic(StatusTopics.query(registrant))
        for _ in 0..<20 {
            let envelope = MetadataEnvelope.encode(.query, payload: query, signedBy: asker)
            for message in EnvelopeSealing.seal(envelope.bytes, to: queryTopic, wakuSigner: asker, at: .now()) {
                try await api(daemon).push(message, on: .statusDefault)
            }
        }
        try await eventually { try await metric(daemon, "waku_push_answers_published_total") >= 21 }
        // Another message, of another client, arrives after everything that the answers could have caused.
        #expect(try await node.query(daemon).rows.last == ["bobs-phone", "1", "yes"])
        #expect(try await metric(daemon, "waku_push_answers_published_total") == 22)
        #expect(await daemon.stop().status == 0)
    }

    // MARK: Replay

    /// Anyone on the shard can publish recorded messages again with arbitrary timestamps, which are not signed.
    @Test func replaysChangeNothing() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon, version: 1, token: "an-old-token").status == 0)
        #expect(try await node.register(daemon, version: 2).status == 0)
        #expect(try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "01").status == 0)
        let posts = node.gorush.requests.count { $0.head.hasPrefix("POST") }
        let recorded = try await api(daemon).query(StoreQuery(pubsubTopic: .statusDefault)).messages
        #expect(recorded.count >= 6)
        let before = try await metric(daemon, "waku_push_messages_received_total")
        let times: [Int64] = [.min, -1, 0, 1, Timestamp.now().rawValue + 1, Timestamp.now().rawValue + 86_400_000_000_000, .max]
        for time in times {
            for message in recorded {
                var altered = message.message
                altered.timestamp = Timestamp(rawValue: time)
                try await api(daemon).push(altered, on: .statusDefault)
            }
        }
        try await eventually { try await metric(daemon, "waku_push_messages_received_total") >= before + times.count * recorded.count / 2 }
        // Later messages are handled after them.
        #expect(try await node.query(daemon).rows.last == ["bobs-phone", "2", "yes"])
        #expect(try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "02").status == 0)
        #expect(node.gorush.requests.count { $0.head.hasPrefix("POST") } == posts + 1)
        #expect(node.gorush.requests.allSatisfy { !String(decoding: $0.body, as: UTF8.self).contains("an-old-token") })
        let ended = await daemon.stop()
        #expect(ended.status == 0)
        node.record(ended)
        #expect(node.leaks == [])
    }
}
