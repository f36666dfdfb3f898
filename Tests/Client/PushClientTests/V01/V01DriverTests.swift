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

    /// Runs a client until `body` returns.
    private func running<R: Sendable>(
        _ client: StatusV01PushClient, _ body: @escaping @Sendable (StatusV01PushClient) async throws -> R
    ) async throws -> R {
        try await withThrowingTaskGroup(of: R?.self) { group in
            group.addTask {
                await client.run()
                return nil
            }
            group.addTask { try await body(client) }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    private func client(
        _ identity: PrivateKey = .generate(), store: any ClientStore = MemoryClientStore(), relay: TestRelay? = nil
    ) async throws -> StatusV01PushClient {
        try await StatusV01PushClient.open(identity: identity, relays: [relay ?? network.relay()], store: store)
    }

    private static let device = V01DeviceProfile(platform: .firebase, deviceToken: DeviceToken("device-token"))

    private func message(to registrant: PublicKey, id: [UInt8] = [1]) -> OutgoingNotification {
        OutgoingNotification(messageID: id, chatID: "chat", kind: .message, content: [1, 2], recipients: [.init(registrant)])
    }

    private func registered(
        with servers: [PublicKey], _ identity: PrivateKey, _ profile: V01DeviceProfile = Self.device,
        store: any ClientStore = MemoryClientStore()
    ) async throws {
        try await running(try await client(identity, store: store)) { client in
            let events = client.events
            client.setReceiving(true)
            let states = try await client.register(profile, with: servers)
            #expect(states == Dictionary(uniqueKeysWithValues: servers.map { ($0, .registered(version: 1)) }))
            for await event in events {
                if case .advertised(rowCount: servers.count) = event { return }
            }
        }
    }

    @Test func registersAdvertisesDiscoversAndNotifies() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await registered(with: [server], bob)
        let relay = network.relay()
        try await running(try await client(relay: relay)) { [network] alice in
            alice.setSending(true)
            let devices = try await alice.discover(bob.publicKey)
            #expect(devices.map(\.server) == [server] && devices.allSatisfy(\.isTokenKnown))
            for _ in 0..<2 {
                let outcomes = try await alice.notify(message(to: bob.publicKey))
                #expect(outcomes.map(\.result) == [.notified(by: server)])
                // The same id notifies once.
                #expect(network.v01NotifiedCount(by: server) == 1)
            }
            #expect(network.notifiedCount(by: server) == 0)
        }
        // Each answer topic was confirmed before its question was published, and is watched only while the answer is awaited.
        #expect(relay.watchedTopics == [ContentTopic(TopicTag(of: StatusTopics.contactCode(bob.publicKey)))])
    }

    @Test func nextServerTakesOverFromOneThatDoesNotAcknowledge() async throws {
        let servers = [network.addServer(), network.addServer()]
        let bob = PrivateKey.generate()
        try await registered(with: servers, bob)
        network.change(servers[1]) { $0.isUp = false }
        try await running(try await client()) { alice in
            alice.setSending(true)
            let outcomes = try await alice.notify(message(to: bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: servers[0])])
        }
    }

    @Test func tokenReachesContactsAlone() async throws {
        let server = network.addServer()
        let (alice, eve) = (PrivateKey.generate(), PrivateKey.generate())
        let bob = PrivateKey.generate()
        var profile = Self.device
        profile.contactsOnly = true
        profile.contacts = [alice.publicKey]
        try await registered(with: [server], bob, profile)
        for (key, result) in [(alice, DeviceOutcome.Result.notified(by: server)), (eve, .notAllowed)] {
            try await running(try await client(key)) { client in
                client.setSending(true)
                let outcomes = try await client.notify(message(to: bob.publicKey))
                #expect(outcomes.map(\.result) == [result])
            }
        }
    }

    /// The second device learns of the first by VERSION_MISMATCH, and keeps it in the record.
    @Test func twoDevicesOfOneAccountAreBothNotified() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await registered(with: [server], bob)
        try await running(try await client(bob)) { tablet in
            tablet.setReceiving(true)
            let profile = V01DeviceProfile(platform: .apn, deviceToken: DeviceToken("tablet-token"))
            let states = try await tablet.register(profile, with: [server])
            #expect(states == [server: .registered(version: 2)])
            await tablet.waitUntilAdvertised(timeout: .seconds(10))
        }
        try await running(try await client()) { [network] alice in
            alice.setSending(true)
            let outcomes = try await alice.notify(message(to: bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: server), .notified(by: server)])
            #expect(network.v01NotifiedCount(by: server) == 2)
        }
    }

    @Test func answersOfOthersAreNotBelieved() async throws {
        let server = network.addServer()
        network.change(server) { $0.signer = .generate() }
        try await running(try await client()) { client in
            client.setReceiving(true)
            let states = try await client.register(Self.device, with: [server], timeout: .milliseconds(500))
            #expect(states == [server: .pending(tries: 0)])
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
        try await running(try await client()) { alice in
            let found = try await alice.discover(bob.publicKey, timeout: .seconds(2))
            #expect(found.isEmpty)
            #expect(alice.advertisementFlaw(of: bob.publicKey) == .foreignSignature)
        }
    }

    @Test func neitherRegistersNorSendsBeforeBothAreSwitchedOn() async throws {
        let server = network.addServer()
        try await running(try await client()) { [network] client in
            #expect(!client.isReceiving && !client.isSending)
            await #expect(throws: PushClientError.self) { try await client.register(Self.device, with: [server]) }
            await #expect(throws: PushClientError.self) { try await client.notify(message(to: server)) }
            #expect(network.published.isEmpty)
        }
    }

    @Test func registeringAfterUnregisteringSendsTheNewProfileOnly() async throws {
        let server = network.addServer()
        var profile = Self.device
        profile.blockedChats = ["work"]
        try await running(try await client()) { [profile] client in
            try await client.register(Self.device, with: [server], enablesReceiving: true)
            #expect(try await client.unregister() == [server: .unregistered])
            let states = try await client.register(profile, with: [server], enablesReceiving: true)
            // Versions 1 and 2 were the first record and its end.
            #expect(states == [server: .registered(version: 3)] && client.isReceiving)
        }
    }

    @Test func wantedServersAreThoseOfTheLastRegistration() async throws {
        let servers = [network.addServer(), network.addServer()]
        try await running(try await client()) { [network] client in
            try await client.register(Self.device, with: servers, enablesReceiving: true)
            network.change(servers[1]) { $0.isUp = false }
            try await client.register(Self.device, with: [servers[0]])
            #expect(client.registrations[servers[1]] == .pending(tries: 0))
            #expect(client.wantedServers == [servers[0]])
            network.change(servers[1]) { $0.isUp = true }
            #expect(try await client.unregister(timeout: .milliseconds(300))[servers[0]] == .unregistered)
            #expect(client.wantedServers == [servers[0]])
        }
    }

    @Test func unusableDevicesAndMessagesAreRefused() async throws {
        let server = network.addServer()
        try await running(try await client()) { client in
            client.setReceiving(true)
            client.setSending(true)
            let empty = V01DeviceProfile(platform: .apn, deviceToken: DeviceToken(""))
            await #expect(throws: PushClientError.self) { try await client.register(empty, with: [server]) }
            await #expect(throws: PushClientError.self) { try await client.register(Self.device, with: []) }
            await #expect(throws: PushClientError.self) { try await client.notify(message(to: server, id: [])) }
            let long = OutgoingNotification(
                messageID: [1], chatID: "c", kind: .message, content: [UInt8](repeating: 1, count: V01.Request.contentByteLimit),
                recipients: [.init(server)])
            await #expect(throws: PushClientError.self) { try await client.notify(long) }
        }
    }

    @Test func messageIDsHaveALimit() async throws {
        try await running(try await client()) { client in
            client.setSending(true)
            let id = [UInt8](repeating: 1, count: OutgoingNotification.messageIDByteLimit)
            let outcomes = try await client.notify(OutgoingNotification(messageID: id, chatID: "c", kind: .message, recipients: []))
            #expect(outcomes.isEmpty)
            await #expect(throws: PushClientError.self) { try await client.notify(message(to: newKey(), id: id + [1])) }
        }
    }

    /// The client is killed while its Register has no answer, and opened again with the same store.
    @Test func registrationGoesOnAfterAReopening() async throws {
        let server = network.addServer()
        network.change(server) { $0.isUp = false }
        let (bob, store) = (PrivateKey.generate(), MemoryClientStore())
        let installation = try await running(try await client(bob, store: store)) { client in
            client.setReceiving(true)
            let states = try await client.register(Self.device, with: [server], timeout: .milliseconds(300))
            #expect(states == [server: .pending(tries: 0)])
            return client.installationID
        }
        let sent = network.published
        network.change(server) { $0.isUp = true }
        let again = try await client(bob, store: store)
        #expect(again.installationID == installation && again.isReceiving)
        try await running(again) { [network] client in
            let events = client.events
            // It was published, and its answer is awaited: the network delivers it once more.
            for message in sent { network.publish(message) }
            for await event in events {
                if event == .registered(with: server, version: 1) { return }
            }
        }
    }

    /// As after a kill, unfinished requests and look-ups resume at once.
    @Test func secondRunGoesOnWhereTheFirstWasCancelled() async throws {
        let servers = [network.addServer(), network.addServer()]
        let friend = PrivateKey.generate()
        try await registered(with: [servers[1]], friend)
        let relay = network.relay()
        relay.setConfirming(false)
        let client = try await client(relay: relay)
        try await running(client) { client in
            let states = try await client.register(
                Self.device, with: [servers[0]], enablesReceiving: true, timeout: .milliseconds(300))
            #expect(states == [servers[0]: .pending(tries: 0)])
            let before = try await client.discover(friend.publicKey, timeout: .milliseconds(300))
            #expect(before.isEmpty)
        }
        relay.setConfirming(true)
        try await running(client) { client in
            client.setSending(true)
            let states = try await client.register(Self.device, with: [servers[0]], timeout: .seconds(20))
            #expect(states == [servers[0]: .registered(version: 1)])
            let after = try await client.discover(friend.publicKey, timeout: .seconds(20))
            #expect(after.map(\.server) == [servers[1]])
            let outcomes = try await client.notify(message(to: friend.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: servers[1])])
        }
    }

    @Test func pendingChangesOutliveACancelledRun() async throws {
        let (identity, store) = (PrivateKey.generate(), FailingStore())
        store.setFailing(true)
        let client = try await client(identity, store: store)
        // Consecutive failures are reported once, possibly before any other code runs.
        let events = client.events
        try await running(client) { client in
            client.setSending(true)
            for await event in events {
                if case .storeFailed = event { return }
            }
        }
        #expect(try await store.load().isEmpty)
        store.setFailing(false)
        try await running(client) { await $0.waitUntilStored(timeout: .seconds(60)) }
        #expect(try await self.client(identity, store: store).isSending)
    }

    @Test func secondRunWaitsForTheEndOfTheFirst() async throws {
        let server = network.addServer()
        let relay = network.relay()
        let client = try await client(relay: relay)
        let events = client.events
        let runs = (0..<2).map { _ in Task { await client.run() } }
        let states = try await client.register(Self.device, with: [server], enablesReceiving: true)
        #expect(states == [server: .registered(version: 1)])
        for await event in events {
            if case .advertised(rowCount: 1) = event { break }
        }
        // Each message once.
        #expect(relay.publishedTopics.count == 2)
        runs[0].cancel()
        await runs[0].value
        #expect(try await client.unregister() == [server: .unregistered])
        runs[1].cancel()
        await runs[1].value
    }

    /// One store, one identity, both protocols: neither reads the other's records or messages.
    @Test func bothProtocolsShareOneStoreAndOneIdentity() async throws {
        let server = network.addServer()
        let (bob, store) = (PrivateKey.generate(), MemoryClientStore())
        try await registered(with: [server], bob, store: store)
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
        try await running(try await client()) { alice in
            alice.setSending(true)
            let outcomes = try await alice.notify(message(to: bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: server)])
        }
    }
}
