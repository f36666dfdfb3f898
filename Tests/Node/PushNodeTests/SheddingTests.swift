import Delivery
import NodeAssembly
import NodeMetrics
import Storage
import StoreSQLite
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode
@testable import StatusServer

@Suite("When the store is slow", .timeLimit(.minutes(5)))
struct SheddingTests {
    /// Messages are accepted in chunks of three here.
    @Test func registrationsThatExceedTheWorkLimitTogetherAreStored() async throws {
        let folder = try TemporaryFolder()
        let identity = PrivateKey.generate()
        let clients = (0..<3 * IntakeLimits.cores).map { _ in TestClient(of: identity.publicKey) }
        let registrations = clients.map { client in
            WakuMessage(
                payload: TestPayload.sealed(
                    client.envelope(client.registration(version: 1)), signedBy: client.identity, to: identity.publicKey),
                contentTopic: ContentTopic(TopicTag(of: StatusTopics.partitioned(identity.publicKey))), timestamp: .now())
        }
        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { $0.workLimit = 2 }) { node, relay in
            // Not awaited: the node would not return from it if chunks waited for each other.
            Task { await relay.feed(registrations) }
            try await node.wait { node.count(.registrationStored) == clients.count }
        }
    }

    @Test("Queries are shed first, then requests; registrations wait, and all are stored")
    func shedding() async throws {
        let folder = try TemporaryFolder()
        let faults = StoreFaults(in: folder.path)
        let identity = PrivateKey.generate()
        let clients = (0..<12).map { _ in TestClient(of: identity.publicKey) }
        let server = StatusTopics.partitioned(identity.publicKey)
        @Sendable func message(_ payload: [UInt8], topic: String) -> WakuMessage {
            WakuMessage(payload: payload, contentTopic: ContentTopic(TopicTag(of: topic)), timestamp: .now())
        }
        @Sendable func registration(_ client: TestClient, version: UInt64) -> WakuMessage {
            message(
                TestPayload.sealed(
                    client.envelope(client.registration(version: version)), signedBy: client.identity, to: identity.publicKey),
                topic: server)
        }
        let known = clients[0]
        let requests = (0..<6).map { _ in
            let request = PushNotificationRequest(requests: [known.notification()], messageID: randomBytes(32))
            let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: known.identity).bytes
            return message(TestPayload.sealed(envelope, signedBy: known.identity, to: identity.publicKey), topic: server)
        }
        let topic = StatusTopics.query(known.keyHash)
        let queries = (0..<4).map { _ in
            let query = PushNotificationQuery(publicKeys: [known.keyHash])
            let envelope = MetadataEnvelope.encode(.query, payload: query.encoded(), signedBy: known.identity).bytes
            return message(TestPayload.sealed(envelope, signedBy: known.identity, topic: topic), topic: topic)
        }
        let news = clients.dropFirst().map { registration($0, version: 1) }

        try await withFedNode(identity, folder.path, ScriptedGorush(), configure: { $0.workLimit = 8 }) { node, relay in
            await relay.feed([registration(known, version: 1)])
            try await node.wait { relay.published.count == 1 }
            await relay.feed([queries[0]])
            // An answer is out a little before its message makes room.
            try await node.wait { relay.published.count == 2 && node.node.isIdle }

            // Else the node could not end.
            defer { faults.clear() }
            faults.add(.stall, to: .sync, of: .log)
            // 4 of 8 are taken: no room for queries. 6: none for requests.
            async let feeding: Void = {
                await relay.feed(Array(news[..<4]))
                await relay.feed(Array(queries[1...]))
                await relay.feed(requests)
                await relay.feed(Array(news[4...]))
            }()
            try await node.wait { node.count(.shedQuery) == 3 && node.count(.shedRequest) == 4 }
            faults.clear()
            await feeding
            try await node.wait { relay.published.count == 2 + news.count + 2 }
            #expect(node.count(.registrationStored) == clients.count)
        }
        let store = try NodeAssembly.store(in: folder.path, of: identity)
        for client in clients { #expect(try store.read(Registrations(store.sealer).state(of: client.key))?.version == 1) }
    }
}
