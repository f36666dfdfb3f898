import PushClient
import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// The complete client with real encryption and signatures, against servers with the same.
@Suite(.timeLimit(.minutes(5))) struct DriverTests {
    private let network = TestNetwork()

    /// Runs a client until `body` returns.
    private func running<R: Sendable>(_ client: StatusPushClient, _ body: @escaping @Sendable (StatusPushClient) async throws -> R)
        async throws -> R
    {
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

    private func client(_ identity: PrivateKey = .generate(), store: any ClientStore = MemoryClientStore(), relay: TestRelay? = nil)
        async throws -> StatusPushClient
    {
        try await StatusPushClient.open(identity: identity, relays: [relay ?? network.relay()], store: store)
    }

    private static let device: DeviceProfile = {
        DeviceProfile(platform: .apn, deviceToken: DeviceToken("device-token"), apnTopic: "im.status.ethereum")
    }()

    private func message(to registrant: PublicKey, id: [UInt8] = [1]) -> OutgoingNotification {
        OutgoingNotification(messageID: id, chatID: "chat", kind: .message, recipients: [.init(registrant)])
    }

    /// A client that is registered with the servers.
    private func registered(
        with servers: [PublicKey], _ identity: PrivateKey, _ profile: DeviceProfile = Self.device,
        store: any ClientStore = MemoryClientStore()
    ) async throws {
        try await running(try await client(identity, store: store)) { client in
            let events = client.events
            client.setReceiving(true)
            let states = try await client.register(profile, with: servers.map { PushServer(key: $0) })
            #expect(states == Dictionary(uniqueKeysWithValues: servers.map { ($0, .registered(version: 1)) }))
            // The last device may be advertised slightly later.
            for await event in events {
                if case .advertised(rowCount: servers.count) = event { return }
            }
        }
    }

    @Test func registersAdvertisesDiscoversAndNotifies() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await registered(with: [server], bob)
        try await running(try await client()) { [network] alice in
            alice.setSending(true)
            let devices = try await alice.discover(bob.publicKey)
            #expect(devices.map(\.server) == [server] && devices.allSatisfy(\.isTokenKnown))
            let outcomes = try await alice.notify(message(to: bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: server)])
            #expect(network.notifiedCount(by: server) == 1)
            // The same id notifies once.
            _ = try await alice.notify(message(to: bob.publicKey))
            #expect(network.notifiedCount(by: server) == 1)
        }
    }

    @Test func nextServerTakesOverFromOneThatDoesNotAnswer() async throws {
        let servers = [network.addServer(), network.addServer()]
        let bob = PrivateKey.generate()
        try await registered(with: servers, bob)
        for server in servers.dropFirst() { network.change(server) { $0.isUp = false } }
        try await running(try await client()) { alice in
            alice.setSending(true)
            let outcomes = try await alice.notify(message(to: bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: servers[0])])
        }
    }

    @Test func contactsOnlyTokenReachesContactsAlone() async throws {
        let server = network.addServer()
        let (alice, eve) = (PrivateKey.generate(), PrivateKey.generate())
        let bob = PrivateKey.generate()
        var profile = Self.device
        profile.contactsOnly = true
        profile.contacts = [alice.publicKey]
        try await registered(with: [server], bob, profile)
        try await running(try await client(alice)) { client in
            client.setSending(true)
            let outcomes = try await client.notify(message(to: bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: server)])
        }
        try await running(try await client(eve)) { client in
            client.setSending(true)
            let outcomes = try await client.notify(message(to: bob.publicKey, id: [2]))
            #expect(outcomes.map(\.result) == [.notAllowed])
        }
    }

    @Test func neitherRegistersNorSendsBeforeBothAreSwitchedOn() async throws {
        let server = network.addServer()
        try await running(try await client()) { [network] client in
            #expect(!client.isReceiving && !client.isSending)
            await #expect(throws: PushClientError.self) { try await client.register(Self.device, with: [PushServer(key: server)]) }
            await #expect(throws: PushClientError.self) { try await client.notify(message(to: server)) }
            #expect(network.published.isEmpty)
        }
    }

    @Test func registeringAfterUnregisteringSendsTheNewProfileOnly() async throws {
        let server = network.addServer()
        var profile = Self.device
        profile.mutedChats = ["work"]
        try await running(try await client()) { [profile] client in
            try await client.register(Self.device, with: [PushServer(key: server)], enablesReceiving: true)
            #expect(try await client.unregister() == [server: .unregistered])
            let states = try await client.register(profile, with: [PushServer(key: server)], enablesReceiving: true)
            // Versions 1 and 2 were the first registration and its end.
            #expect(states == [server: .registered(version: 3)] && client.isReceiving)
        }
    }

    @Test func wantedServersAreThoseOfTheLastRegistration() async throws {
        let servers = [network.addServer(), network.addServer()]
        try await running(try await client()) { [network] client in
            try await client.register(Self.device, with: servers.map { PushServer(key: $0) }, enablesReceiving: true)
            network.change(servers[1]) { $0.isUp = false }
            try await client.register(Self.device, with: [PushServer(key: servers[0])])
            #expect(client.registrations[servers[1]] == .pending(tries: 0))
            #expect(client.wantedServers == [servers[0]])
            network.change(servers[1]) { $0.isUp = true }
            #expect(try await client.unregister(timeout: .milliseconds(300))[servers[0]] == .unregistered)
            #expect(client.wantedServers == [servers[0]])
        }
    }

    @Test func whatCanNotBeRegisteredIsToldAtOnce() async throws {
        try await running(try await client()) { client in
            client.setReceiving(true)
            var flawed = Self.device
            flawed.apnTopic = ""
            for (profile, servers) in [(Self.device, []), (flawed, [PushServer(key: newKey())])] {
                do {
                    try await client.register(profile, with: servers)
                    Issue.record("it was taken")
                } catch {
                    #expect((error as? PushClientError)?.code == .invalid)
                }
            }
        }
    }

    @Test func callsEndWhenTheClientDoesNotRunAnyMore() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await registered(with: [server], bob)
        network.change(server) { $0.isUp = false }
        let client = try await client()
        client.setSending(true)
        let running = Task { await client.run() }
        _ = try await client.discover(bob.publicKey)
        let published = network.published.count
        let notifying = Task { [message = message(to: bob.publicKey)] in try await client.notify(message) }
        // The request is under way once it was published.
        while network.published.count == published { await Task.yield() }
        running.cancel()
        await #expect { try await notifying.value } throws: { ($0 as? PushClientError)?.code == .notRunning }
        await #expect { try await client.unregister() } throws: { ($0 as? PushClientError)?.code == .notRunning }
    }

    @Test func cancelledRegistrationIsNoResult() async throws {
        let server = network.addServer()
        network.change(server) { $0.isUp = false }
        try await running(try await client()) { client in
            let registering = Task { try await client.register(Self.device, with: [PushServer(key: server)], enablesReceiving: true) }
            while client.registrations.isEmpty { await Task.yield() }
            registering.cancel()
            await #expect { try await registering.value } throws: { ($0 as? PushClientError)?.code == .cancelled }
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

    @Test func questionIsPublishedAfterItsAnswersTopicWasConfirmed() async throws {
        let server = network.addServer()
        let identity = PrivateKey.generate()
        let relay = network.relay()
        relay.setConfirming(false)
        try await running(try await client(identity, relay: relay)) { client in
            client.setReceiving(true)
            async let states = client.register(Self.device, with: [PushServer(key: server)], timeout: .seconds(240))
            // Nothing is published before the confirmation, however long it takes.
            for _ in 0..<200 { await Task.yield() }
            #expect(relay.publishedTopics.isEmpty)
            relay.setConfirming(true)
            let settled = try await states
            #expect(settled == [server: .registered(version: 1)])
            let question = try #require(relay.publishedTopics.first)
            #expect(question.confirmed.contains(StatusPushClient.answerTopic(identity.publicKey)))
        }
    }

    @Test func answerThatItsServerDidNotSignIsNotBelieved() async throws {
        let server = network.addServer()
        network.change(server) { $0.signer = .generate() }
        try await running(try await client()) { client in
            client.setReceiving(true)
            let states = try await client.register(Self.device, with: [PushServer(key: server)], timeout: .milliseconds(300))
            #expect(states == [server: .pending(tries: 0)])
        }
    }

    @Test func lateAnswerCounts() async throws {
        let server = network.addServer()
        network.change(server) { $0.holdsAnswers = true }
        try await running(try await client()) { [network] client in
            let events = client.events
            client.setReceiving(true)
            let early = try await client.register(Self.device, with: [PushServer(key: server)], timeout: .milliseconds(300))
            #expect(early == [server: .pending(tries: 0)])
            network.release(server)
            for await event in events {
                if event == .registered(with: server, version: 1) { return }
            }
        }
    }

    @Test func relayThatRefusesIsToldAndNothingIsLost() async throws {
        let server = network.addServer()
        let store = MemoryClientStore()
        let identity = PrivateKey.generate()
        let relay = network.relay()
        relay.setFailure(RelayError(code: .refused, message: "the node refuses this"))
        try await running(try await client(identity, store: store, relay: relay)) { client in
            let events = client.events
            client.setReceiving(true)
            async let states = client.register(Self.device, with: [PushServer(key: server)], timeout: .milliseconds(500))
            for await event in events {
                if event == .relayFailed(reason: "the node refuses this") { break }
            }
            let settled = try await states
            #expect(settled == [server: .pending(tries: 0)])
        }
        #expect(try await client(identity, store: store).registrations == [server: .pending(tries: 0)])
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
                Self.device, with: [PushServer(key: servers[0])], enablesReceiving: true, timeout: .milliseconds(300))
            #expect(states == [servers[0]: .pending(tries: 0)])
            #expect(try await client.discover(friend.publicKey, timeout: .milliseconds(300)).isEmpty)
        }
        relay.setConfirming(true)
        try await running(client) { client in
            client.setSending(true)
            let states = try await client.register(Self.device, with: [PushServer(key: servers[0])], timeout: .seconds(20))
            #expect(states == [servers[0]: .registered(version: 1)])
            #expect(try await client.discover(friend.publicKey, timeout: .seconds(20)).map(\.server) == [servers[1]])
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
        let states = try await client.register(Self.device, with: [PushServer(key: server)], enablesReceiving: true)
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

    @Test func goesOnAfterAKill() async throws {
        let servers = [network.addServer(), network.addServer()]
        network.change(servers[1]) { $0.isUp = false }
        let store = MemoryClientStore()
        let identity = PrivateKey.generate()
        try await running(try await client(identity, store: store)) { client in
            client.setReceiving(true)
            try await client.register(Self.device, with: servers.map { PushServer(key: $0) }, timeout: .seconds(1))
        }
        let again = try await client(identity, store: store)
        #expect(again.isReceiving && again.registrations[servers[0]] == .registered(version: 1))
        #expect(again.registrations[servers[1]] == .pending(tries: 0))
    }

    @Test func atMostOneLookUpAStart() async throws {
        let server = network.addServer()
        let store = MemoryClientStore()
        let identity = PrivateKey.generate()
        let friends = (0..<5).map { _ in newKey() }
        try await running(try await client(identity, store: store)) { client in
            for friend in friends {
                let error = await #expect(throws: PushClientError.self) { try await client.discover(friend, timeout: .seconds(60)) }
                #expect(error?.code == .noServerKnown)
            }
        }
        try await registered(with: [server], .generate())
        let relay = network.relay()
        try await running(try await client(identity, store: store, relay: relay)) { client in
            try await eventually { relay.lookUpCount > 0 }
            #expect(relay.lookUpCount == 1 && Set(client.contacts) == Set(friends))
        }
        #expect(relay.lookUpCount == 1)
    }

    @Test func cancelledNotificationIsSentNoMore() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await registered(with: [server], bob)
        network.change(server) { $0.isUp = false }
        let relay = network.relay()
        try await running(try await client(relay: relay)) { client in
            client.setSending(true)
            let notifying = Task { try await client.notify(message(to: bob.publicKey)) }
            try await eventually { !relay.publishedTopics.isEmpty }
            notifying.cancel()
            let outcomes = try await notifying.value
            #expect(outcomes.allSatisfy { $0.result == .gaveUp(.cancelled) })
        }
    }

    @Test func storeThatFailsHoldsPublicationsBack() async throws {
        let server = network.addServer()
        let store = FailingStore()
        store.setFailing(true)
        let relay = network.relay()
        let client = try await client(store: store, relay: relay)
        // As above.
        let events = client.events
        try await running(client) { client in
            client.setReceiving(true)
            async let states = client.register(Self.device, with: [PushServer(key: server)])
            for await event in events {
                if case .storeFailed = event { break }
            }
            #expect(relay.publishedTopics.isEmpty)
            store.setFailing(false)
            let settled = try await states
            #expect(settled == [server: .registered(version: 1)])
        }
    }

    /// A program may end as soon as it has its answer.
    @Test func whatACallReturnsIsKept() async throws {
        let server = network.addServer()
        let store = MemoryClientStore()
        let identity = PrivateKey.generate()
        for round in UInt64(1)...5 {
            try await running(try await client(identity, store: store)) { client in
                client.setReceiving(true)
                var profile = Self.device
                profile.mutedChats = ["\(round)"]
                try await client.register(profile, with: [PushServer(key: server)])
            }
            let kept = try await client(identity, store: store).registrations
            #expect(kept == [server: .registered(version: round)])
        }
    }

    @Test func nextTryIsTold() async throws {
        let server = network.addServer()
        let client = try await client()
        #expect(client.nextTry(at: server) == nil)
        let relay = network.relay()
        relay.setFailure(RelayError(code: .unavailable, message: "no peers"))
        try await running(try await self.client(relay: relay)) { client in
            client.setReceiving(true)
            let events = client.events
            async let states = client.register(Self.device, with: [PushServer(key: server)], timeout: .milliseconds(300))
            for await event in events {
                if case .relayFailed = event { break }
            }
            _ = try await states
            let pause = try #require(client.nextTry(at: server))
            #expect(pause > .seconds(25) && pause <= .seconds(33))
        }
    }

    @Test func damagedRecordIsOneClearError() async throws {
        let store = MemoryClientStore(["own": [1, 2, 3]])
        await #expect(throws: ClientStoreError.self) { try await client(store: store) }
        #expect(try await store.load() == ["own": [1, 2, 3]])
    }

    @Test func recordsHoldEverythingOverARestart() async throws {
        let servers = [network.addServer(), network.addServer()]
        let (bob, store) = (PrivateKey.generate(), MemoryClientStore())
        try await registered(with: servers, bob, store: store)
        let friend = PrivateKey.generate()
        try await registered(with: [servers[0]], friend)
        let before = try await running(try await client(bob, store: store)) { client in
            client.setSending(true)
            let outcomes = try await client.notify(message(to: friend.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: servers[0])])
            return client
        }
        let after = try await client(bob, store: store)
        #expect(after.isSending && after.isReceiving && after.installationID == before.installationID)
        #expect(after.registrations == before.registrations && after.contacts == before.contacts)
        #expect(after.devices(of: friend.publicKey) == before.devices(of: friend.publicKey))
    }
}
