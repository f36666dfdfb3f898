import Core
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushClient

/// Behaviour that the clients of both versions share, with real encryption and signatures, against servers with the same.
@Suite(.timeLimit(.minutes(5))) struct BothClientsTests {
    private let network = TestNetwork()

    @Test(arguments: ClientVersion.allCases) func registersAdvertisesDiscoversAndNotifies(version: ClientVersion) async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(version, with: [server], bob)
        let relay = network.relay()
        try await network.client(version, relay: relay).whileRunning { alice in
            alice.setSending(true)
            let devices = try await alice.discover(bob.publicKey, timeout: .seconds(10))
            #expect(devices.map(\.server) == [server] && devices.allSatisfy(\.isTokenKnown))
            for _ in 0..<2 {
                let outcomes = try await alice.notify(.to(bob.publicKey))
                #expect(outcomes.map(\.result) == [.notified(by: server)])
                // The same id notifies once.
                #expect(notifiedCount(version, by: server) == 1)
            }
        }
        #expect(network.notifiedCount(by: server) + network.v01NotifiedCount(by: server) == 1)
        // Each answer topic was confirmed before its question was published, and is watched only while the answer is awaited.
        #expect(relay.watchedTopics == [ContentTopic(TopicTag(of: StatusTopics.contactCode(bob.publicKey)))])
    }

    @Test(arguments: ClientVersion.allCases) func nextServerTakesOverFromOneThatDoesNotAnswer(version: ClientVersion) async throws {
        let servers = [network.addServer(), network.addServer()]
        let bob = PrivateKey.generate()
        try await network.register(version, with: servers, bob)
        network.change(servers[1]) { $0.isUp = false }
        try await network.client(version).whileRunning { alice in
            alice.setSending(true)
            let outcomes = try await alice.notify(.to(bob.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: servers[0])])
        }
    }

    @Test(arguments: ClientVersion.allCases) func contactsOnlyTokenReachesContactsAlone(version: ClientVersion) async throws {
        let server = network.addServer()
        let (alice, eve) = (PrivateKey.generate(), PrivateKey.generate())
        let bob = PrivateKey.generate()
        var profile = DeviceProfile.phone
        profile.contactsOnly = true
        profile.contacts = [alice.publicKey]
        try await network.register(version, profile, with: [server], bob)
        for (key, result) in [(alice, DeviceOutcome.Result.notified(by: server)), (eve, .notAllowed)] {
            try await network.client(version, key).whileRunning { client in
                client.setSending(true)
                let outcomes = try await client.notify(.to(bob.publicKey))
                #expect(outcomes.map(\.result) == [result])
            }
        }
    }

    @Test(arguments: ClientVersion.allCases) func answerThatItsServerDidNotSignIsNotBelieved(version: ClientVersion) async throws {
        let server = network.addServer()
        network.change(server) { $0.signer = .generate() }
        try await network.client(version).whileRunning { client in
            let states = try await client.register(.phone, with: [server], enablesReceiving: true, timeout: .milliseconds(500))
            #expect(states == [server: .pending(tries: 0)])
        }
    }

    /// Topics of answers are few: that of a question may be the one of the answers to registrations.
    @Test(arguments: ClientVersion.allCases) func topicOfRegistrationsOutlivesAQuestionOnIt(version: ClientVersion) async throws {
        let server = network.addServer()
        let relay = network.relay()
        try await network.client(version, relay: relay).whileRunning { client in
            try await client.register(with: [server], enablesReceiving: true)
            let driver = try #require(client as? any ClientDriver)
            switch driver {
            case let driver as StatusPushClient:
                driver.routes.end(driver.routes.add(.query(1, .generate(), messageID: []), on: driver.ownTopic))
            case let driver as StatusV01PushClient:
                driver.routes.end(driver.routes.add(.query(1, .generate()), on: driver.ownTopic))
            default: Issue.record("an unknown client")
            }
            #expect(relay.watchedTopics.contains(driver.ownTopic))
        }
    }

    @Test(arguments: ClientVersion.allCases) func neitherRegistersNorSendsBeforeBothAreSwitchedOn(version: ClientVersion) async throws {
        let server = network.addServer()
        try await network.client(version).whileRunning { [network] client in
            #expect(!client.isReceiving && !client.isSending)
            await #expect(throws: PushClientError.self) { try await client.register(with: [server]) }
            await #expect(throws: PushClientError.self) { try await client.notify(.to(server)) }
            #expect(network.published.isEmpty)
        }
    }

    // MARK: Topics with many messages

    /// Messages that nobody can read, published from `start` on.
    private func flood(_ topic: ContentTopic, _ count: Int = 2_000, from start: Timestamp) {
        for index in 0..<count {
            network.spread(WakuMessage(payload: [1], contentTopic: topic, timestamp: start + .milliseconds(index)))
        }
    }

    @Test(arguments: ClientVersion.allCases) func olderMessagesDoNotHideAnAdvertisement(version: ClientVersion) async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        flood(ClientNetwork.contactCodeTopic(bob.publicKey), from: .now() - .seconds(24 * 3600))
        try await network.register(version, with: [server], bob)
        try await network.client(version).whileRunning { alice in
            let found = try await alice.discover(bob.publicKey, timeout: .seconds(60))
            #expect(found.map(\.server) == [server])
        }
    }

    /// Newer messages on one topic hide neither the advertisement on another, nor that the look-up of theirs is not over.
    @Test(arguments: ClientVersion.allCases) func newerMessagesHideTheAdvertisementOnTheirTopicOnly(version: ClientVersion) async throws {
        let server = network.addServer()
        let (bob, carol, store) = (PrivateKey.generate(), newKey(), MemoryClientStore())
        // The look-up of both is one query.
        try await network.client(version, store: store).whileRunning { alice in
            for friend in [bob.publicKey, carol] {
                await #expect(throws: PushClientError.self) { try await alice.discover(friend, timeout: .seconds(60)) }
            }
            await alice.waitUntilStored(timeout: .seconds(60))
        }
        try await network.register(version, with: [server], bob)
        flood(ClientNetwork.contactCodeTopic(carol), 2_001, from: .now())
        let relay = network.relay()
        try await network.client(version, store: store, relay: relay).whileRunning { alice in
            let found = try await alice.discover(bob.publicKey, timeout: .seconds(60))
            #expect(found.map(\.server) == [server])
            try await eventually { relay.lookUpCount > 40 }
            // It is not known that she has no server.
            let none = try await alice.discover(carol, timeout: .milliseconds(500))
            #expect(none.isEmpty)
        }
    }

    /// The message waits for `run()` when sending is switched off.
    @Test(arguments: ClientVersion.allCases) func nothingIsSentAfterSendingWasSwitchedOff(version: ClientVersion) async throws {
        let client = try await network.client(version)
        client.setSending(true)
        let notifying = Task { try await client.notify(.to(newKey())) }
        for _ in 0..<200 { await Task.yield() }
        client.setSending(false)
        try await client.whileRunning { _ in
            let error = await #expect(throws: PushClientError.self) { try await notifying.value }
            #expect(error?.code == .notEnabled)
        }
    }

    private func notifiedCount(_ version: ClientVersion, by server: PublicKey) -> Int {
        version == .deployed ? network.notifiedCount(by: server) : network.v01NotifiedCount(by: server)
    }

    /// A message that is cancelled while the store fails is not sent once the store works again.
    @Test(arguments: ClientVersion.allCases) func cancelledMessageIsNotSentByAStoreThatRecovers(version: ClientVersion) async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(version, with: [server], bob)
        let store = FailingStore()
        try await network.client(version, store: store).whileRunning { client in
            client.setSending(true)
            _ = try await client.discover(bob.publicKey, timeout: .seconds(60))
            await client.waitUntilStored(timeout: .seconds(60))
            store.setFailing(true)
            let notifying = Task { try await client.notify(.to(bob.publicKey)) }
            let driver = try #require(client as? any ClientDriver)
            try await eventually { driver.hasUnpublishedRequest }
            notifying.cancel()
            #expect(try await notifying.value.map(\.result) == [.gaveUp(.cancelled)])
            store.setFailing(false)
            // Requests are sent in their order.
            let outcomes = try await client.notify(.to(bob.publicKey, id: [2]))
            #expect(outcomes.map(\.result) == [.notified(by: server)])
        }
        #expect(notifiedCount(version, by: server) == 1)
    }

    /// The subscription was still to begin.
    @Test(arguments: ClientVersion.allCases) func forgottenRegistrantsTopicIsNotSubscribed(version: ClientVersion) async throws {
        let (forgotten, kept, store, relay) = (newKey(), newKey(), FailingStore(), network.relay())
        try await network.client(version, store: store, relay: relay).whileRunning { client in
            await client.waitUntilStored(timeout: .seconds(60))
            store.setFailing(true)
            let driver = try #require(client as? any ClientDriver)
            driver.watch(forgotten)
            driver.forgetAll(about: forgotten)
            driver.watch(kept)
            store.setFailing(false)
            try await eventually { relay.watchedTopics == [ClientNetwork.contactCodeTopic(kept)] }
        }
    }

    /// A message that is cancelled while its request waits for the subscription to the answer is not sent after it.
    @Test(arguments: ClientVersion.allCases) func messageThatIsCancelledBeforeItsPublicationIsNotSent(version: ClientVersion) async throws {
        let server = network.addServer()
        let bob = PrivateKey.generate()
        try await network.register(version, with: [server], bob)
        let relay = network.relay()
        try await network.client(version, relay: relay).whileRunning { client in
            client.setSending(true)
            _ = try await client.discover(bob.publicKey, timeout: .seconds(60))
            try await eventually { relay.confirmingCount == 0 }
            relay.setConfirming(false)
            let notifying = Task { try await client.notify(.to(bob.publicKey)) }
            try await eventually { relay.confirmingCount == 1 }
            client.setSending(false)
            #expect(try await notifying.value.map(\.result) == [.gaveUp(.cancelled)])
            relay.setConfirming(true)
            try await eventually { relay.confirmingCount == 0 }
            client.setSending(true)
            let outcomes = try await client.notify(.to(bob.publicKey, id: [2]))
            #expect(outcomes.map(\.result) == [.notified(by: server)])
        }
        #expect(notifiedCount(version, by: server) == 1)
    }

    @Test(arguments: ClientVersion.allCases) func registeringAfterUnregisteringSendsTheNewProfileOnly(version: ClientVersion) async throws {
        let server = network.addServer()
        var profile = DeviceProfile.phone
        profile.mutedChats = ["work"]
        try await network.client(version).whileRunning { [profile] client in
            try await client.register(.phone, with: [server], enablesReceiving: true)
            #expect(try await client.unregister(timeout: .seconds(30)) == [server: .unregistered])
            let states = try await client.register(profile, with: [server], enablesReceiving: true)
            // Versions 1 and 2 were the first record and its end.
            #expect(states == [server: .registered(version: 3)] && client.isReceiving)
        }
    }

    @Test(arguments: ClientVersion.allCases) func wantedServersAreThoseOfTheLastRegistration(version: ClientVersion) async throws {
        let servers = [network.addServer(), network.addServer()]
        try await network.client(version).whileRunning { [network] client in
            try await client.register(.phone, with: servers, enablesReceiving: true)
            network.change(servers[1]) { $0.isUp = false }
            try await client.register(.phone, with: [servers[0]])
            #expect(client.registrations[servers[1]] == .pending(tries: 0))
            #expect(client.wantedServers == [servers[0]])
            network.change(servers[1]) { $0.isUp = true }
            #expect(try await client.unregister(timeout: .milliseconds(300))[servers[0]] == .unregistered)
            #expect(client.wantedServers == [servers[0]])
        }
    }

    @Test(arguments: ClientVersion.allCases) func unregisteringDoesNotWaitForAMistypedServer(version: ClientVersion) async throws {
        let servers = [network.addServer(), network.addServer()]
        network.change(servers[1]) { $0.isUp = false }
        try await network.client(version).whileRunning { client in
            _ = try await client.register(.phone, with: servers, enablesReceiving: true, timeout: .milliseconds(300))
            try await client.register(.phone, with: [servers[0]])
            // It returns long before the time limit of the test.
            let states = try await client.unregister(timeout: .seconds(3600))
            #expect(states[servers[0]] == .unregistered)
            #expect(states[servers[1]] != .unregistered)
        }
    }

    @Test func anOutcomeNamesTheRegistrantThatHasNoDevice() {
        let key = newKey()
        let outcome = DeviceOutcome(registrant: key, installationID: nil, result: .gaveUp(.noDevice))
        #expect("\(outcome)" == "\(key) was not notified: no device is known")
    }

    @Test(arguments: ClientVersion.allCases) func messageIDsHaveALimit(version: ClientVersion) async throws {
        try await network.client(version).whileRunning { client in
            client.setSending(true)
            let id = [UInt8](repeating: 1, count: OutgoingNotification.messageIDByteLimit)
            let outcomes = try await client.notify(OutgoingNotification(messageID: id, chatID: "c", kind: .message, recipients: []))
            #expect(outcomes.isEmpty)
            await #expect(throws: PushClientError.self) { try await client.notify(.to(newKey(), id: id + [1])) }
        }
    }

    /// 16 KiB with a hash of a key.
    @Test(arguments: ClientVersion.allCases) func contentsHaveALimit(version: ClientVersion) async throws {
        let limit = (16 << 10) - (version == .deployed ? KeyHash.byteCount : V01.KeyHash.byteCount)
        try await network.client(version).whileRunning { client in
            client.setSending(true)
            for (byteCount, isTaken) in [(limit, true), (limit + 1, false)] {
                let message = OutgoingNotification(
                    messageID: [1], chatID: "c", kind: .message, content: [UInt8](repeating: 1, count: byteCount), recipients: [])
                let outcomes = try? await client.notify(message)
                #expect((outcomes != nil) == isTaken)
            }
        }
    }

    /// As after a kill, unfinished requests and look-ups resume at once.
    @Test(arguments: ClientVersion.allCases) func secondRunGoesOnWhereTheFirstWasCancelled(version: ClientVersion) async throws {
        let servers = [network.addServer(), network.addServer()]
        let friend = PrivateKey.generate()
        try await network.register(version, with: [servers[1]], friend)
        let relay = network.relay()
        relay.setConfirming(false)
        let client = try await network.client(version, relay: relay)
        try await client.whileRunning { client in
            let states = try await client.register(
                .phone, with: [servers[0]], enablesReceiving: true, timeout: .milliseconds(300))
            #expect(states == [servers[0]: .pending(tries: 0)])
            let before = try await client.discover(friend.publicKey, timeout: .milliseconds(300))
            #expect(before.isEmpty)
        }
        relay.setConfirming(true)
        try await client.whileRunning { client in
            client.setSending(true)
            let states = try await client.register(.phone, with: [servers[0]], enablesReceiving: false, timeout: .seconds(20))
            #expect(states == [servers[0]: .registered(version: 1)])
            let after = try await client.discover(friend.publicKey, timeout: .seconds(20))
            #expect(after.map(\.server) == [servers[1]])
            let outcomes = try await client.notify(.to(friend.publicKey))
            #expect(outcomes.map(\.result) == [.notified(by: servers[1])])
        }
    }

    @Test(arguments: ClientVersion.allCases) func pendingChangesOutliveACancelledRun(version: ClientVersion) async throws {
        let (identity, store) = (PrivateKey.generate(), FailingStore())
        store.setFailing(true)
        let client = try await network.client(version, identity, store: store)
        // Consecutive failures are reported once, possibly before any other code runs.
        let events = client.events
        try await client.whileRunning { client in
            client.setSending(true)
            for await event in events {
                if case .storeFailed = event { return }
            }
        }
        // The attempt at the end of the run failed, too.
        for await event in events {
            if case .storeFailed = event { break }
        }
        #expect(try await store.load().isEmpty)
        store.setFailing(false)
        #expect(try await client.whileRunning { await $0.waitUntilStored(timeout: .seconds(60)) })
        #expect(try await network.client(version, identity, store: store).isSending)
    }

    /// As advertisements of many contacts do after the start.
    @Test(arguments: ClientVersion.allCases)
    func recordThatChangesDuringACommitIsStoredByTheNextOneAlone(version: ClientVersion) async throws {
        let store = RecordingStore()
        let client = try await network.client(version, store: store)
        let driver = try #require(client as? any ClientDriver)
        store.setDuringCommit { if $0 <= 10 { driver.watch(newKey()) } }
        client.setSending(true)
        try await client.whileRunning { _ in try await eventually { store.commits.count >= 11 } }
        #expect(store.commits.dropFirst().prefix(10).allSatisfy { $0.count == 1 })
        #expect(try await store.load().count == 11)
    }

    @Test(arguments: ClientVersion.allCases)
    func recordThatChangesDuringAFailedCommitIsStoredWithThoseOfThatCommit(version: ClientVersion) async throws {
        let store = RecordingStore()
        let client = try await network.client(version, store: store)
        let driver = try #require(client as? any ClientDriver)
        store.setDuringCommit { number throws(ClientStoreError) in
            guard number == 1 else { return }
            driver.watch(newKey())
            throw ClientStoreError(code: .unavailable, message: "the disk is full")
        }
        client.setSending(true)
        try await client.whileRunning { _ in try await eventually { store.commits.count >= 2 } }
        #expect(store.commits[0].count == 1 && store.commits[1].isStrictSuperset(of: store.commits[0]))
        #expect(try await store.load().keys.contains { !store.commits[0].contains($0) })
    }

    /// A query is about ten contacts.
    @Test(arguments: ClientVersion.allCases)
    func aFailedQueryOfTheStoreLeavesTheOtherContactsLookedUp(version: ClientVersion) async throws {
        let server = network.addServer()
        let identity = PrivateKey.generate()
        let store = MemoryClientStore()
        // In the order of the queries, of which the last is sent first.
        let friends = (0..<11).map { _ in PrivateKey.generate() }.sorted {
            $0.publicKey.uncompressed.lexicographicallyPrecedes($1.publicKey.uncompressed)
        }
        try await network.client(version, identity, store: store).whileRunning { client in
            for friend in friends { _ = try? await client.discover(friend.publicKey, timeout: .zero) }
            await client.waitUntilStored(timeout: .seconds(60))
        }
        try await network.register(version, with: [server], friends[0])
        let relay = network.relay()
        relay.setUnreadable(ContentTopic(TopicTag(of: StatusTopics.contactCode(friends[10].publicKey))))
        let client = try await network.client(version, identity, store: store, relay: relay)
        let events = client.events
        let run = Task { await client.run() }
        for await event in events {
            if case .discovered(friends[0].publicKey, deviceCount: 1) = event { break }
        }
        run.cancel()
        await run.value
    }

    /// One topic with many messages, or a slow store, holds only its own look-up.
    @Test(arguments: ClientVersion.allCases) func lookUpEndsBeforeTheQueriesAboutOtherContacts(version: ClientVersion) async throws {
        let (identity, store) = (PrivateKey.generate(), MemoryClientStore())
        // As above.
        let friends = (0..<11).map { _ in newKey() }.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        try await network.client(version, identity, store: store).whileRunning { client in
            for friend in friends { _ = try? await client.discover(friend, timeout: .zero) }
            await client.waitUntilStored(timeout: .seconds(60))
        }
        let relay = network.relay()
        relay.setHeld(ClientNetwork.contactCodeTopic(friends[0]))
        try await network.client(version, identity, store: store, relay: relay).whileRunning { client in
            // Its look-up found nothing.
            let error = await #expect(throws: PushClientError.self) { try await client.discover(friends[10], timeout: .seconds(30)) }
            #expect(error?.code == .noServerKnown)
        }
    }

    /// Each failed query takes until the store's time-out.
    @Test func storeThatFailsOftenIsNotQueriedAnyMore() async {
        let relay = network.relay()
        relay.setFailingEveryOtherLookUp()
        let registrants = (0..<200).map { _ in newKey() }
        let ended = Mutex<[PublicKey]>([])
        await ClientNetwork(relay: relay, pubsubTopic: .statusDefault).lookUpContactCodes(of: registrants) { _, _ in
            false
        } end: { registrants, _ in
            ended.withLock { $0 += registrants }
        }
        let all = ended.withLock { $0 }
        #expect(relay.lookUpCount == 10 && all.count == registrants.count && Set(all) == Set(registrants))
    }

    @Test(arguments: ClientVersion.allCases) func eventsEndWhenTheClientIsReleased(version: ClientVersion) async throws {
        func eventsOfAFormerClient() async throws -> AsyncStream<PushClientEvent> {
            let client = try await network.client(version)
            let events = client.events
            try await client.whileRunning { _ in }
            return events
        }
        for await _ in try await eventsOfAFormerClient() {}
    }

    @Test(arguments: ClientVersion.allCases) func secondRunWaitsForTheEndOfTheFirst(version: ClientVersion) async throws {
        let server = network.addServer()
        let relay = network.relay()
        let client = try await network.client(version, relay: relay)
        let events = client.events
        let runs = (0..<2).map { _ in Task { await client.run() } }
        let states = try await client.register(.phone, with: [server], enablesReceiving: true)
        #expect(states == [server: .registered(version: 1)])
        for await event in events {
            if case .advertised(rowCount: 1) = event { break }
        }
        // Each message once.
        #expect(relay.publishedTopics.count == 2)
        runs[0].cancel()
        await runs[0].value
        #expect(try await client.unregister(timeout: .seconds(30)) == [server: .unregistered])
        runs[1].cancel()
        await runs[1].value
    }
}

extension ClientDriver {
    fileprivate func forgetAll(about registrant: PublicKey) {
        turn { machine, _ in machine.forget(registrant) }
    }

    fileprivate func watch(_ registrant: PublicKey) {
        turn { machine, _ in machine.watch(registrant) }
    }

    fileprivate var hasUnpublishedRequest: Bool {
        let tickets = runner.read { machine, _ in Array(machine.notifications.requests.keys) }
        return tickets.contains { isAwaitingPublication($0) }
    }
}
