import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import PushClient

/// Rules of registering.
@Suite struct RegisteringTests {
    private let servers = (0..<3).map { _ in newKey() }

    private func list(_ count: Int = 1) -> [PushServer] { servers.prefix(count).map { PushServer(key: $0) } }

    private func registered(_ count: Int = 1, _ profile: DeviceProfile = .phone) -> MachineBench {
        var bench = MachineBench()
        bench.take(bench.machine.register(profile, with: list(count)))
        for sent in bench.publishAll().registrations { bench.answer(sent) }
        _ = bench.publishAll()
        return bench
    }

    @Test func newClientSendsNothing() {
        var bench = MachineBench()
        bench.pass(.seconds(48 * 3600))
        #expect(bench.actions.isEmpty && bench.machine.nextWakeUp == nil)
    }

    @Test func sameRegistrationGoesToAllServers() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list(3)))
        // The account's other devices advertise on its own topic.
        #expect(bench.actions.contains(.watch([bench.publicKey])))
        let sent = bench.publishAll().registrations
        #expect(Set(sent.map(\.server)) == Set(servers))
        var registrations = try sent.map { try bench.registration($0.sealed) }
        #expect(Set(registrations.map(\.grant)).count == 3)
        for index in registrations.indices { registrations[index].grant = [] }
        #expect(Set(registrations).count == 1)
        #expect(registrations[0].version == 1 && registrations[0].installationID == bench.installationID)
    }

    @Test func registrationBeforeTheStartIsSentOnce() {
        let bench = MachineBench()
        var machine = ClientMachine(
            installationID: bench.installationID, cryptography: ValueCryptography(publicKey: bench.publicKey, sealed: bench.sealed),
            at: bench.now)
        machine.register(.phone, with: list(1))
        #expect(machine.settle(at: bench.now).actions.registrations.isEmpty)
        machine.start(at: bench.now)
        #expect(machine.settle(at: bench.now).actions.registrations.count == 1)
    }

    @Test func threeAtRandomAreTakenFromALongerDefaultList() {
        let list = (0..<10).map { _ in PushServer(key: newKey()) }
        var generator = SeededGenerator(seed: 1)
        let chosen = Set((0..<20).map { _ in Set(PushServer.choose(from: list, using: &generator)) })
        #expect(chosen.allSatisfy { $0.count == 3 && $0.isSubset(of: Set(list)) } && chosen.count > 1)
        #expect(PushServer.choose(from: Array(list.prefix(2)), using: &generator) == Array(list.prefix(2)))
    }

    @Test func versionGrowsWithEveryChangeAlsoAfterRestart() throws {
        var bench = registered()
        var versions: [UInt64] = []
        for number in 0..<3 {
            bench.restart()
            var profile = DeviceProfile.phone
            profile.deviceToken = DeviceToken("token-\(number)")
            bench.take(bench.machine.register(profile, with: list()))
            let sent = try #require(bench.publishAll().registrations.first)
            versions.append(try bench.registration(sent.sealed).version)
            bench.answer(sent)
        }
        #expect(versions == [2, 3, 4])
    }

    @Test func nothingIsSentWhenNothingChanged() {
        var bench = registered(3)
        _ = bench.takeActions()
        bench.take(bench.machine.register(.phone, with: list(3).reversed()))
        var unlisted = DeviceProfile.phone
        unlisted.contacts = [newKey()]
        bench.take(bench.machine.register(unlisted, with: list(3)))
        bench.restart()
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test(arguments: [true, false]) func aServerThatLostTheRegistrationGetsItAgain(byRequest: Bool) throws {
        var bench = registered(2)
        _ = bench.takeActions()
        if byRequest {
            bench.take(bench.machine.register(.phone, with: list(2), again: true))
        } else {
            bench.take(bench.machine.registrations.lost(by: servers[1]))
        }
        let sent = bench.publishAll().registrations
        #expect(Set(sent.map(\.server)) == (byRequest ? Set(servers.prefix(2)) : [servers[1]]))
        for sent in sent {
            #expect(try bench.registration(sent.sealed).version == 2)
            bench.answer(sent)
        }
        _ = bench.publishAll()
        bench.take(bench.machine.register(.phone, with: list(2)))
        #expect(bench.publishAll().registrations.isEmpty)
    }

    /// The server that is registered with again may have lost the registration, and not accept it.
    @Test func formerServersAreKeptUntilOneThatIsAskedAgainHasAccepted() throws {
        var bench = registered(2)
        bench.take(bench.machine.register(.phone, with: list(1), again: true))
        var sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[0]])
        bench.answer(try #require(sent.first), .unsupportedTokenType)
        #expect(bench.publishAll().registrations.isEmpty)
        bench.take(bench.machine.register(.phone, with: list(1), again: true))
        sent = bench.publishAll().registrations
        bench.answer(try #require(sent.first))
        let left = bench.publishAll().registrations
        #expect(left.map(\.server) == [servers[1]])
        #expect(try bench.registration(try #require(left.first).sealed).unregister)
    }

    @Test func oneRegistrationIsOnItsWayUntilItWasAnswered() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        let first = try #require(bench.publishAll().registrations.first)
        var changed = DeviceProfile.phone
        changed.blockMentions = true
        bench.take(bench.machine.register(changed, with: list()))
        #expect(bench.publishAll().registrations.isEmpty)
        bench.answer(first)
        let second = try #require(bench.publishAll().registrations.first)
        #expect(try bench.registration(second.sealed).blockMentions)
        #expect(try bench.registration(second.sealed).version == 2)
    }

    /// 10 s for an answer; pauses of 15 s · n · 2^n plus at most a tenth; a day after the twelfth; then from the start.
    @Test func unansweredRegistrationsAreRepeatedAfterGrowingPauses() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        var times: [Timestamp] = []
        var sealed: Set<[UInt8]> = []
        while times.count < 14 {
            for sent in bench.publishAll().registrations {
                times.append(bench.now)
                sealed.insert(sent.sealed)
            }
            let next = try #require(bench.machine.nextWakeUp)
            bench.pass(next.since(bench.now))
        }
        let pauses = zip(times.dropFirst(), times).map { $0.since($1) - .seconds(10) }
        for n in 1...11 {
            let pause = Duration.seconds(15 * n * (1 << n))
            #expect(pauses[n - 1] >= pause && pauses[n - 1] <= pause + pause / 10)
        }
        #expect(pauses[11] == .seconds(24 * 3600))
        #expect(pauses[12] >= .seconds(30) && pauses[12] <= .seconds(33))
        #expect(zip(pauses.prefix(11).dropFirst(), pauses).allSatisfy { $0 > $1 })
        // Byte for byte the same.
        #expect(sealed.count == 1)
    }

    @Test func repetitionAfterRestartIsTheSameToTheByte() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        let first = try #require(bench.publishAll().registrations.first)
        bench.restart(after: .seconds(5))
        #expect(bench.publishAll().registrations.isEmpty)
        bench.pass(.seconds(60))
        #expect(bench.publishAll().registrations == [first])
    }

    @Test func registrationThatWasNotPublishedBeforeAKillGoesOutAtTheNextStart() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        let first = try #require(bench.takeActions().registrations.first)
        bench.restart()
        #expect(bench.takeActions().registrations == [first])
    }

    @Test func lateAnswerCounts() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        let sent = try #require(bench.publishAll().registrations.first)
        bench.pass(.seconds(25))
        bench.answer(sent)
        #expect(bench.publishAll().events.contains(.registered(with: servers[0], version: 1)))
        bench.pass(.seconds(3600))
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func answerOfAnotherServerIsNotBelieved() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        let sent = try #require(bench.publishAll().registrations.first)
        bench.answer(SentRegistration(server: servers[1], registration: sent.registration))
        #expect(bench.publishAll().events.isEmpty)
    }

    // MARK: VERSION_MISMATCH

    private func mismatched(
        _ bench: inout MachineBench, isRepeated: Bool = false
    ) throws -> (sent: SentRegistration<DeployedVersion>, query: SentQuery<DeployedVersion>) {
        bench.take(bench.machine.register(.phone, with: list()))
        let sent = try #require(bench.publishAll().registrations.first)
        if isRepeated {
            bench.pass(.seconds(60))
            #expect(bench.publishAll().registrations == [sent])
        }
        bench.answer(sent, .versionMismatch)
        return (sent, try #require(bench.publishAll().queries.first))
    }

    private func ownRow(_ bench: MachineBench, version: UInt64, grant: [UInt8]) -> PushNotificationQueryInfo {
        PushNotificationQueryInfo(
            accessToken: AccessToken("x"), installationID: bench.installationID, publicKey: KeyHash(of: bench.publicKey).bytes,
            allowedKeyList: [], grant: grant, version: version, serverPublicKey: [])
    }

    @Test func versionMismatchAsksTheServerAndContinuesAboveTheHigherVersion() throws {
        var bench = MachineBench()
        let (_, query) = try mismatched(&bench)
        #expect(query.registrant == bench.publicKey)
        bench.take(bench.machine.queryAnswered(query.ticket, by: servers[0], rows: [ownRow(bench, version: 41, grant: [])], at: bench.now))
        let second = try #require(bench.publishAll().registrations.first)
        #expect(try bench.registration(second.sealed).version == 42)
    }

    @Test func versionMismatchWithoutAnAnswerRaisesTheVersionByTwoFourAndMore() throws {
        var bench = MachineBench()
        _ = try mismatched(&bench)
        var versions: [UInt64] = []
        var times: [Timestamp] = []
        while versions.count < 4 {
            bench.pass(try #require(bench.machine.nextWakeUp).since(bench.now))
            for sent in bench.publishAll().registrations {
                versions.append(try bench.registration(sent.sealed).version)
                times.append(bench.now)
                bench.answer(sent, .versionMismatch)
                _ = bench.publishAll()
            }
        }
        #expect(versions == [3, 7, 15, 31])
        // A server that always answers VERSION_MISMATCH is retried with pauses.
        let pauses = zip(times.dropFirst(), times).map { $0.since($1) }
        #expect(pauses.allSatisfy { $0 >= .seconds(30) } && zip(pauses.dropFirst(), pauses).allSatisfy { $0 > $1 })
    }

    @Test func versionMismatchOfARepetitionIsSuccessWhenTheQueryShowsThisVersionAndGrant() throws {
        var bench = MachineBench()
        let (sent, query) = try mismatched(&bench, isRepeated: true)
        let registration = try bench.registration(sent.sealed)
        let row = ownRow(bench, version: registration.version, grant: registration.grant)
        bench.take(bench.machine.queryAnswered(query.ticket, by: servers[0], rows: [row], at: bench.now))
        let actions = bench.publishAll()
        #expect(actions.events.contains(.registered(with: servers[0], version: 1)) && actions.registrations.isEmpty)
        // The client may have been restored from a backup, and the server's registration be of before: the settings are sent again soon.
        bench.pass(RegistrationTiming.confirmation)
        let second = try #require(bench.publishAll().registrations.first)
        #expect(try bench.registration(second.sealed).version == 2)
        bench.answer(second)
        bench.pass(RegistrationTiming.confirmation)
        #expect(bench.publishAll().registrations.isEmpty)
    }

    /// The server has what another copy of the client's store registered: the version and the grant are the same, the settings are not.
    @Test func versionMismatchOfAFirstTryGoesOnAlthoughTheQueryShowsThisVersionAndGrant() throws {
        var bench = MachineBench()
        let (sent, query) = try mismatched(&bench)
        let registration = try bench.registration(sent.sealed)
        let row = ownRow(bench, version: registration.version, grant: registration.grant)
        bench.take(bench.machine.queryAnswered(query.ticket, by: servers[0], rows: [row], at: bench.now))
        let second = try #require(bench.publishAll().registrations.first)
        #expect(try bench.registration(second.sealed).version == registration.version + 1)
        bench.answer(second)
        #expect(bench.publishAll().events.contains(.registered(with: servers[0], version: registration.version + 1)))
    }

    @Test func queryAfterVersionMismatchBelievesThatServerOnly() throws {
        var bench = MachineBench()
        let (_, query) = try mismatched(&bench)
        bench.take(bench.machine.queryAnswered(query.ticket, by: servers[1], rows: [ownRow(bench, version: 9, grant: [])], at: bench.now))
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func versionMismatchCheckContinuesAfterARestart() throws {
        var bench = MachineBench()
        _ = try mismatched(&bench)
        bench.restart()
        let query = try #require(bench.publishAll().queries.first)
        bench.take(bench.machine.queryAnswered(query.ticket, by: servers[0], rows: [ownRow(bench, version: 5, grant: [])], at: bench.now))
        let sent = try #require(bench.publishAll().registrations.first)
        #expect(try bench.registration(sent.sealed).version == 6)
    }

    @Test func highestVersionEndsIt() throws {
        var bench = MachineBench()
        let (_, query) = try mismatched(&bench)
        bench.take(
            bench.machine.queryAnswered(query.ticket, by: servers[0], rows: [ownRow(bench, version: .max, grant: [])], at: bench.now))
        #expect(bench.publishAll().events.contains(.refused(by: servers[0], .versionExhausted)))
        // A server's claims do not affect other servers.
        bench.take(bench.machine.register(.phone, with: list(2)))
        let sent = try #require(bench.publishAll().registrations.first)
        #expect(try sent.server == servers[1] && bench.registration(sent.sealed).version == 1)
    }

    // MARK: Other errors

    @Test func internalErrorIsTriedAgainAfterAPause() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        let sent = try #require(bench.publishAll().registrations.first)
        bench.answer(sent, .internalError)
        #expect(bench.publishAll().registrations.isEmpty)
        bench.pass(.seconds(29))
        // A repeated answer does not begin another pause.
        bench.answer(sent, .internalError)
        #expect(bench.publishAll().registrations.isEmpty)
        bench.pass(.seconds(5))
        #expect(bench.publishAll().registrations == [sent])
    }

    @Test(arguments: [
        (PushNotificationRegistrationResponse.ErrorType.malformedMessage, RegistrationRefusal.malformedMessage),
        (.unsupportedTokenType, .unsupportedTokenType),
    ])
    func refusedRegistrationIsNotRepeatedUntilSomethingChanges(
        _ error: PushNotificationRegistrationResponse.ErrorType, _ reason: RegistrationRefusal
    ) throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        bench.answer(try #require(bench.publishAll().registrations.first), error)
        #expect(bench.publishAll().events == [.refused(by: servers[0], reason)])
        bench.pass(.seconds(7 * 24 * 3600))
        bench.restart()
        bench.take(bench.machine.register(.phone, with: list()))
        #expect(bench.publishAll().registrations.isEmpty)
        var changed = DeviceProfile.phone
        changed.deviceToken = DeviceToken("another")
        bench.take(bench.machine.register(changed, with: list()))
        #expect(bench.publishAll().registrations.count == 1)
    }

    @Test func refusedRegistrationIsRepeatedOnDemand() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        bench.answer(try #require(bench.publishAll().registrations.first), .malformedMessage)
        _ = bench.publishAll()
        // That the server does not have it is no news.
        bench.take(bench.machine.registrations.lost(by: servers[0]))
        #expect(bench.publishAll().registrations.isEmpty)
        bench.take(bench.machine.register(.phone, with: list(), again: true))
        bench.answer(try #require(bench.publishAll().registrations.first))
        #expect(bench.machine.registrations.servers[servers[0]]?.status == .registered(version: 2))
    }

    @Test(arguments: [true, false]) func pauseEndsOnDemand(byRequest: Bool) throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        bench.answer(try #require(bench.publishAll().registrations.first), .internalError)
        #expect(bench.machine.registrations.servers[servers[0]]?.status == .pending(tries: 1))
        _ = bench.publishAll()
        if byRequest {
            bench.take(bench.machine.register(.phone, with: list(), again: true))
        } else {
            bench.take(bench.machine.registrations.lost(by: servers[0]))
        }
        let sent = try #require(bench.publishAll().registrations.first)
        #expect(bench.machine.registrations.servers[servers[0]]?.status == .pending(tries: 0))
        bench.answer(sent)
        #expect(bench.machine.registrations.servers[servers[0]]?.status == .registered(version: 2))
    }

    @Test(arguments: [false, true]) func deviceIsAdvertisedWhileItIsRegisteredAgain(isPaused: Bool) throws {
        var bench = registered()
        var sent: [SentRegistration<DeployedVersion>] = []
        for _ in 0..<(isPaused ? 2 : 1) {
            if let first = sent.last { bench.answer(first, .internalError) }
            bench.take(bench.machine.register(.phone, with: list(), again: true))
            sent = bench.publishAll().registrations
        }
        #expect(bench.machine.advertisement(at: bench.now).pushNotificationInfo.map(\.version) == [1])
        bench.answer(try #require(sent.last))
        #expect(bench.machine.advertisement(at: bench.now).pushNotificationInfo.map(\.version) == [isPaused ? 3 : 2])
    }

    /// The user switches receiving off while the relay is away.
    @Test func aRegistrationThatWasNotPublishedIsNotSentOnceTheSettingsChanged() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        let first = bench.takeActions()
        var profile = DeviceProfile.phone
        profile.deviceToken = DeviceToken("another-token")
        bench.take(bench.machine.register(profile, with: list()))
        for action in first { bench.publish(action, isPublished: false) }
        let second = bench.takeActions()
        #expect(try second.registrations.map { try bench.registration($0.sealed).deviceToken } == [profile.deviceToken])
        bench.take(bench.machine.setReceiving(false))
        for action in second { bench.publish(action, isPublished: false) }
        #expect(try bench.takeActions().registrations.map { try bench.registration($0.sealed).unregister } == [true])
    }

    /// The process ended during the publication, or before it.
    @Test(arguments: [false, true]) func anUnsentRegistrationIsNotSentAfterARestartOnceTheSettingsChanged(isRestartFirst: Bool) throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        if isRestartFirst {
            // The settings change before the start.
            var machine = ClientMachine(
                records: Array(bench.stored.values), installationID: InstallationID("another"),
                cryptography: ValueCryptography(publicKey: bench.publicKey, sealed: bench.sealed), at: bench.now)
            machine.setReceiving(false)
            bench.take(machine.settle(at: bench.now))
        } else {
            bench.take(bench.machine.setReceiving(false))
        }
        bench.restart()
        #expect(try bench.takeActions().registrations.map { try bench.registration($0.sealed).unregister } == [true])
    }

    @Test func relayThatRefusesCostsNoTry() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list()))
        for _ in 0..<20 {
            for action in bench.takeActions() { bench.publish(action, isPublished: false) }
            bench.pass(try #require(bench.machine.nextWakeUp).since(bench.now))
        }
        bench.answer(try #require(bench.publishAll().registrations.first))
        #expect(bench.publishAll().events.contains(.registered(with: servers[0], version: 1)))
        #expect(!bench.actions.events.contains { if case .willRetry = $0 { true } else { false } })
    }

    // MARK: Access tokens

    private func tokens(_ profiles: [DeviceProfile]) throws -> [AccessToken] {
        var bench = MachineBench()
        return try profiles.map { profile in
            bench.take(bench.machine.register(profile, with: list()))
            let sent = try #require(bench.publishAll().registrations.first)
            bench.answer(sent)
            return try bench.registration(sent.sealed).accessToken
        }
    }

    @Test func removedContactMakesANewAccessToken() throws {
        let (ada, bob) = (newKey(), newKey())
        var profiles = [DeviceProfile.phone, .phone, .phone]
        for index in profiles.indices { profiles[index].contactsOnly = true }
        profiles[0].contacts = [ada]
        profiles[1].contacts = [ada, bob]
        profiles[2].contacts = [bob]
        let tokens = try tokens(profiles)
        #expect(tokens[0] == tokens[1] && tokens[1] != tokens[2])
    }

    @Test func contactsOnlySwitchedOnMakesANewAccessTokenAndSwitchedOffKeepsIt() throws {
        var only = DeviceProfile.phone
        only.contactsOnly = true
        let tokens = try tokens([.phone, only, .phone])
        #expect(tokens[0] != tokens[1] && tokens[1] == tokens[2])
    }

    @Test func changedOptionsKeepTheAccessToken() throws {
        var muted = DeviceProfile.phone
        muted.mutedChats = ["a chat"]
        muted.isEnabled = false
        let tokens = try tokens([.phone, muted])
        #expect(tokens[0] == tokens[1])
    }

    @Test func contactsGetTheTokenSealedOnlyWhenContactsOnly() throws {
        var profile = DeviceProfile.phone
        profile.contacts = [newKey(), newKey()]
        var bench = registered(1, profile)
        profile.contactsOnly = true
        bench.take(bench.machine.register(profile, with: list()))
        let sent = try #require(bench.publishAll().registrations.first)
        let registration = try bench.registration(sent.sealed)
        #expect(registration.allowFromContactsOnly && registration.allowedKeyList.count == 2)
    }

    /// Some servers would give the token to everyone if the list were empty, as it was in contents of earlier releases.
    @Test(arguments: [false, true]) func contactsOnlyWithoutContactsGivesNobodyTheToken(isEarlierRelease: Bool) throws {
        var profile = DeviceProfile.phone
        profile.contactsOnly = true
        var bench = isEarlierRelease ? registered(1, profile) : MachineBench()
        bench.machine.own.content?.allowedKeyList = []
        let before = bench.machine.own.content?.accessToken
        bench.take(bench.machine.register(profile, with: list()))
        let registration = try bench.registration(try #require(bench.publishAll().registrations.first).sealed)
        let own = ValueCryptography(publicKey: bench.publicKey, sealed: bench.sealed).seal(registration.accessToken, for: bench.publicKey)
        #expect(registration.allowFromContactsOnly && registration.allowedKeyList == [own])
        #expect(registration.accessToken != before)
        bench.take(bench.machine.register(profile, with: list()))
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func everyOptionIsRegistered() throws {
        var profile = DeviceProfile(platform: .firebase, deviceToken: DeviceToken("token"))
        let author = newKey()
        profile.isEnabled = false
        profile.blockedChats = ["blocked"]
        profile.mutedChats = ["muted"]
        profile.blockedAuthors = [author]
        profile.blockMentions = true
        profile.mentionChats = ["mentions"]
        var bench = MachineBench()
        bench.take(bench.machine.register(profile, with: list()))
        let registration = try bench.registration(try #require(bench.publishAll().registrations.first).sealed)
        #expect(registration.platform == .firebase && !registration.enabled && registration.blockMentions)
        #expect(registration.blockedChatList == [StatusHashes.chat("blocked"), StatusHashes.author(author)])
        #expect(registration.mutedChatList == [StatusHashes.chat("muted")])
        #expect(registration.allowedMentionsChatList == [StatusHashes.chat("mentions")])
    }

    // MARK: Renewing

    private static let day = Duration.seconds(24 * 3600)

    /// Sent again between 27 and 30 days after the acceptance. Meanwhile the former version is advertised.
    @Test func registrationIsRenewedEveryMonth() throws {
        var bench = registered(2)
        var due: Set<Timestamp> = []
        for server in list(2).map(\.key) { due.insert(try #require(bench.machine.registrations.servers[server]?.nextWakeUp)) }
        #expect(due.count == 2 && due.allSatisfy { (Self.day * 27...Self.day * 30).contains($0.since(bench.now)) })
        for day in 0..<27 {
            if day == 20 { bench.restart() }
            bench.pass(Self.day)
            #expect(bench.publishAll().registrations.isEmpty)
        }
        var sent: [SentRegistration<DeployedVersion>] = []
        for _ in 0..<3 {
            bench.pass(Self.day)
            sent += bench.publishAll().registrations
        }
        // No server has answered: one registration was repeated, byte for byte.
        #expect(Set(sent).count == 2 && Set(sent.map(\.server)) == Set(servers.prefix(2)))
        let versions = try sent.map { try bench.registration($0.sealed).version }
        #expect(Set(versions) == [2])
        #expect(bench.machine.advertisement(at: bench.now).pushNotificationInfo.map(\.version) == [1, 1])
        for sent in Set(sent) { bench.answer(sent) }
        #expect(bench.publishAll().advertisements.last?.pushNotificationInfo.map(\.version) == [2, 2])
        bench.pass(Self.day * 26)
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func registrationIsRenewedAtTheStartAfterALongPause() throws {
        var bench = registered(1)
        bench.restart(after: Self.day * 60)
        let sent = try #require(bench.publishAll().registrations.first)
        #expect(try bench.registration(sent.sealed).version == 2)
    }

    /// A former client stored no time.
    @Test func registrationOfUnknownAgeIsRenewedWithinAMonth() throws {
        var bench = registered(1)
        guard case .server(var record) = bench.stored[.server(servers[0])] else {
            Issue.record("no record")
            return
        }
        record.accepted?.renewal = nil
        bench.stored[.server(servers[0])] = .server(record)
        bench.restart()
        #expect(bench.publishAll().registrations.isEmpty)
        bench.pass(Self.day * 30)
        #expect(!bench.publishAll().registrations.isEmpty)
    }

    @Test func unregisteredDeviceIsNotRenewed() throws {
        var bench = registered(1)
        bench.take(bench.machine.setReceiving(false))
        bench.answer(try #require(bench.publishAll().registrations.first))
        _ = bench.publishAll()
        bench.pass(Self.day * 60)
        #expect(bench.publishAll().registrations.isEmpty)
    }

    // MARK: Unregistering

    @Test func unregistersFromAllServersUntilAnswered() throws {
        var bench = registered(3)
        bench.take(bench.machine.setReceiving(false))
        let sent = bench.publishAll().registrations
        #expect(Set(sent.map(\.server)) == Set(servers))
        for one in sent { #expect(try bench.registration(one.sealed).unregister && bench.registration(one.sealed).version == 2) }
        bench.answer(sent[0])
        bench.pass(.seconds(60))
        #expect(Set(bench.publishAll().registrations) == Set(sent.dropFirst()))
        bench.restart()
        for one in sent.dropFirst() { bench.answer(one) }
        _ = bench.publishAll()
        bench.pass(.seconds(7 * 24 * 3600))
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func removedServerIsUnregisteredFrom() throws {
        var bench = registered(2)
        bench.take(bench.machine.register(.phone, with: list(1)))
        let sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[1]])
        #expect(try bench.registration(sent[0].sealed).unregister)
    }

    @Test func formerServerIsKeptUntilANewOneHasAccepted() throws {
        var bench = registered(1)
        let new = servers.dropFirst().map { PushServer(key: $0) }
        bench.take(bench.machine.register(.phone, with: new))
        var sent = bench.publishAll().registrations
        #expect(Set(sent.map(\.server)) == Set(new.map(\.key)))
        // One refuses, one is silent for days, over a restart: contacts still find the former server.
        bench.answer(try #require(sent.first { $0.server == servers[1] }), .unsupportedTokenType)
        bench.pass(.seconds(3 * 24 * 3600))
        bench.restart()
        let actions = bench.publishAll()
        #expect(!actions.registrations.contains { $0.server == servers[0] })
        #expect(actions.advertisements.last?.pushNotificationInfo.map(\.serverPublicKey) == [servers[0].compressed])
        #expect(bench.machine.registrations.servers[servers[0]]?.status == .registered(version: 1))
        bench.answer(try #require(sent.first { $0.server == servers[2] }))
        sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[0]])
        #expect(try bench.registration(try #require(sent.first).sealed).unregister)
    }

    @Test func keptServerIsLeftWhenTheDeviceIsUnregistered() throws {
        var bench = registered(1)
        bench.take(bench.machine.register(.phone, with: [PushServer(key: servers[1])]))
        _ = bench.publishAll()
        bench.take(bench.machine.setReceiving(false))
        let sent = try #require(bench.publishAll().registrations.first { $0.server == servers[0] })
        #expect(try bench.registration(sent.sealed).unregister)
    }

    @Test func keptServerThatIsWantedAgainGetsNothing() {
        var bench = registered(1)
        bench.take(bench.machine.register(.phone, with: [PushServer(key: servers[1])]))
        _ = bench.publishAll()
        bench.take(bench.machine.register(.phone, with: list(1)))
        #expect(!bench.publishAll().registrations.contains { $0.server == servers[0] })
    }

    @Test func registrationAfterUnregisteringHasAHigherVersion() throws {
        var bench = registered()
        bench.take(bench.machine.setReceiving(false))
        bench.answer(try #require(bench.publishAll().registrations.first))
        _ = bench.publishAll()
        bench.restart()
        bench.take(bench.machine.register(.phone, with: list()))
        let sent = try #require(bench.publishAll().registrations.first)
        #expect(try bench.registration(sent.sealed).version == 3)
    }

    @Test func serverThatWasNeverSentAnythingIsNotUnregisteredFrom() {
        var bench = MachineBench()
        bench.take(bench.machine.setReceiving(false))
        #expect(bench.publishAll().isEmpty)
    }

    @Test func dialectDeterminesTheTopic() throws {
        var bench = MachineBench()
        let server = PushServer(key: servers[0], dialect: .published)
        bench.take(bench.machine.register(.phone, with: [server]))
        guard case .register(_, let registration) = bench.actions.first(where: { if case .register = $0 { true } else { false } }) else {
            Issue.record("no registration")
            return
        }
        #expect(registration.dialect == .published)
    }
}
