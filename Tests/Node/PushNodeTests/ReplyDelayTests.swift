import Delivery
import Logging
import NodeAssembly
import NodeMetrics
import ServiceLifecycle
import StatusProtocol
import StatusServer
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

/// Answers as received by a status-go light client, such as every phone: it subscribes to the topic of the key that it made for the answer
/// only some time after it asked.
@Suite("Replies to light clients", .timeLimit(.minutes(5)))
struct ReplyDelayTests {
    private let folder: TemporaryFolder
    private let identity = PrivateKey.generate()
    private let device: TestClient
    private let asker = PrivateKey.generate()
    private var server: PublicKey { identity.publicKey }

    init() throws {
        folder = try TemporaryFolder()
        device = TestClient(of: identity.publicKey)
    }

    private func seal(_ kind: MessageKind, _ payload: [UInt8], to recipient: Recipient, by signer: PrivateKey) -> [WakuMessage] {
        let envelope = MetadataEnvelope.encode(kind, payload: payload, signedBy: signer).bytes
        return EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: signer, at: .now())
    }

    private var registration: [WakuMessage] {
        EnvelopeSealing.seal(
            device.envelope(device.registration()), to: .personal(server), wakuSigner: device.identity, at: .now())
    }

    private var query: [WakuMessage] {
        seal(
            .query, PushNotificationQuery(publicKeys: [device.keyHash]).encoded(), to: .topic(StatusTopics.query(device.keyHash)), by: asker
        )
    }

    private func request() -> [WakuMessage] {
        let request = PushNotificationRequest(requests: [device.notification()], messageID: randomBytes(32))
        return seal(.request, request.encoded(), to: .partitioned(server), by: asker)
    }

    /// Asks, subscribes 400 ms later, and returns how many of the answers a filter node pushes from then on.
    private func heard(_ questions: [WakuMessage], by relay: FeedRelay, answers: Int) async throws -> Int {
        let start = relay.published.count
        await relay.feed(questions)
        // The client's own delay.
        try await Task.sleep(for: .milliseconds(400))
        let missed = relay.published.count - start
        let deadline = ContinuousClock.now + .seconds(60) * TestTimeout.factor
        while relay.published.count - start < answers, ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(1)) }
        return relay.published.count - start - missed
    }

    @Test("are received although the client subscribes 400 ms after it asked")
    func lightClient() async throws {
        let gorush = ScriptedGorush()
        try await withFedNode(identity, folder.path, gorush, configure: { $0.replyDelay = .milliseconds(500) }) { node, relay in
            await relay.feed(registration)
            try await node.wait { relay.published.count == 1 }
            let heard = try await heard(query + request(), by: relay, answers: 2)
            #expect(heard == 2)
            #expect(gorush.accepted.count == 1)
        }
    }

    /// status-go notes a registration only once its sending has ended, and ignores an answer that came before.
    @Test("come after the delay for registrations, too")
    func registrations() async throws {
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { $0.replyDelay = .seconds(1) }) { node, relay in
            let start = ContinuousClock.now
            await relay.feed(registration)
            try await node.wait { relay.published.count == 1 }
            #expect(start.duration(to: .now) >= .seconds(1) && node.count(.registrationStored) == 1)
        }
    }

    @Test("posts to gorush are not delayed")
    func whatDoesNotWait() async throws {
        let gorush = ScriptedGorush()
        try await withFedNode(identity, folder.path, gorush, configure: { $0.replyDelay = .seconds(1) }) { node, relay in
            await relay.feed(registration)
            try await node.wait { relay.published.count == 1 }
            // On a busy machine the result may come after the due time, without a delay: then try again.
            for number in 1...30 {
                await relay.feed(request())
                try await node.wait { gorush.accepted.count == number && node.count(.requestAnswered) == number }
                let isHeld = relay.published.count == number
                try await node.wait { relay.published.count == number + 1 }
                if isHeld { return }
            }
            Issue.record("no reply was held after gorush was posted")
        }
    }

    @Test("are published when due while the node stops")
    func shutdown() async throws {
        let published = try await stopWhileHeld()
        #expect(published == 2)
    }

    private func stopWhileHeld() async throws -> Int {
        let relay = FeedRelay()
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var configuration = ServerConfiguration(identity: identity, dataPath: folder.path)
        configuration.replyDelay = .milliseconds(1_500)
        configuration.deriveAheadLimit = nil
        let node = FedNode(node: try Server(configuration, gorush: ScriptedGorush(), logger: quiet) { _ in relay }.node)
        let services = ServiceGroup(services: [node.node], logger: quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            try await node.wait { relay.state == .attached }
            await relay.feed(registration + request())
            // Both are held, or on a slow machine published already: a request is counted as answered just before.
            try await node.wait { node.node.path.publisher.waitingCount + relay.published.count == 2 }
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
        }
        return relay.published.count
    }

    @Test("the delay is not part of the time to answer, and has a separate histogram")
    func metrics() async throws {
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { $0.replyDelay = .seconds(1) }) { node, relay in
            await relay.feed(registration)
            try await node.wait { relay.published.count == 1 }
            // On a busy machine the result may come after the due time, without a delay: then send another.
            for number in 2...30 {
                await relay.feed(request())
                try await node.wait { node.count(.answerPublished) == number }
                let all = Scrape(node.node.counters.registry.exposition()).samples
                let held = all[#"waku_push_reply_delay_seconds_count{protocol="status",kind="request"}"#]
                let delay = all[#"waku_push_reply_delay_seconds_sum{protocol="status",kind="request"}"#] ?? 0
                let answered = all[#"waku_push_message_since_receipt_seconds_sum{protocol="status",stage="answered",kind="request"}"#] ?? 0
                #expect(delay + answered >= Double(number - 1))
                if held == 1 { return #expect(delay > 0 && answered > 0) }
            }
            Issue.record("no reply was held")
        }
    }
}
