import Glibc
import NodeAssembly
import NodeMetrics
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import StatusServer

@Suite("Topic keys ahead of the first query", .timeLimit(.minutes(5)))
struct TopicKeyPrecomputationTests {
    private let folder: TemporaryFolder
    private let identity = PrivateKey.generate()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func registration(_ client: TestClient) -> [WakuMessage] {
        EnvelopeSealing.seal(
            client.envelope(client.registration()), to: .personal(identity.publicKey), wakuSigner: client.identity, at: .now())
    }

    private func query(_ client: TestClient) -> [WakuMessage] {
        let signer = PrivateKey.generate()
        let query = PushNotificationQuery(publicKeys: [client.keyHash]).encoded()
        let envelope = MetadataEnvelope.encode(.query, payload: query, signedBy: signer).bytes
        return EnvelopeSealing.seal(envelope, to: .topic(StatusTopics.query(client.keyHash)), wakuSigner: signer, at: .now())
    }

    /// At normal priority, because other tests leave no core idle for long.
    private static func derive(_ configuration: inout ServerConfiguration, limit: Int) {
        configuration.deriveAheadLimit = limit
        configuration.derivesAheadWhenIdle = false
    }

    private func clients(_ count: Int) -> [TestClient] { (0..<count).map { _ in TestClient(of: identity.publicKey) } }

    @Test("are derived after registrations, so that first queries derive none")
    func ahead() async throws {
        let clients = clients(20)
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { Self.derive(&$0, limit: 100) }) { node, relay in
            await relay.feed(clients.flatMap(registration))
            try await node.wait { node.count(.topicKeyDerivedAhead) == clients.count }
            // The keys are stored before a query's can be looked up.
            for client in clients { await relay.feed(query(client)) }
            try await node.wait { node.count(.queryAnswered) == clients.count }
            #expect(node.count(.topicKeyDerived) == 0)
        }
    }

    @Test("continue after a restart, also for registrants beyond the list's limit")
    func restart() async throws {
        let clients = clients(20)
        try await withFedNode(identity, folder.path, ScriptedGorush()) { node, relay in
            await relay.feed(clients.flatMap(registration))
            try await node.wait { node.count(.registrationStored) == clients.count }
        }
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { Self.derive(&$0, limit: 3) }) { node, _ in
            try await node.wait { node.count(.topicKeyDerivedAhead) == clients.count }
        }
        // None is derived twice.
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { Self.derive(&$0, limit: 3) }) { node, relay in
            let other = TestClient(of: identity.publicKey)
            await relay.feed(registration(other))
            try await node.wait { node.count(.topicKeyDerivedAhead) == 1 }
            for client in clients + [other] { await relay.feed(query(client)) }
            try await node.wait { node.count(.queryAnswered) == clients.count + 1 }
            #expect(node.count(.topicKeyDerived) == 0)
        }
    }

    @Test("are derived on an idle thread")
    func idle() async {
        var policies: [Int32] = []
        for await policy in IdleThread.map([1, 2], { _ in sched_getscheduler(0) }) { policies.append(policy) }
        #expect(policies == [IdleThread.policy, IdleThread.policy])
        // The thread that started it is not affected.
        #expect(sched_getscheduler(0) != IdleThread.policy)
    }
}
