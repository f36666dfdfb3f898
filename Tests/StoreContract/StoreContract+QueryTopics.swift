import Core
import NodeAssembly
import StatusProtocol
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import StatusServer

extension StoreContract {
    private static func register(_ client: TestClient, in store: any Store) async throws {
        let registration = client.registration()
        try await store.commit(
            Registrations(store.sealer).store(registration, bytes: registration.encoded(), as: client.key, at: Timestamp(rawValue: 1)))
    }

    static var queryTopics: [StoreContract] {
        [
            StoreContract("Of many registrants with one query topic, the sixteen with the oldest rows are found") { fixture in
                let store = try fixture.open(NodeAssembly.parts)
                let clients = (0..<40).map { _ in TestClient(of: PrivateKey.generate().publicKey) }
                for client in clients { try await register(client, in: store) }
                // A new device does not make its registrant a newer one.
                let tablet = TestClient(of: clients[0].server, identity: clients[0].identity, installationID: InstallationID("tablet"))
                try await register(tablet, in: store)
                // Finding keys with the same topic tag would take too long.
                let tag = TopicTag(rawValue: 7)
                let move = Mutation(
                    StatusStorage.registration,
                    .update([StatusStorage.queryTopic, StatusStorage.publishedQueryTopic], where: [.equal(StatusStorage.keyHash)]))
                let topic = Value.integer(Int64(tag.rawValue))
                try await store.commit(.change(clients.map { move(topic, topic, .bytes($0.keyHash.bytes)) }))
                let oldest = clients.prefix(16).map(\.keyHash)
                let found = try store.read(TopicKeyStorage.queryTopics(withTag: tag))
                #expect(found.map(\.topic) == oldest.map(StatusTopics.query) + oldest.map(StatusTopics.publishedQuery))
                #expect(found.map(\.registrant) == oldest + oldest)
            }
        ]
    }
}
