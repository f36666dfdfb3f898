import Foundation
import GRDB
import Delivery
import NodeAssembly
import NodeMetrics
import PushClient
import LoopbackRelay
import Core
import StatusServer
import Storage
import StoreSQLite
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("A node, from the relay to gorush and back")
struct PushNodeTests {
    let fixture: NodeFixture
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    @Test("Registers, answers queries, notifies once, and unregisters")
    func mainJob() async throws {
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.register(bob) == .versionMismatch)
            let devices = try await node.withClient { try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(60)) }
            #expect(devices.map(\.accessToken) == [bob.accessToken])

            let messageID = randomBytes(32)
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            #expect(node.gorush.accepted.map(\.deviceToken) == [DeviceToken("device")])
            #expect(node.count(.notificationRetried) == 0)

            let ended = try await node.withClient(bob.identity) {
                try await $0.unregister(bob.installationID, version: 2, with: node.server)
            }
            #expect(ended == nil)
            #expect(try await node.notify(bob) == .notRegistered)
            #expect(node.gorush.accepted.count == 1 && node.count(.requestWhileOpen) == 0)
        }
    }

    @Test("Registrations and deliveries are remembered across a restart")
    func restart() async throws {
        let messageID = randomBytes(32)
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob, version: 3) == nil)
            #expect(try await node.notify(bob, messageID: messageID) == nil)
        }
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob, version: 3) == .versionMismatch)
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            #expect(node.gorush.accepted.count == 1)
            #expect(try await node.notify(bob) == nil)
            #expect(node.gorush.accepted.count == 2)
        }
    }

    @Test(
        "A notification that gorush does not accept is answered INTERNAL_ERROR, waits on disk, and is delivered once, to the current token")
    func retries() async throws {
        let messageID = randomBytes(32)
        fixture.gorush.answer(.failed(retryAfter: nil))
        try await fixture.withNode(configure: { $0.awaitLimit = .milliseconds(200) }) { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob, messageID: messageID) == .internalError)
            #expect(try await node.register(bob, version: 2, token: "new device") == nil)
        }
        fixture.gorush.answer(.accepted)
        try await fixture.withNode { [bob] node async throws in
            try await node.wait { !node.gorush.accepted.isEmpty }
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            #expect(node.gorush.accepted.map(\.deviceToken) == [DeviceToken("new device")])
        }
    }

    @Test("A repeated request is delivered to a device that registered again, after the earlier post failed")
    func requestedAnew() async throws {
        let messageID = randomBytes(32)
        let (posted, released) = (AsyncStream<Void>.makeStream(), AsyncStream<Void>.makeStream())
        fixture.gorush.answer(.failed(retryAfter: nil))
        fixture.gorush.whilePosting { _ in
            posted.continuation.finish()
            for await _ in released.stream {}
        }
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            let first = Task { try await node.notify(bob, messageID: messageID) }
            for await _ in posted.stream {}
            _ = try await node.withClient(bob.identity) {
                try await $0.unregister(bob.installationID, version: 2, with: node.server, timeout: .seconds(60))
            }
            #expect(try await node.register(bob, version: 3, token: "new device") == nil)
            let second = Task { try await node.notify(bob, messageID: messageID) }
            try await node.wait { node.count(.notificationQueued) == 2 }
            released.continuation.finish()
            try await node.wait { node.gorush.attempts > 0 }
            node.gorush.answer(.accepted)
            #expect(try await first.value == nil)
            #expect(try await second.value == nil)
            #expect(node.gorush.accepted.map(\.deviceToken) == [DeviceToken("new device")])
        }
    }

    @Test("A refused notification is answered INTERNAL_ERROR and not retried; the next request is posted")
    func refused() async throws {
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            node.gorush.answer(.refused)
            let messageID = randomBytes(32)
            #expect(try await node.notify(bob, messageID: messageID) == .internalError)
            #expect(node.gorush.attempts == 1)
            node.gorush.answer(.accepted)
            #expect(try await node.notify(bob, messageID: messageID) == nil)
        }
    }

    @Test("A dead token ends the registration: the request that shows it and the next get NOT_REGISTERED")
    func deadToken() async throws {
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob, version: 4) == nil)
            node.gorush.answer(.accepted, verdict: .dead)
            let messageID = randomBytes(32)
            #expect(try await node.notify(bob, messageID: messageID) == .notRegistered)
            #expect(node.count(.notificationAccepted) == 1 && node.count(.tokenRemoved) == 1)
            node.gorush.answer(.accepted)
            #expect(try await node.notify(bob, messageID: messageID) == .notRegistered)
            #expect(try await node.notify(bob) == .notRegistered)
            #expect(try await node.register(bob, version: 4) == .versionMismatch)
            #expect(try await node.register(bob, version: 5) == nil)
            #expect(try await node.notify(bob) == nil)
        }
    }

    @Test("A doubtful token is counted, and the device stays registered")
    func doubtfulToken() async throws {
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            node.gorush.answer(.accepted, verdict: .doubtful)
            #expect(try await node.notify(bob) == nil)
            #expect(try await node.notify(bob) == nil)
            #expect(node.count(.tokenDoubtful) == 2)
        }
    }

    @Test("A duplicate message is handled once")
    func duplicate() async throws {
        try await fixture.withNode { [bob] node async throws in
            let message = try #require(
                EnvelopeSealing.seal(
                    bob.envelope(bob.registration()), to: .personal(node.server), wakuSigner: bob.identity, at: .now()
                ).first)
            node.network.publish(message, on: .statusDefault)
            node.network.publish(message, on: .statusDefault)
            try await node.wait { node.count(.duplicate) == 1 }
            try await node.wait { node.count(.registrationStored) == 1 }
            #expect(node.count(.registrationOutdated) == 0)
        }
    }

    @Test("A message that the relay delivers again after a kill gets the same answer, and changes nothing")
    func replayed() async throws {
        let message = try #require(
            EnvelopeSealing.seal(
                bob.envelope(bob.registration()), to: .personal(fixture.identity.publicKey), wakuSigner: bob.identity, at: .now()
            ).first)
        for round in 1...2 {
            try await fixture.withNode { node async throws in
                node.network.publish(message, on: .statusDefault)
                try await node.wait { node.count(.answerPublished) == 1 }
                #expect(node.count(.registrationStored) == (round == 1 ? 1 : 0))
                #expect(node.count(.registrationOutdated) == 0)
            }
            // After a kill the messages handled in the last seconds are not saved.
            let store = try NodeAssembly.store(in: fixture.folder.path, of: fixture.identity)
            try await store.commit(NodeStorage.forgetHandled(before: .now() + .seconds(60)))
            try store.close()
        }
    }

    @Test("A request that the relay delivers again after a restart gets the same answer, regardless of changes in between")
    func replayedRequest() async throws {
        let sender = PrivateKey.generate()
        let request = PushNotificationRequest(requests: [bob.notification()], messageID: randomBytes(32))
        let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: sender)
        let server = fixture.identity.publicKey
        /// Sealed again each time: the request's id is the same, the message hash is not.
        @Sendable func ask(_ node: RunningNode) async throws -> PushNotificationResponse {
            let relay = node.network.relay()
            let answers = AsyncStream.makeStream(of: PushNotificationResponse.self)
            let listening = Task {
                await relay.run { messages in
                    for message in messages {
                        guard let payload = try? EnvelopeSealing.open(message.message, identity: sender),
                            let envelope = try? MetadataEnvelope(parsing: Array(payload.data), wakuSigner: payload.signer),
                            let response = try? PushNotificationResponse(parsing: envelope.payload)
                        else { continue }
                        answers.continuation.yield(response)
                    }
                }
            }
            defer { listening.cancel() }
            for message in EnvelopeSealing.seal(envelope.bytes, to: .partitioned(server), wakuSigner: sender, at: .now()) {
                node.network.publish(message, on: .statusDefault)
            }
            for await answer in answers.stream { return answer }
            throw RunningNode.Timeout()
        }
        let first = try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            return try await ask(node)
        }
        #expect(first.reports.map(\.error) == [nil])
        try await fixture.withNode { [bob] node async throws in
            _ = try await node.withClient(bob.identity) {
                try await $0.unregister(bob.installationID, version: 2, with: node.server, timeout: .seconds(60))
            }
            #expect(try await node.notify(bob) == .notRegistered)
            #expect(try await ask(node) == first)
            #expect(node.gorush.accepted.count == 1)
        }
    }

    @Test("A notification whose registrant leaves while it waits is counted as such, and not posted")
    func leftWhileWaiting() async throws {
        fixture.gorush.answer(.failed(retryAfter: nil))
        try await fixture.withNode(configure: { $0.awaitLimit = .milliseconds(100) }) { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == .internalError)
            #expect(node.count(.notificationUnregistered) == 0)
            _ = try await node.withClient(bob.identity) {
                try await $0.unregister(bob.installationID, version: 2, with: node.server, timeout: .seconds(60))
            }
            node.gorush.answer(.accepted)
            try await node.wait { node.count(.notificationUnregistered) == 1 }
            #expect(node.count(.notificationQueued) == 1)
            #expect(node.gorush.accepted.isEmpty)
        }
    }

    @Test("A flood of junk on a query topic costs one key derivation, and valid queries are answered")
    func flood() async throws {
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            let topic = ContentTopic(QueryTopics(of: bob.keyHash).deployed)
            for _ in 0..<800 {
                node.network.publish(
                    WakuMessage(payload: randomBytes(300), contentTopic: topic, timestamp: .now()), on: .statusDefault)
            }
            let devices = try await node.withClient {
                try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(60))
            }
            #expect(devices.count == 1)
            try await node.wait { node.count(.droppedUndecryptable) == 800 }
            #expect(node.count(.topicKeyDerived) == 1)
        }
    }

    @Test("A topic key is derived once while a registrant uses the topic; an altered stored key is derived again")
    func topicKeyKept() async throws {
        @Sendable func query(_ node: RunningNode) async throws -> Int {
            try await node.withClient { [bob] in try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(60)) }.count
        }
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await query(node) == 1)
            #expect(node.count(.topicKeyDerived) == 1)
        }
        try await fixture.withNode { [bob] node async throws in
            #expect(try await query(node) == 1)
            #expect(node.count(.topicKeyDerived) == 0)
            // The key is deleted with the last registration.
            _ = try await node.withClient(bob.identity) { try await $0.unregister(bob.installationID, version: 2, with: node.server) }
            #expect(try await node.register(bob, version: 3) == nil)
            #expect(try await query(node) == 1)
            #expect(node.count(.topicKeyDerived) == 1)
        }
        let database = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
        try await database.write { try $0.execute(sql: "UPDATE topic_key SET sealed = zeroblob(60)") }
        try database.close()
        for derived in [1, 0] {
            try await fixture.withNode { node async throws in
                #expect(try await query(node) == 1)
                #expect(node.count(.topicKeyDerived) == derived)
            }
        }
    }

    @Test("A large answer is sent in segments, and reassembled")
    func segments() async throws {
        try await fixture.withNode { [fixture] node async throws in
            let owner = PrivateKey.generate()
            for installation in ["a", "b", "c"] {
                let client = TestClient(of: fixture.identity.publicKey, identity: owner, installationID: InstallationID(installation))
                let registration = client.registration { $0.allowedKeyList = Array(repeating: randomBytes(64), count: 5_000) }
                let messages = EnvelopeSealing.seal(
                    client.envelope(registration), to: .personal(node.server), wakuSigner: owner, at: .now())
                for message in messages { node.network.publish(message, on: .statusDefault) }
            }
            try await node.wait { node.count(.registrationStored) == 3 }
            let devices = try await node.withClient { try await $0.query(owner.publicKey, at: node.server, timeout: .seconds(60)) }
            #expect(devices.map(\.installationID.string).sorted() == ["a", "b", "c"])
        }
    }

    @Test("Above the outbox limit the oldest notification is dropped, and its request is answered")
    func outboxLimit() async throws {
        fixture.gorush.answer(.failed(retryAfter: nil))
        let ids = (1...4).map { [UInt8($0)] }
        try await fixture.withNode(configure: { $0.outboxLimit = 2 }) { [bob] node async throws in
            #expect(try await node.register(bob) == nil)
            for id in ids { #expect(try await node.notify(bob, messageID: id) == .internalError) }
            #expect(node.count(.notificationQueued) == 4)
            try await node.wait { node.count(.notificationEvicted) == 2 }
            node.gorush.answer(.accepted)
            try await node.wait { node.gorush.accepted.count == 2 }
            // One that is just being posted is not dropped: the other one that is left may be any.
            #expect(node.gorush.accepted.last?.id == String(DeliveryID(messageID: [4], key: bob.key).hex.prefix(32)))
        }
        try await fixture.withNode { node async throws in
            #expect(node.gorush.accepted.count == 2)
        }
    }

    @Test("A second node can't use the folder, and another identity can't use the database")
    func folder() async throws {
        try await fixture.withNode { [fixture] _ async throws in
            let error = await #expect(throws: StoreError.self) { try await fixture.withNode { _ in } }
            #expect(error?.code == .locked)
        }
    }
}
