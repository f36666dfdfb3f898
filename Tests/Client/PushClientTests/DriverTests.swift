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

    private func client(_ identity: PrivateKey = .generate(), store: any ClientStore = MemoryClientStore(), relay: TestRelay? = nil)
        async throws -> StatusPushClient
    {
        try await StatusPushClient.open(identity: identity, relays: [relay ?? network.relay()], store: store)
    }

    /// The installation's id is outside of the advertisement's signature.
    @Test func strangersCannotWithdrawADeviceUnderItsID() async throws {
        let server = network.addServer()
        let (bob, stranger) = (PrivateKey.generate(), PrivateKey.generate())
        try await network.register(.deployed, with: [server], bob)
        try await client().whileRunning { [network] alice in
            let device = try #require(try await alice.discover(bob.publicKey).first)
            func publish(signedBy owner: PrivateKey, wakuSigner: PrivateKey) {
                let data = SignedAdvertisement.encode(
                    ContactCodeAdvertisement(pushNotificationInfo: []), from: device.installationID, signedBy: owner)
                let topic = Recipient.topic(StatusTopics.contactCode(bob.publicKey))
                for message in EnvelopeSealing.seal(data, to: topic, wakuSigner: wakuSigner, at: .now()) { network.spread(message) }
            }
            publish(signedBy: bob, wakuSigner: stranger)
            publish(signedBy: stranger, wakuSigner: stranger)
            try await eventually { alice.advertisementFlaw(of: bob.publicKey) == .foreignSignature }
            #expect(alice.devices(of: bob.publicKey) == [device])
            publish(signedBy: bob, wakuSigner: bob)
            try await eventually { alice.devices(of: bob.publicKey).isEmpty }
        }
    }

    /// It is published in segments, each with its own message.
    @Test func longAdvertisementsAreRead() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        var configuration = StatusPushClient.Configuration()
        configuration.bundles = [[UInt8](repeating: 0, count: EnvelopeSealing.segmentByteLimit)]
        let relay = network.relay()
        let sender = try await StatusPushClient.open(
            identity: bob, relays: [relay], store: MemoryClientStore(), configuration: configuration)
        try await sender.whileRunning { client in
            let events = client.events
            try await client.register(.phone, with: [PushServer(key: server)], enablesReceiving: true)
            for await event in events where event == .advertised(rowCount: 1) { return }
        }
        #expect(relay.publishedTopics.map(\.topic).suffix(2).allSatisfy { $0 == relay.publishedTopics.last?.topic })
        try await client().whileRunning { alice in
            let devices = try await alice.discover(bob.publicKey, timeout: .seconds(60))
            #expect(devices.map(\.server) == [server] && alice.advertisementFlaw(of: bob.publicKey) == nil)
        }
    }

    @Test func invalidRegistrationsFailAtOnce() async throws {
        try await client().whileRunning { client in
            client.setReceiving(true)
            var flawed = DeviceProfile.phone
            flawed.apnTopic = ""
            for (profile, servers) in [(DeviceProfile.phone, []), (flawed, [PushServer(key: newKey())])] {
                do {
                    try await client.register(profile, with: servers)
                    Issue.record("it was taken")
                } catch {
                    #expect((error as? PushClientError)?.code == .invalid)
                }
            }
        }
    }

    /// Some servers would give the token to everyone if the list were empty.
    @Test func registrationForContactsOnlyHasAListWithoutContacts() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        let accessToken = AccessToken("11111111-1111-4111-8111-111111111111")
        var device = DeviceProfile(platform: .firebase, deviceToken: DeviceToken("token"))
        device.contactsOnly = true
        try await client(bob).whileRunning { [device] client in
            let error = try await client.register(
                device, as: InstallationID("phone"), accessToken: accessToken, version: 1, with: server, timeout: .seconds(60))
            let found = try await client.query(bob.publicKey, at: server, timeout: .seconds(60))
            #expect(error == nil && found.map(\.accessToken) == [accessToken])
        }
    }

    /// Servers drop requests for over 1,000 devices.
    @Test func oneShotRequestsForManyDevicesAreDivided() async throws {
        let server = network.addServer()
        let relay = network.relay()
        let notifications = (0..<2500).map { number in
            PushNotification(
                accessToken: AccessToken("token"), chatID: StatusHashes.chat("chat"), publicKey: KeyHash(of: server).bytes,
                installationID: InstallationID("device-\(number)"), message: [], kind: .message, author: [])
        }
        try await client(relay: relay).whileRunning { client in
            let reports = try await client.notify(notifications, messageID: [1], at: server, timeout: .seconds(60))
            #expect(reports.map(\.installationID) == notifications.map(\.installationID))
        }
        #expect(relay.publishedTopics.count == 3)
    }

    @Test func callsEndWhenTheClientDoesNotRunAnyMore() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(.deployed, with: [server], bob)
        network.change(server) { $0.isUp = false }
        let client = try await client()
        client.setSending(true)
        let running = Task { await client.run() }
        _ = try await client.discover(bob.publicKey)
        let published = network.published.count
        let notifying = Task { try await client.notify(.to(bob.publicKey)) }
        // The request is under way once it was published.
        while network.published.count == published { await Task.yield() }
        running.cancel()
        await #expect { try await notifying.value } throws: { ($0 as? PushClientError)?.code == .notRunning }
        await #expect { try await client.unregister() } throws: { ($0 as? PushClientError)?.code == .notRunning }
    }

    @Test func cancelledRegistrationIsNoResult() async throws {
        let server = network.addServer()
        network.change(server) { $0.isUp = false }
        try await client().whileRunning { client in
            let registering = Task { try await client.register(.phone, with: [PushServer(key: server)], enablesReceiving: true) }
            while client.registrations.isEmpty { await Task.yield() }
            registering.cancel()
            await #expect { try await registering.value } throws: { ($0 as? PushClientError)?.code == .cancelled }
        }
    }

    @Test func questionIsPublishedAfterItsAnswersTopicWasConfirmed() async throws {
        let server = network.addServer()
        let identity = PrivateKey.generate()
        let relay = network.relay()
        relay.setConfirming(false)
        try await client(identity, relay: relay).whileRunning { client in
            client.setReceiving(true)
            async let states = client.register(.phone, with: [PushServer(key: server)], timeout: .seconds(240))
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

    @Test func lateAnswerCounts() async throws {
        let server = network.addServer()
        network.change(server) { $0.holdsAnswers = true }
        try await client().whileRunning { [network] client in
            let events = client.events
            client.setReceiving(true)
            let early = try await client.register(.phone, with: [PushServer(key: server)], timeout: .milliseconds(300))
            #expect(early == [server: .pending(tries: 0)])
            network.release(server)
            for await event in events {
                if event == .registered(with: server, version: 1) { return }
            }
        }
    }

    @Test func refusingRelayIsReportedAndNothingIsLost() async throws {
        let server = network.addServer()
        let store = MemoryClientStore()
        let identity = PrivateKey.generate()
        let relay = network.relay()
        relay.setFailure(RelayError(code: .refused, message: "the node refuses this"))
        try await client(identity, store: store, relay: relay).whileRunning { client in
            let events = client.events
            client.setReceiving(true)
            async let states = client.register(.phone, with: [PushServer(key: server)], timeout: .milliseconds(500))
            for await event in events {
                if event == .relayFailed(reason: "the node refuses this") { break }
            }
            let settled = try await states
            #expect(settled == [server: .pending(tries: 0)])
        }
        #expect(try await client(identity, store: store).registrations == [server: .pending(tries: 0)])
    }

    @Test func resumesAfterAKill() async throws {
        let servers = [network.addServer(), network.addServer()]
        network.change(servers[1]) { $0.isUp = false }
        let store = MemoryClientStore()
        let identity = PrivateKey.generate()
        try await client(identity, store: store).whileRunning { client in
            client.setReceiving(true)
            try await client.register(.phone, with: servers.map { PushServer(key: $0) }, timeout: .seconds(1))
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
        try await client(identity, store: store).whileRunning { client in
            for friend in friends {
                let error = await #expect(throws: PushClientError.self) { try await client.discover(friend, timeout: .seconds(60)) }
                #expect(error?.code == .noServerKnown)
            }
        }
        try await network.register(.deployed, with: [server], .generate())
        let relay = network.relay()
        try await client(identity, store: store, relay: relay).whileRunning { client in
            try await eventually { relay.lookUpCount > 0 }
            #expect(relay.lookUpCount == 1 && Set(client.contacts) == Set(friends))
        }
        #expect(relay.lookUpCount == 1)
    }

    @Test func cancelledNotificationIsGivenUp() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(.deployed, with: [server], bob)
        network.change(server) { $0.isUp = false }
        let relay = network.relay()
        try await client(relay: relay).whileRunning { client in
            client.setSending(true)
            let notifying = Task { try await client.notify(.to(bob.publicKey)) }
            try await eventually { !relay.publishedTopics.isEmpty }
            notifying.cancel()
            let outcomes = try await notifying.value
            #expect(outcomes.allSatisfy { $0.result == .gaveUp(.cancelled) })
        }
    }

    @Test func cancelledNotificationDoesNotWaitForAStoreThatFails() async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(.deployed, with: [server], bob)
        let store = FailingStore()
        try await client(store: store).whileRunning { client in
            client.setSending(true)
            _ = try await client.discover(bob.publicKey)
            store.setFailing(true)
            let notifying = Task { try await client.notify(.to(bob.publicKey)) }
            notifying.cancel()
            #expect(try await notifying.value.map(\.result) == [.gaveUp(.cancelled)])
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
        try await client.whileRunning { client in
            client.setReceiving(true)
            async let states = client.register(.phone, with: [PushServer(key: server)])
            for await event in events {
                if case .storeFailed = event { break }
            }
            #expect(relay.publishedTopics.isEmpty)
            store.setFailing(false)
            let settled = try await states
            #expect(settled == [server: .registered(version: 1)])
        }
    }

    /// An app that returns to the foreground opens another client on the same store.
    @Test func settingsOfACancelledRunAreStored() async throws {
        let store = FailingStore()
        store.setFailing(true)
        let client = try await client(store: store)
        let events = client.events
        let running = Task { await client.run() }
        client.setSending(true)
        for await event in events {
            if case .storeFailed = event { break }
        }
        store.setFailing(false)
        running.cancel()
        await running.value
        #expect(try await self.client(store: store).isSending)
    }

    /// A program may end as soon as it has its answer.
    @Test func resultsOfCallsAreStoredBeforeTheyReturn() async throws {
        let server = network.addServer()
        let store = MemoryClientStore()
        let identity = PrivateKey.generate()
        for round in UInt64(1)...5 {
            try await client(identity, store: store).whileRunning { client in
                client.setReceiving(true)
                var profile = DeviceProfile.phone
                profile.mutedChats = ["\(round)"]
                try await client.register(profile, with: [PushServer(key: server)])
            }
            let kept = try await client(identity, store: store).registrations
            #expect(kept == [server: .registered(version: round)])
        }
    }

    @Test func nextTryIsReported() async throws {
        let server = network.addServer()
        let client = try await client()
        #expect(client.nextTry(at: server) == nil)
        let relay = network.relay()
        relay.setFailure(RelayError(code: .unavailable, message: "no peers"))
        try await self.client(relay: relay).whileRunning { client in
            client.setReceiving(true)
            let events = client.events
            async let states = client.register(.phone, with: [PushServer(key: server)], timeout: .milliseconds(300))
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
        try await network.register(.deployed, with: servers, bob, store: store)
        let friend = PrivateKey.generate()
        try await network.register(.deployed, with: [servers[0]], friend)
        let before = try await client(bob, store: store).whileRunning { client in
            client.setSending(true)
            let outcomes = try await client.notify(.to(friend.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: servers[0])])
            return client
        }
        let after = try await client(bob, store: store)
        #expect(after.isSending && after.isReceiving && after.installationID == before.installationID)
        #expect(after.registrations == before.registrations && after.contacts == before.contacts)
        #expect(after.devices(of: friend.publicKey) == before.devices(of: friend.publicKey))
    }
}
