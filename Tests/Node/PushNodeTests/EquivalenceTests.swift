import Core
import Delivery
import Foundation
import NodeAssembly
import StatusProtocol
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

/// The node decodes on all cores and commits in groups; the plain rules handle one message after the other.
@Suite("The node and the plain rules give the same answers to the same random load, and store the same")
struct EquivalenceTests {
    @Test("The deployed protocol", arguments: zip([1, 2, 3] as [UInt64], [StoreEngine.sqlite, .postgreSQL, .sqlite]))
    func equivalence(seed: UInt64, engine: StoreEngine) async throws {
        try await expectEquivalence(seed, engine) { RandomTraffic(to: $0, seed: seed, registrants: 8) }
    }

    @Test("Version 0.1", arguments: zip([1, 2, 3] as [UInt64], [StoreEngine.postgreSQL, .sqlite, .postgreSQL]))
    func equivalenceOfVersion01(seed: UInt64, engine: StoreEngine) async throws {
        try await expectEquivalence(seed, engine) { V01RandomTraffic(to: $0, seed: seed, accounts: 8) }
    }

    private func expectEquivalence<Traffic: TestedTraffic>(
        _ seed: UInt64, _ engine: StoreEngine, _ make: (PrivateKey) -> Traffic
    ) async throws {
        let (folder, location) = (try TemporaryFolder(), try await engine.location())
        let identity = PrivateKey.generate()
        var traffic = make(identity)
        var rounds: [[[WakuMessage]]] = []
        for _ in 0..<4 {
            // A notification goes to the device that is registered when it is posted: so requests and queries wait for all registrations.
            for messages in traffic.round() {
                let cut = messages.indices.randomElement() ?? 0
                rounds.append([Array(messages[..<cut]), Array(messages[cut...])])
            }
        }

        var seen: Set<MessageHash> = []
        var expected: [[Traffic.Answer: Int]] = []
        for round in rounds {
            var told: [Traffic.Answer: Int] = [:]
            for message in round.joined() where seen.insert(message.hash(on: .statusDefault)).inserted {
                if let answer = try traffic.plainAnswer(to: message) { told[answer, default: 0] += 1 }
            }
            expected.append(told)
        }
        #expect(expected.contains { !$0.isEmpty })

        let recipients = Dictionary(grouping: traffic.recipients) { ContentTopic(TopicTag(of: StatusTopics.partitioned($0.publicKey))) }
        let gorush = ScriptedGorush()
        try await withFedNode(identity, folder.path, gorush) {
            $0.store = location
            Traffic.configure(&$0)
        } _: { [traffic, rounds, expected] node, relay in
            var read = 0
            for (round, expected) in zip(rounds, expected) {
                for batch in round { await relay.feed(batch) }
                let count = read + expected.values.reduce(0, +)
                try await node.wait { relay.published.count >= count }
                let published = relay.published[read...]
                read = relay.published.count
                var told: [Traffic.Answer: Int] = [:]
                for message in published {
                    told[try #require(try traffic.answer(in: message, to: recipients[message.contentTopic] ?? [])), default: 0] += 1
                }
                let isSame = told == expected
                #expect(isSame, "seed \(seed)")
            }
        }

        try traffic.expectSame(in: try NodeAssembly.existingStore(at: location, in: folder.path, of: identity))
        func counts(_ notified: [PlainNode.Notified]) -> [PlainNode.Notified: Int] {
            notified.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
        let posted = gorush.accepted.map { PlainNode.Notified(token: $0.deviceToken, platform: $0.platform) }
        let isSame = counts(posted) == counts(traffic.notified)
        #expect(isSame, "seed \(seed)")
        #expect(!traffic.notified.isEmpty)
    }
}

/// Random messages of a version of the protocol, and the plain rules that answer them.
protocol TestedTraffic: Sendable {
    associatedtype Answer: Hashable, Sendable

    static func configure(_ configuration: inout ServerConfiguration)
    var generator: SeededGenerator { get set }
    /// All clients that may get answers.
    var recipients: [PrivateKey] { get }
    var notified: [PlainNode.Notified] { get }
    /// Registrations, requests and queries.
    mutating func round() -> [[WakuMessage]]
    /// The plain rules' answer.
    mutating func plainAnswer(to message: WakuMessage) throws -> Answer?
    /// The node's answer, if one of these recipients can read it.
    func answer(in message: WakuMessage, to recipients: [PrivateKey]) throws -> Answer?
    /// Expects what the plain rules stored.
    func expectSame(in store: any Store) throws
}

extension TestedTraffic {
    /// Messages mixed with damaged, repeated and foreign ones.
    mutating func mixed(_ count: Int, _ make: (inout Self) -> WakuMessage) -> [WakuMessage] {
        var messages: [WakuMessage] = []
        while messages.count < count {
            var message = make(&self)
            switch Int.random(in: 0..<20, using: &generator) {
            case 0: message.payload = [1, 2, 3]
            case 1: message.payload = generator.damaged(message.payload)
            case 2: message = messages.randomElement(using: &generator) ?? message
            case 3: (message.payload, message.contentTopic) = ([1, 2, 3], ContentTopic(TopicTag(of: "somebody else's")))
            default: break
            }
            if !message.payload.isEmpty { messages.append(message) }
        }
        return messages
    }
}
