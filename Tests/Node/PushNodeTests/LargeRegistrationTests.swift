import NodeAssembly
import NodeMetrics
import RateLimits
import StatusRules
import StatusProtocol
import StatusServer
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

/// Accounts with many contacts: key lists of a megabyte and more, which are sent in segments.
@Suite("Registrations with many contacts", .timeLimit(.minutes(5)))
struct LargeRegistrationTests {
    private let folder: TemporaryFolder
    private let identity = PrivateKey.generate()
    private let owner = PrivateKey.generate()
    private var server: PublicKey { identity.publicKey }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func device(_ name: String, of owner: PrivateKey? = nil) -> TestClient {
        TestClient(of: identity.publicKey, identity: owner ?? self.owner, installationID: InstallationID(name))
    }

    /// Entries as large as deployed ones: an access token sealed to a contact.
    private func registration(_ device: TestClient, contacts: Int, entryByteCount: Int = 64, padding: Int = 0) -> [WakuMessage] {
        let entry = [UInt8](repeating: 7, count: entryByteCount)
        let registration = device.registration { registration in
            registration.allowedKeyList = Array(repeating: entry, count: contacts)
            registration.allowFromContactsOnly = true
            if padding > 0 { registration.mutedChatList = [[UInt8](repeating: 1, count: padding)] }
        }
        return EnvelopeSealing.seal(
            device.envelope(registration), to: .personal(server), wakuSigner: device.identity, at: .now())
    }

    private func error(in messages: [WakuMessage]) throws -> PushNotificationRegistrationResponse.ErrorType? {
        let message = try #require(messages.last)
        let opened = try EnvelopeSealing.open(message, identity: owner)
        let envelope = try MetadataEnvelope(parsing: opened.data, wakuSigner: opened.signer)
        return try PushNotificationRegistrationResponse(parsing: envelope.payload).error
    }

    private func query(_ asker: PrivateKey, _ registrants: [KeyHash]? = nil) -> [WakuMessage] {
        let registrants = registrants ?? [KeyHash(of: owner.publicKey)]
        let envelope = MetadataEnvelope.encode(
            .query, payload: PushNotificationQuery(publicKeys: registrants).encoded(), signedBy: asker
        ).bytes
        return EnvelopeSealing.seal(
            envelope, to: .topic(StatusTopics.query(KeyHash(of: owner.publicKey))), wakuSigner: asker, at: .now())
    }

    /// Reassembles the answer from these messages.
    private func answer(_ messages: [WakuMessage], to asker: PrivateKey) throws -> PushNotificationQueryResponse {
        var assembler = SegmentAssembler(limits: .answers)
        var whole: [UInt8]?
        for message in messages {
            let opened = try EnvelopeSealing.open(message, identity: asker)
            guard let segment = opened.segment else {
                whole = opened.data
                continue
            }
            whole = assembler.add(segment, from: opened.signer, at: .now())?.bytes ?? whole
        }
        let envelope = try MetadataEnvelope(parsing: try #require(whole), wakuSigner: server)
        #expect(envelope.sender == server)
        return try PushNotificationQueryResponse(parsing: envelope.payload)
    }

    @Test("Accounts with 13,000 and 30,000 contacts can register; above the limits registrations are malformed")
    func bounds() async throws {
        try await withFedNode(identity, folder.path, ScriptedGorush()) { node, relay in
            let cases: [(messages: [WakuMessage], error: PushNotificationRegistrationResponse.ErrorType?)] = [
                (registration(device("a"), contacts: 13_000), nil),
                (registration(device("b"), contacts: 30_000), nil),
                (registration(device("c"), contacts: 30_001), .malformedMessage),
                // 2 MiB of plaintext and more, within a whole of 3 MiB.
                (registration(device("d"), contacts: 30_000, padding: 200_000), .malformedMessage),
                (registration(device("e"), contacts: 20_000, entryByteCount: 140), .malformedMessage),
            ]
            for (index, (messages, error)) in cases.enumerated() {
                await relay.feed(messages)
                try await node.wait { relay.published.count == index + 1 }
                #expect(try self.error(in: relay.published) == error)
            }
            // Larger wholes are dropped.
            await relay.feed(registration(device("f"), contacts: 30_000, entryByteCount: 110))
            await relay.feed(registration(device("g"), contacts: 1))
            try await node.wait { relay.published.count == cases.count + 1 }
            #expect(node.count(.registrationStored) == 3)
        }
    }

    @Test("Two devices with 9,900 and 9,000 contacts give one answer in segments")
    func segments() async throws {
        try await withFedNode(identity, folder.path, ScriptedGorush()) { node, relay in
            await relay.feed(registration(device("a"), contacts: 9_900))
            await relay.feed(registration(device("b"), contacts: 9_000))
            try await node.wait { relay.published.count == 2 }
            let asker = PrivateKey.generate()
            await relay.feed(query(asker))
            try await node.wait { node.count(.answerPublished) == 3 }
            let messages = Array(relay.published[2...])
            #expect(messages.count == 2)
            let answer = try answer(messages, to: asker)
            #expect(answer.info.map(\.allowedKeyList.count).sorted() == [9_000, 9_900])
        }
    }

    @Test("An answer is limited to 4 MiB: the least recently changed rows are left out, consistently")
    func leftOut() async throws {
        try await withFedNode(identity, folder.path, ScriptedGorush()) { node, relay in
            // 1.3 MiB each: three fit. The first is renewed last.
            for name in ["a", "b", "c", "d"] {
                await relay.feed(registration(device(name), contacts: 20_000))
                try await node.wait { node.count(.registrationStored) == relay.published.count }
            }
            let renewal = device("a").registration(version: 2) { registration in
                registration.allowedKeyList = Array(repeating: [UInt8](repeating: 7, count: 64), count: 20_000)
            }
            await relay.feed(
                EnvelopeSealing.seal(device("a").envelope(renewal), to: .personal(server), wakuSigner: owner, at: .now()))
            try await node.wait { node.count(.answerPublished) == 5 }
            for count in 1...2 {
                let asker = PrivateKey.generate()
                let before = relay.published.count
                // Other registrants in the same query change nothing.
                await relay.feed(query(asker, [KeyHash(of: PrivateKey.generate().publicKey), KeyHash(of: owner.publicKey)]))
                try await node.wait { node.count(.answerPublished) == 5 + count }
                let answer = try answer(Array(relay.published[before...]), to: asker)
                #expect(answer.info.map(\.installationID.string) == ["a", "d", "c"])
                #expect(answer.encoded().count <= QueryBudget.byteLimit)
            }
        }
    }

    @Test("The size of answers about a registrant is rate limited, without effect on other registrants")
    func limits() async throws {
        var limits = Limits.none
        try limits.set("answer-kib-by-target=1/d burst 2700")
        let other = device("other", of: .generate())
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { [limits] in $0.limits = limits }) { node, relay in
            await relay.feed(registration(device("a"), contacts: 20_000))
            await relay.feed(registration(other, contacts: 1))
            try await node.wait { relay.published.count == 2 }
            for _ in 0..<3 { await relay.feed(query(.generate())) }
            // 1.3 MiB each, of 2.6 MiB.
            try await node.wait { node.count(.limit(.answerKiBByTarget)) == 1 && node.count(.queryAnswered) == 2 }
            let asker = PrivateKey.generate()
            await relay.feed(query(asker, [KeyHash(of: owner.publicKey), other.keyHash]))
            try await node.wait { node.count(.queryAnswered) == 3 && node.count(.answerPublished) == 5 }
            // The answers before it are long, and may be published after it.
            let answers = relay.published.compactMap { try? answer([$0], to: asker) }
            #expect(answers.map { $0.info.map(\.installationID.string) } == [["other"]])
        }
    }

    @Test("The size of all answers together is rate limited")
    func total() async throws {
        var limits = Limits.none
        try limits.set("answer-kib=1/d burst 2")
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { [limits] in $0.limits = limits }) { node, relay in
            await relay.feed(registration(device("a"), contacts: 1))
            try await node.wait { relay.published.count == 1 }
            for _ in 0..<4 { await relay.feed(query(.generate())) }
            try await node.wait { node.count(.limit(.answerKiB)) == 2 && node.count(.queryUnanswered) == 2 }
            #expect(node.count(.queryAnswered) == 2)
        }
    }
}
