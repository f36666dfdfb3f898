import NodeAPI
@testable import LoopbackRelay
import NodeAssembly
import NodeMetrics
import NwakuRelay
import StatusProtocol
import Synchronization
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

/// Answers on their way through a Waku node's REST API.
@Suite("Confirmation of answers, and publishing again", .timeLimit(.minutes(5)))
struct AnswerArrivalTests {
    private static let recipient = PrivateKey.generate()

    /// Publishes an answer through a node with these faults, until the counters are as expected.
    /// - Returns: The messages that reached the network, and the counts.
    private func publish(
        _ faults: LoopbackFaults, count: Int = 1, until condition: @escaping @Sendable ([Counter: Int]) -> Bool
    ) async throws -> (messages: [WakuMessage], counts: [Counter: Int]) {
        let network = LoopbackNetwork()
        network.faults = faults
        let others = network.relay()
        let received = Mutex<[WakuMessage]>([])
        let listening = Task { await others.run { messages in received.withLock { $0 += messages.map(\.message) } } }
        defer { listening.cancel() }
        let counters = Counters(NodeAssembly.metrics)
        try await ServedNetwork.run(network) { served in
            let relay = try served.relay(
                port: await served.port,
                RelayNeeds(pubsubTopics: [.statusDefault], ownTopics: [], seenUntil: [:], wants: { _ in true }, report: { _ in }))
            try await relay.api.subscribe(to: [.statusDefault])
            let publisher = Publisher(
                relay: relay, seen: SeenMessages(), handled: HandledMessages(), counters: counters, logger: quiet,
                confirmation: Confirmations.Configuration(
                    delay: .milliseconds(20), batchWindow: .milliseconds(5), timeout: .seconds(60), retryDelay: .milliseconds(20)))
            let running = Task { await publisher.run() }
            for _ in 0..<count {
                publisher.publish(
                    .test([1, 2, 3], to: Self.recipient.publicKey))
            }
            while !condition(counters.snapshot) { try await Task.sleep(for: .milliseconds(2)) }
            publisher.finish()
            await running.value
            // The server ends when all are answered.
            network.faults = LoopbackFaults()
        }
        return (received.withLock { $0 }, counters.snapshot)
    }

    private func expectAnswer(_ message: WakuMessage) throws {
        let payload = try EnvelopeSealing.open(message, identity: Self.recipient)
        #expect(try MetadataEnvelope(parsing: payload.data, wakuSigner: payload.signer).payload == [1, 2, 3])
    }

    @Test("An answer that a peer confirms is not looked up")
    func peer() async throws {
        let (messages, counts) = try await publish(LoopbackFaults()) { $0[.answerConfirmed] == 1 }
        #expect(counts == [.answerPublished: 1, .answerConfirmed: 1])
        #expect(messages.count == 1)
    }

    @Test("The store confirms an answer that no peer confirmed", arguments: [nil, 0])
    func store(peerCount: Int?) async throws {
        let (messages, counts) = try await publish(LoopbackFaults(relayPeerCount: peerCount)) { $0[.answerConfirmed] == 1 }
        #expect(counts == [.answerPublished: 1, .answerConfirmed: 1])
        #expect(messages.count == 1)
    }

    @Test("An answer that the node lost is sealed and published again")
    func lost() async throws {
        let faults = LoopbackFaults(servesLightpush: false, lostPublicationCount: 2)
        let (messages, counts) = try await publish(faults) { $0[.answerConfirmed] == 1 }
        #expect(counts == [.answerPublished: 1, .answerRepeated: 2, .answerConfirmed: 1])
        #expect(messages.count == 1)
        try expectAnswer(try #require(messages.first))
    }

    @Test("An answer that never arrives is given up after three repetitions")
    func givenUp() async throws {
        let faults = LoopbackFaults(servesLightpush: false, lostPublicationCount: 1000)
        let (messages, counts) = try await publish(faults) { $0[.answerUnconfirmed] == 1 }
        #expect(counts == [.answerPublished: 1, .answerRepeated: 3, .answerUnconfirmed: 1])
        #expect(messages.isEmpty)
    }

    @Test("Without a store an answer is published once")
    func noStore() async throws {
        let faults = LoopbackFaults(storeStatus: 412, servesLightpush: false)
        let (messages, counts) = try await publish(faults, count: 3) { $0[.answerUnconfirmed] == 3 }
        #expect(counts == [.answerPublished: 3, .answerUnconfirmed: 3])
        #expect(messages.count == 3)
    }

    @Test("Hundreds of answers are confirmed by a few look-ups")
    func many() async throws {
        let (messages, counts) = try await publish(LoopbackFaults(servesLightpush: false), count: 300) { $0[.answerConfirmed] == 300 }
        #expect(counts == [.answerPublished: 300, .answerConfirmed: 300])
        #expect(Set(messages).count == 300)
    }

    @Test("Stopping does not wait for confirmations")
    func end() async throws {
        let faults = LoopbackFaults(storeDelay: .seconds(3600), servesLightpush: false)
        let (messages, counts) = try await publish(faults, count: 10) { $0[.answerPublished] == 10 }
        #expect(counts == [.answerPublished: 10])
        #expect(messages.count == 10)
    }
}
