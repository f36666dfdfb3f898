import PushClient
import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// The complete version 0.1 client with real encryption and signatures, against servers with the same.
@Suite("Version 0.1, client: driver", .timeLimit(.minutes(5))) struct V01DriverTests {
    private let network = TestNetwork()

    private func client(
        _ identity: PrivateKey = .generate(), store: any ClientStore = MemoryClientStore(), relay: TestRelay? = nil
    ) async throws -> StatusV01PushClient {
        try await StatusV01PushClient.open(identity: identity, relays: [relay ?? network.relay()], store: store)
    }

    private static let device = V01DeviceProfile(platform: .firebase, deviceToken: DeviceToken("device-token"))

    @Test func namedServerThatDoesNotAnswerIsAKnownOne() async throws {
        let server = network.addServer()
        network.change(server) { $0.isUp = false }
        try await client().whileRunning { alice in
            let found = try await alice.discover(newKey(), askingAlso: [server], timeout: .seconds(2))
            #expect(found.isEmpty)
        }
    }

    @Test func listedServersAreQueriedWithoutAdvertisement() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(.v01, with: [server], bob)
        let relay = network.relay()
        relay.setStore(false)
        var configuration = StatusPushClient.Configuration()
        configuration.servers = [PushServer(key: server)]
        let alice = try await StatusV01PushClient.open(
            identity: .generate(), relays: [relay], store: MemoryClientStore(), configuration: configuration)
        try await alice.whileRunning { alice in
            alice.setSending(true)
            let outcomes = try await alice.notify(.to(bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: server)])
        }
    }

    /// The second device learns of the first by VERSION_MISMATCH, and keeps it in the record.
    @Test func twoDevicesOfOneAccountAreBothNotified() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(.v01, with: [server], bob)
        try await client(bob).whileRunning { tablet in
            tablet.setReceiving(true)
            let profile = V01DeviceProfile(platform: .apn, deviceToken: DeviceToken("tablet-token"))
            let states = try await tablet.register(profile, with: [server])
            #expect(states == [server: .registered(version: 2)])
            await tablet.waitUntilAdvertised(timeout: .seconds(10))
        }
        try await client().whileRunning { [network] alice in
            alice.setSending(true)
            let outcomes = try await alice.notify(.to(bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: server), .notified(by: server)])
            #expect(network.v01NotifiedCount(by: server) == 2)
        }
    }

    @Test func advertisementSignedByAnotherKeyIsNotBelieved() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        let topic = StatusTopics.contactCode(bob.publicKey)
        let row = V01.AdvertisementInfo(
            publicKey: server.compressed, accessToken: V01Account.newToken(), installationID: InstallationID("phone"))
        let payload = V01.ContactCodeAdvertisement(info: [row]).encoded()
        let envelope = V01.Envelope.encode(.contactCodeAdvertisement, payload: payload, signedBy: .generate())
        for message in EnvelopeSealing.seal(envelope, to: .topic(topic), wakuSigner: bob, at: .now()) { network.publish(message) }
        try await client().whileRunning { alice in
            let found = try await alice.discover(bob.publicKey, timeout: .seconds(2))
            #expect(found.isEmpty)
            #expect(alice.advertisementFlaw(of: bob.publicKey) == .foreignSignature)
        }
    }

    @Test func unusableDevicesAndMessagesAreRefused() async throws {
        let server = network.addServer()
        try await client().whileRunning { client in
            client.setReceiving(true)
            client.setSending(true)
            let empty = V01DeviceProfile(platform: .apn, deviceToken: DeviceToken(""))
            await #expect(throws: PushClientError.self) { try await client.register(empty, with: [server]) }
            await #expect(throws: PushClientError.self) { try await client.register(Self.device, with: []) }
            await #expect(throws: PushClientError.self) { try await client.notify(.to(server, id: [])) }
            let long = OutgoingNotification(
                messageID: [1], chatID: "c", kind: .message, content: [UInt8](repeating: 1, count: V01.Request.contentByteLimit),
                recipients: [.init(server)])
            await #expect(throws: PushClientError.self) { try await client.notify(long) }
        }
    }

    /// The client is killed while its Register has no answer, and opened again with the same store.
    @Test func registrationContinuesAfterReopening() async throws {
        let server = network.addServer()
        network.change(server) { $0.isUp = false }
        let (bob, store) = (PrivateKey.generate(), MemoryClientStore())
        let installation = try await client(bob, store: store).whileRunning { client in
            client.setReceiving(true)
            let states = try await client.register(Self.device, with: [server], timeout: .milliseconds(300))
            #expect(states == [server: .pending(tries: 0)])
            return client.installationID
        }
        let sent = network.published
        network.change(server) { $0.isUp = true }
        let again = try await client(bob, store: store)
        #expect(again.installationID == installation && again.isReceiving)
        try await again.whileRunning { [network] client in
            let events = client.events
            // It was published, and its answer is awaited: the network delivers it once more.
            for message in sent { network.publish(message) }
            for await event in events {
                if event == .registered(with: server, version: 1) { return }
            }
        }
    }

    /// One store, one identity, both protocols: neither reads the other's records or messages.
    @Test func bothProtocolsShareOneStoreAndOneIdentity() async throws {
        let server = network.addServer()
        let (bob, store) = (PrivateKey.generate(), MemoryClientStore())
        try await network.register(.v01, with: [server], bob, store: store)
        let deployed = try await StatusPushClient.open(identity: bob, relays: [network.relay()], store: store)
        #expect(!deployed.isReceiving && deployed.registrations.isEmpty)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await deployed.run() }
            deployed.setReceiving(true)
            let profile = DeviceProfile(platform: .apn, deviceToken: DeviceToken("t"), apnTopic: "a")
            let states = try await deployed.register(profile, with: [PushServer(key: server)])
            #expect(states == [server: .registered(version: 1)])
            group.cancelAll()
        }
        let again = try await client(bob, store: store)
        #expect(again.registrations == [server: .registered(version: 1)] && again.isReceiving)
        try await client().whileRunning { alice in
            alice.setSending(true)
            let outcomes = try await alice.notify(.to(bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: server)])
        }
    }
}
