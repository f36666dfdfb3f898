import PushClient
import Core
import StatusProtocol
import Testing
import Waku
import WakuCrypto

/// Anonymous mode: no published message links the second identity to the first.
@Suite(.timeLimit(.minutes(5))) struct AnonymousTests {
    private let network = TestNetwork()
    private let first = PrivateKey.generate()

    /// All byte sequences that would reveal the first key: itself, its hashes, and its topics.
    private var traces: [[UInt8]] {
        let key = first.publicKey
        let hash = KeyHash(of: key)
        let topics = [
            StatusTopics.personal(key), StatusTopics.partitioned(key), StatusTopics.query(hash), StatusTopics.publishedQuery(hash),
            StatusTopics.contactCode(key),
        ]
        return [Array(key.x), Array(key.uncompressed.suffix(32)), hash.bytes, StatusHashes.author(key), Array(key.hex.utf8)]
            + topics.map { Array(ContentTopic(TopicTag(of: $0)).rawValue.utf8) }
    }

    /// Decrypts a message with all keys of all participants, and returns its contents and the signers of its layers.
    private func layers(_ message: WakuMessage, _ keys: [PrivateKey], topics: [SymmetricKey]) -> (plain: [[UInt8]], signers: [PublicKey]) {
        for key in keys + [nil] {
            guard let opened = try? EnvelopeSealing.open(message, identity: key, topicKeys: topics) else { continue }
            var plain = [opened.data]
            var signers = [opened.signer]
            if let signed = try? SignedAdvertisement(parsing: opened.data) { signers.append(signed.owner) }
            if let envelope = try? MetadataEnvelope(parsing: opened.data, wakuSigner: opened.signer) {
                signers.append(envelope.sender)
                for key in keys.compactMap({ $0 }) {
                    if let body = try? AESGCM.open(envelope.payload, key: key.sharedKey(with: envelope.sender), layout: .nonceFirst) {
                        plain.append(body)
                    }
                }
            }
            return (plain, signers)
        }
        return ([], [])
    }

    private func contains(_ bytes: [UInt8], _ trace: [UInt8]) -> Bool {
        guard bytes.count >= trace.count else { return false }
        return (0...bytes.count - trace.count).contains { bytes[$0..<$0 + trace.count].elementsEqual(trace) }
    }

    @Test func nothingPublishedLinksTheTwoKeys() async throws {
        let serverKey = PrivateKey.generate()
        let server = network.addServer(serverKey)
        let friend = PrivateKey.generate()
        let anonymous = try await StatusPushClient.anonymous(for: first, relays: [network.relay()], store: MemoryClientStore())
        let second = StatusPushClient.anonymousIdentity(for: first)
        #expect(anonymous.publicKey == second.publicKey && anonymous.publicKey != first.publicKey)

        let running = Task { await anonymous.run() }
        let events = anonymous.events
        anonymous.setReceiving(true)
        anonymous.setSending(true)
        anonymous.setChatIdentity([])
        var profile = DeviceProfile(platform: .firebase, deviceToken: DeviceToken("token"))
        profile.contactsOnly = true
        profile.contacts = [friend.publicKey]
        try await anonymous.register(profile, with: [PushServer(key: server)])
        for await event in events {
            if case .advertised(rowCount: 1) = event { break }
        }
        try await anonymous.discover(friend.publicKey, timeout: .milliseconds(400))
        try await anonymous.unregister()
        running.cancel()
        await running.value

        let topics = [
            StatusTopics.contactCode(second.publicKey), StatusTopics.query(KeyHash(of: friend.publicKey)),
            StatusTopics.publishedQuery(KeyHash(of: friend.publicKey)),
            // Topics used on a slow machine, for a query after a repetition.
            StatusTopics.query(KeyHash(of: second.publicKey)), StatusTopics.publishedQuery(KeyHash(of: second.publicKey)),
        ].map(KeyDerivation.topicKey)
        let messages = network.published
        var openedCount = 0
        for message in messages {
            let (plain, signers) = layers(message, [serverKey, second, friend, first], topics: topics)
            if !plain.isEmpty { openedCount += 1 }
            #expect(!signers.contains(first.publicKey))
            for bytes in plain + [message.payload, Array(message.contentTopic.rawValue.utf8), message.meta] {
                #expect(!traces.contains { contains(bytes, $0) })
            }
        }
        // Registration, its answer, advertisement, two queries, unregistration, …: all messages were decrypted, except for servers' answers to
        // ephemeral keys.
        let answerTopics = Set([second, friend, first].map { StatusPushClient.answerTopic($0.publicKey) })
        let onceUsed = messages.count { message in
            layers(message, [serverKey, second, friend, first], topics: topics).plain.isEmpty
                && !answerTopics.contains(message.contentTopic)
        }
        #expect(openedCount + onceUsed == messages.count && openedCount >= 7)
    }

    @Test func testFindsALinkWhereThereIsOne() async throws {
        let envelope = MetadataEnvelope.encode(.query, payload: Array(first.publicKey.compressed), signedBy: first).bytes
        let message = try #require(
            EnvelopeSealing.seal(envelope, to: .partitioned(first.publicKey), wakuSigner: first, at: .now()).first)
        let (plain, signers) = layers(message, [first], topics: [])
        #expect(signers.contains(first.publicKey) && plain.contains { bytes in traces.contains { contains(bytes, $0) } })
        #expect(traces.contains { contains(Array(message.contentTopic.rawValue.utf8), $0) })
    }

    @Test func anonymousIdentityIsTheSameAfterEachStart() {
        #expect(StatusPushClient.anonymousIdentity(for: first).publicKey == StatusPushClient.anonymousIdentity(for: first).publicKey)
        #expect(StatusPushClient.anonymousIdentity(for: first).publicKey != StatusPushClient.anonymousIdentity(for: .generate()).publicKey)
    }

    /// Contacts that know only the second key can notify it.
    @Test func contactsNotifyTheSecondKey() async throws {
        let server = network.addServer()
        let anonymous = try await StatusPushClient.anonymous(for: first, relays: [network.relay()], store: MemoryClientStore())
        let alice = StatusPushClient(identity: .generate(), relay: network.relay())
        let running = [anonymous, alice].map { client in Task { await client.run() } }
        defer { for task in running { task.cancel() } }
        anonymous.setReceiving(true)
        let profile = DeviceProfile(platform: .firebase, deviceToken: DeviceToken("token"))
        let events = anonymous.events
        try await anonymous.register(profile, with: [PushServer(key: server)])
        for await event in events {
            if case .advertised(rowCount: 1) = event { break }
        }
        alice.setSending(true)
        let message = OutgoingNotification(messageID: [1], chatID: "chat", kind: .message, recipients: [.init(anonymous.publicKey)])
        #expect(try await alice.notify(message).map(\.result) == [.notified(by: server)])
    }
}
