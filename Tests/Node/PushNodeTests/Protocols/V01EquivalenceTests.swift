import Foundation
import Delivery
import NodeAssembly
import Storage
import StatusProtocol
import StatusV01Server
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

/// The pipeline opens on all cores, commits in groups and answers when it can; the plain rules take one message after the other.
@Suite("Version 0.1: the pipeline and the plain rules")
struct V01EquivalenceTests {
    /// An answer, with the rows of a query's in any order.
    private struct Told: Hashable {
        let answer: PlainV01Node.Answer
        let rows: Set<[UInt8]>

        init(_ answer: PlainV01Node.Answer) throws {
            guard answer.type == .queryResponse else {
                (self.answer, rows) = (answer, [])
                return
            }
            let info = try V01.QueryResponse(parsing: answer.payload).info
            rows = Set(info.map { V01.QueryResponse(info: [$0]).encoded() })
            self.answer = PlainV01Node.Answer(type: answer.type, contentTopic: answer.contentTopic, payload: [])
        }
    }

    @Test(
        "give the same answers to the same random load, and store the same",
        arguments: zip([1, 2, 3] as [UInt64], [StoreEngine.postgreSQL, .sqlite, .postgreSQL]))
    func equivalence(seed: UInt64, engine: StoreEngine) async throws {
        let (folder, location) = (try TemporaryFolder(), try await engine.location())
        let identity = PrivateKey.generate()
        var traffic = V01RandomTraffic(to: identity.publicKey, seed: seed, accounts: 8)
        var rounds: [[[WakuMessage]]] = []
        for _ in 0..<4 {
            // A notification goes to the device that is registered when it is posted: so requests and queries wait for all registrations.
            for messages in [traffic.registers(80), traffic.requests(60), traffic.queries(30)] {
                let cut = messages.indices.randomElement() ?? 0
                rounds.append([Array(messages[..<cut]), Array(messages[cut...])])
            }
        }

        var plain = PlainV01Node(identity: identity)
        var seen: Set<MessageHash> = []
        var expected: [[Told: Int]] = []
        for round in rounds {
            var told: [Told: Int] = [:]
            for message in round.joined() where seen.insert(message.hash(on: .statusDefault)).inserted {
                if let answer = try plain.receive(message) { told[try Told(answer), default: 0] += 1 }
            }
            expected.append(told)
        }
        #expect(expected.contains { !$0.isEmpty })

        let recipients = Dictionary(grouping: traffic.recipients) { ContentTopic(TopicTag(of: StatusTopics.partitioned($0.publicKey))) }
        let ackKeys = traffic.ackKeys
        let gorush = ScriptedGorush()
        try await withFedNode(identity, folder.path, gorush) {
            $0.store = location
            $0.statusV01 = StatusPushV01.Configuration()
        } _: { [rounds, expected] node, relay in
            var read = 0
            for (round, expected) in zip(rounds, expected) {
                for batch in round { await relay.feed(batch) }
                let count = read + expected.values.reduce(0, +)
                try await node.wait { relay.published.count >= count }
                let published = relay.published[read...]
                read = relay.published.count
                var told: [Told: Int] = [:]
                for message in published { told[try Told(try Self.open(message, recipients, ackKeys)), default: 0] += 1 }
                let isSame = told == expected
                #expect(isSame, "seed \(seed)")
            }
        }

        let store = try NodeAssembly.existingStore(at: location, in: folder.path, of: identity)
        for account in traffic.accounts {
            let stored = try store.read(Records(store.sealer).preferences(of: account.keyHash))
            #expect(stored == plain.records[account.keyHash], "seed \(seed)")
        }
        func counts(_ notified: [PlainNode.Notified]) -> [PlainNode.Notified: Int] {
            notified.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
        let posted = gorush.accepted.map { PlainNode.Notified(token: $0.deviceToken, platform: $0.platform) }
        let isSame = counts(posted) == counts(plain.notified)
        #expect(isSame, "seed \(seed)")
        #expect(!plain.notified.isEmpty)
    }

    private static func open(
        _ message: WakuMessage, _ recipients: [ContentTopic: [PrivateKey]], _ ackKeys: [SymmetricKey]
    ) throws -> PlainV01Node.Answer {
        for identity in (recipients[message.contentTopic] ?? []).map(Optional.some) + [nil] {
            guard let opened = try? EnvelopeSealing.open(message, identity: identity, topicKeys: identity == nil ? ackKeys : []) else {
                continue
            }
            let envelope = try V01.Envelope(parsing: opened.data, wakuSigner: opened.signer)
            return PlainV01Node.Answer(type: envelope.type, contentTopic: message.contentTopic, payload: envelope.payload)
        }
        throw Unopened()
    }

    private struct Unopened: Error {}
}
