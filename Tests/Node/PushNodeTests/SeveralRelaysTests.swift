import NodeAPI
import Logging
@testable import LoopbackRelay
import NodeAssembly
import NodeMetrics
import NwakuRelay
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

/// Answers are published although the preferred Waku node does not publish them: with the REST APIs of two nodes.
@Suite(.timeLimit(.minutes(5)))
struct SeveralRelaysTests {
    private static let recipient = PrivateKey.generate()

    /// How the first node answers publications, none of which reach the network, and the answers of its store.
    enum Misdeed: CaseIterable, Sendable {
        case answers400, answers413, answers500
        case liesAndHasNoStore, liesAndHasNothing, liesAndClaimsAll, liesByLightpush

        var isLie: Bool { ![.answers400, .answers413, .answers500].contains(self) }

        func reply(to request: RawHTTPServer.Request) -> RawHTTPServer.Reply {
            let path = request.head.split(separator: " ").dropFirst().first ?? ""
            if path.hasPrefix("/store/") { return store(path) }
            if path.hasPrefix("/lightpush/") {
                return self == .liesByLightpush ? .status(200, body: #"{"relayPeerCount":8}"#) : .status(404, body: "not mounted")
            }
            switch self {
            case .answers400: return .status(400, body: "Message size exceeded maximum of 153600 bytes")
            case .answers413: return .status(413, body: "too large")
            case .answers500: return .status(500, body: "failed")
            case .liesAndHasNoStore, .liesAndHasNothing, .liesAndClaimsAll, .liesByLightpush: return .status(200, body: "OK")
            }
        }

        private func store(_ path: Substring) -> RawHTTPServer.Reply {
            let hashes = path.firstRange(of: "hashes=").map { path[$0.upperBound...].prefix { $0 != "&" }.split(separator: ",") } ?? []
            switch self {
            case .liesAndClaimsAll, .liesByLightpush:
                let entries = hashes.map { #"{"messageHash":"\#($0)"}"# }.joined(separator: ",")
                return .status(200, body: #"{"statusCode":200,"messages":[\#(entries)]}"#)
            case .liesAndHasNothing: return .status(200, body: #"{"statusCode":200,"messages":[]}"#)
            default: return .status(412, body: "no store")
            }
        }
    }

    private struct Result: Sendable {
        let messages: [WakuMessage]
        let counts: [Counter: Int]
        let demoted: [String]
        /// POSTs of messages to the first node.
        let firstPublicationCount: Int
        let firstURL: String
    }

    /// Publishes answers one after the other through a misbehaving and a correct node.
    private func publish(count: Int, _ misdeed: Misdeed, isClockWrong: Bool = false) async throws -> Result {
        let first = try RawHTTPServer { misdeed.reply(to: $0) }
        defer { first.stop() }
        let network = LoopbackNetwork()
        network.faults = LoopbackFaults(servesLightpush: false)
        let others = network.relay()
        let received = Mutex<[WakuMessage]>([])
        let listening = Task { await others.run { messages in received.withLock { $0 += messages.map(\.message) } } }
        defer { listening.cancel() }
        let counters = Counters(NodeAssembly.metrics)
        return try await ServedNetwork.run(network) { served in
            let needs = RelayNeeds(pubsubTopics: [.statusDefault], ownTopics: [], seenUntil: [:], wants: { _ in true }, report: { _ in })
            let second = try served.relay(port: await served.port, needs)
            try await second.api.subscribe(to: [.statusDefault])
            let relays = RelaySet([try served.relay(port: Int(first.port), needs), second])
            let publisher = Publisher(
                relay: relays, seen: SeenMessages(), handled: HandledMessages(), counters: counters, logger: quiet,
                confirmation: Confirmations.Configuration(
                    delay: .milliseconds(20), batchWindow: .milliseconds(5), timeout: .seconds(60), retryDelay: .milliseconds(20)),
                isClockWrong: { isClockWrong })
            let running = Task { await publisher.run() }
            for number in 1...count {
                publisher.publish(
                    .test([UInt8(number)], to: Self.recipient.publicKey))
                try await eventually { (counters.snapshot[.answerConfirmed] ?? 0) + (counters.snapshot[.answerUnconfirmed] ?? 0) == number }
            }
            publisher.finish()
            await running.value
            let posts = first.requests.count { $0.head.hasPrefix("POST /relay/v1/messages/") || $0.head.hasPrefix("POST /lightpush/") }
            return Result(
                messages: received.withLock(\.self), counts: counters.snapshot, demoted: relays.demotedRelays,
                firstPublicationCount: posts, firstURL: first.url)
        }
    }

    private func payloads(_ messages: [WakuMessage]) throws -> [[UInt8]] {
        try messages.map { message in
            let payload = try EnvelopeSealing.open(message, identity: Self.recipient)
            return try MetadataEnvelope(parsing: payload.data, wakuSigner: payload.signer).payload
        }
    }

    @Test(arguments: Misdeed.allCases.filter { !$0.isLie }) func anAnswerThatTheFirstRelayRefusesIsPublishedByTheSecond(misdeed: Misdeed)
        async throws
    {
        let result = try await publish(count: 1, misdeed)
        #expect(try payloads(result.messages) == [[1]])
        #expect(result.counts == [.answerPublished: 1, .answerConfirmed: 1])
        #expect(result.firstPublicationCount > 0)
    }

    /// The first answers 200 without publishing: each answer is published through the second, and soon through the second first.
    @Test(arguments: Misdeed.allCases.filter(\.isLie)) func aRelayThatFalselyClaimsToPublishIsDemoted(misdeed: Misdeed) async throws {
        let result = try await publish(count: 14, misdeed)
        #expect(Set(try payloads(result.messages)) == Set((1...14).map { [$0] }))
        #expect(result.demoted == [result.firstURL])
        #expect(result.counts[.answerConfirmed] == 14 && result.counts[.answerUnconfirmed] == nil)
        // After ten answers it is demoted. Then answers found in the other store need no second publication.
        let repeatedCount = result.counts[.answerRepeated] ?? 0
        #expect(repeatedCount >= 10 && repeatedCount <= (misdeed == .liesAndHasNothing ? 14 : 10))
    }

    /// Other relays drop messages whose timestamps are wrong, so their stores tell nothing about the relay that published them.
    @Test func noRelayIsDemotedWhileTheClockIsWrong() async throws {
        let result = try await publish(count: 12, .liesAndHasNoStore, isClockWrong: true)
        #expect(result.demoted == [] && result.counts[.answerRepeated] == 12)
    }
}
