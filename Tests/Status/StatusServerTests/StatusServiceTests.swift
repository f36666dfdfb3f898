import Core
import Delivery
import NodeAPI
import NodeMetrics
import StatusProtocol
import Storage
import StoreSQLite
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import StatusServer

@Suite(.timeLimit(.minutes(5))) struct StatusServiceTests {
    private let fixture: StatusStoreFixture
    private let node: BareNode
    private let identity = PrivateKey.generate()

    init() throws {
        fixture = try StatusStoreFixture()
        node = BareNode(fixture.store, of: .status, metrics: StatusPush.description.metrics)
    }

    private func service(otherIdentities: [PrivateKey] = []) throws -> any ProtocolService {
        var configuration = StatusPush.Configuration()
        configuration.deriveAheadLimit = nil
        configuration.otherIdentities = otherIdentities
        return try StatusPush(identity: identity, configuration).makeService(node.services)
    }

    private func incoming(_ request: PushNotificationRequest) -> Incoming {
        let sender = PrivateKey.generate()
        let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: sender)
        let tag = TopicTag(of: StatusTopics.partitioned(identity.publicKey))
        let message = WakuMessage(
            payload: TestPayload.sealed(envelope.bytes, signedBy: sender, to: identity.publicKey), contentTopic: ContentTopic(tag),
            timestamp: .now())
        let received = ReceivedMessage(message: message, pubsubTopic: .statusDefault)
        return Incoming(received: received, hash: received.hash, tag: tag, times: MessageTimes(received: .now, delay: nil))
    }

    private func outcome(of message: Decoded<AddressedCommand>, by handler: StatusHandler) async throws -> RequestHandler.Outcome {
        guard case .request(let outcome) = try await fixture.store.commit(handler.change(message, at: .now())) else {
            throw TestFailure("not a request")
        }
        return outcome
    }

    @Test func theAnswerToANotifiedRequestIsRemembered() async throws {
        _ = try service()
        let handler = try #require(node.handler(StatusHandler.self))
        let client = TestClient(of: identity.publicKey)
        let registration = client.registration()
        try await fixture.store.commit(
            fixture.registrations.store(registration, bytes: registration.encoded(), as: client.key, at: .now()))
        let request = PushNotificationRequest(requests: [client.notification()], messageID: [1])
        let message = try handler.decode(incoming(request), keys: [], at: .now())

        let first = try await outcome(of: message, by: handler)
        let waiting = try #require(first.queued.first?.waiting)
        let posted = PostedNotification(delivery: waiting.delivery, device: waiting.device, version: registration.version)
        try await fixture.store.commit(.change(DeliveryStorage.accept(posted, postedAs: nil, at: .now())))
        handler.finish(message, .success(.request(first)))
        _ = await node.nextReply()

        try await fixture.store.unregister(client.key, version: 2)
        #expect(try await outcome(of: message, by: handler).pending.errors([:]) == [nil])
    }

    @Test func severalIdentitiesAreRecorded() async throws {
        let other = PrivateKey.generate()
        let service = try service(otherIdentities: [other])
        // It ends at once, after the work of its start.
        let running = Task { try await service.run() }
        running.cancel()
        try await running.value
        #expect(try fixture.store.read(StoreIdentities.all()) == [identity.publicKey, other.publicKey])
    }

    @Test func identitiesAreRecordedOnceTheStoreCanBeWritten() async throws {
        let attempts = Mutex(0)
        let store = FaultyStore(
            fixture.store,
            commit: { outcome in
                guard outcome == Void.self else { return nil }
                return attempts.withLock { attempts in
                    attempts += 1
                    return attempts == 1 ? .ofTest(.unavailable) : nil
                }
            })
        let other = PrivateKey.generate()
        var configuration = StatusPush.Configuration()
        configuration.deriveAheadLimit = nil
        configuration.otherIdentities = [other]
        let node = BareNode(store, of: .status, metrics: StatusPush.description.metrics)
        let service = try StatusPush(identity: identity, configuration).makeService(node.services)
        let running = Task { try await service.run() }
        try await eventually { try fixture.store.read(StoreIdentities.all()) == [identity.publicKey, other.publicKey] }
        running.cancel()
        try await running.value
    }

    /// Damaged rows are left out: they would be read for ever.
    @Test(arguments: [(StoreError.Code.unavailable, ["device"]), (.damaged, [])])
    func standingIsReadOnceTheStoreCanBeRead(code: StoreError.Code, tokens: [String]) async throws {
        let key = StatusStoreFixture.key()
        try await fixture.store.register(key)
        let posted = PostedNotification(delivery: DeliveryID(hashing: [1]), device: Registrations.device(1), version: 1)
        try await fixture.store.commit(.change(DeliveryStorage.accept(posted, postedAs: nil, at: .now())))
        let attempts = Mutex(0)
        let store = FaultyStore(
            fixture.store,
            read: { outcome in
                // The rows of devices.
                guard outcome == [Row].self else { return nil }
                return attempts.withLock { attempts in
                    attempts += 1
                    return attempts == 1 ? .ofTest(code) : nil
                }
            })
        let node = BareNode(store, of: .status, metrics: StatusPush.description.metrics)
        var found: [String] = []
        await node.services.restoreStandings(of: StatusDeliverySource(store.sealer)) { found.append($1.revealed) }
        #expect(found == tokens)
    }

    @Test func keysOfTopicsAreReadAgainAfterAReload() async throws {
        let service = try service()
        let handler = try #require(node.handler(StatusHandler.self))
        let key = StatusStoreFixture.key()
        let tag = QueryTopics(of: key.keyHash).deployed
        #expect(try await handler.deriveKeys(of: tag)?.count == 0)
        // By another process, or another node.
        try await fixture.store.register(key)
        try await service.reload()
        #expect(try await handler.deriveKeys(of: tag)?.count == 1)
    }
}
