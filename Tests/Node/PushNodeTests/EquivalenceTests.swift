import Foundation
import Delivery
import NodeAssembly
import Storage
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import StatusServer

/// The node decodes on all cores and commits in groups; the plain rules handle one message after the other.
@Suite("The node and the plain rules")
struct EquivalenceTests {
    /// An answer.
    private struct Told: Hashable {
        let recipient: PublicKey
        let kind: MessageKind
        /// The rows of a query's answer, whose order does not matter.
        let parts: Set<[UInt8]>

        init(_ kind: MessageKind, _ payload: [UInt8], to recipient: PublicKey) throws {
            self.recipient = recipient
            self.kind = kind
            guard kind == .queryResponse else {
                parts = [payload]
                return
            }
            let response = try PushNotificationQueryResponse(parsing: payload)
            parts = Set(
                response.info.map { PushNotificationQueryResponse(info: [$0], messageID: response.messageID).encoded() })
        }
    }

    @Test(
        "They give the same answers to the same random load, and store the same",
        arguments: zip([1, 2, 3] as [UInt64], [StoreEngine.sqlite, .postgreSQL, .sqlite]))
    func equivalence(seed: UInt64, engine: StoreEngine) async throws {
        let (folder, location) = (try TemporaryFolder(), try await engine.location())
        let identity = PrivateKey.generate()
        var traffic = RandomTraffic(to: identity.publicKey, seed: seed, registrants: 8)
        var rounds: [[[WakuMessage]]] = []
        for _ in 0..<4 {
            // A notification goes to the device that is registered when it is posted: so requests and queries wait for all registrations.
            for messages in [traffic.registrations(100), traffic.requests(80), traffic.queries(40)] {
                let cut = messages.indices.randomElement() ?? 0
                rounds.append([Array(messages[..<cut]), Array(messages[cut...])])
            }
        }

        var plain = PlainNode(identity: identity)
        var seen: Set<MessageHash> = []
        var expected: [[Told: Int]] = []
        for round in rounds {
            var told: [Told: Int] = [:]
            for message in round.joined() where seen.insert(message.hash(on: .statusDefault)).inserted {
                guard let answer = try plain.receive(message) else { continue }
                told[try Told(answer.kind, answer.payload, to: answer.recipient), default: 0] += 1
            }
            expected.append(told)
        }

        let recipients = Dictionary(grouping: traffic.recipients) { ContentTopic(TopicTag(of: StatusTopics.partitioned($0.publicKey))) }
        let gorush = ScriptedGorush()
        try await withFedNode(identity, folder.path, gorush) {
            $0.store = location
        } _: { [rounds, expected] node, relay in
            var read = 0
            for (round, expected) in zip(rounds, expected) {
                for batch in round { await relay.feed(batch) }
                let count = read + expected.values.reduce(0, +)
                try await node.wait { relay.published.count >= count }
                let published = relay.published[read...]
                read = relay.published.count
                var told: [Told: Int] = [:]
                for message in published { told[try Self.open(message, recipients), default: 0] += 1 }
                let isSame = told == expected
                #expect(isSame, "seed \(seed)")
            }
        }

        let store = try NodeAssembly.existingStore(at: location, in: folder.path, of: identity)
        for client in traffic.clients {
            let state = try store.read(Registrations(store.sealer).state(of: client.key))
            #expect(state?.version == plain.stored[client.key]?.version, "seed \(seed)")
            #expect(state?.registration == plain.stored[client.key]?.registration, "seed \(seed)")
        }
        func counts(_ notified: [PlainNode.Notified]) -> [PlainNode.Notified: Int] {
            notified.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
        let posted = gorush.accepted.map { PlainNode.Notified(token: $0.deviceToken, platform: $0.platform) }
        let isSame = counts(posted) == counts(plain.notified)
        #expect(isSame, "seed \(seed)")
        #expect(!plain.notified.isEmpty)
    }

    private static func open(_ message: WakuMessage, _ recipients: [ContentTopic: [PrivateKey]]) throws -> Told {
        for recipient in recipients[message.contentTopic] ?? [] {
            guard let opened = try? EnvelopeSealing.open(message, identity: recipient) else { continue }
            let envelope = try MetadataEnvelope(parsing: opened.data, wakuSigner: opened.signer)
            return try Told(envelope.kind, envelope.payload, to: recipient.publicKey)
        }
        throw Unopened()
    }

    private struct Unopened: Error {}
}
