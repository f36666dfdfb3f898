import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import PushClient

/// The client's rules of registering and advertising in version 0.1.
@Suite("Version 0.1, client: registering") struct V01RegisteringTests {
    private let servers = (0..<3).map { _ in newKey() }

    /// A bench registered with the first `serverCount` servers.
    private func registered(_ serverCount: Int = 1, _ profile: V01DeviceProfile = .phone) -> V01MachineBench {
        var bench = V01MachineBench()
        bench.register(profile, with: Array(servers.prefix(serverCount)))
        for sent in bench.publishAll().registrations { bench.answer(sent) }
        _ = bench.publishAll()
        return bench
    }

    private func preferences(_ bench: V01MachineBench, _ sent: SentRegistration<Version01>?) throws -> V01.Preferences {
        try #require(sent).preferences(of: bench.identity.publicKey)
    }

    // MARK: The same record

    @Test func sameRecordGoesToEveryServer() throws {
        var bench = V01MachineBench()
        bench.register(with: servers)
        let sent = bench.publishAll().registrations
        #expect(Set(sent.map(\.server)) == Set(servers) && Set(sent.map(\.register.payload)).count == 1)
        for sent in sent {
            let preferences = try preferences(bench, sent)
            #expect(preferences.version == 1 && preferences.accessToken.isUUID && !preferences.unregister)
            #expect(preferences.devices.map(\.installationID) == [bench.installationID])
            bench.answer(sent)
            #expect(bench.status(sent.server) == .registered(version: 1))
        }
    }

    @Test func registrationBeforeTheStartIsSentOnce() {
        let bench = V01MachineBench()
        var machine = V01Machine(installationID: bench.installationID, identity: bench.identity, at: bench.now)
        machine.registrations.register(.phone, with: [servers[0]])
        #expect(machine.settle(at: bench.now).actions.registrations.isEmpty)
        machine.start(at: bench.now)
        #expect(machine.settle(at: bench.now).actions.registrations.count == 1)
    }

    /// The process ended before the publication.
    @Test func anUnsentRecordIsNotSentAfterARestartOnceTheSettingsChanged() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        bench.take(bench.machine.setReceiving(false))
        bench.restart()
        let sent = bench.takeActions().registrations
        #expect(sent.count == 1)
        #expect(try preferences(bench, sent.first).unregister)
    }

    @Test func nothingIsSentWhenNothingChanged() {
        var bench = registered(2)
        bench.register(with: Array(servers.prefix(2)))
        #expect(bench.publishAll().registrations.isEmpty)
        bench.pass(.seconds(7 * 24 * 3600))
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func aRecordIsSentAgainWithAHigherVersion() throws {
        var bench = registered(2)
        bench.take(bench.machine.registrations.register(.phone, with: Array(servers.prefix(2)), again: true))
        let sent = bench.publishAll().registrations
        #expect(sent.count == 2)
        for sent in sent { #expect(try preferences(bench, sent).version == 2) }
    }

    @Test func eachChangeHasAHigherVersion() throws {
        var bench = registered(2)
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["spam"]
        bench.register(profile, with: Array(servers.prefix(2)))
        let sent = bench.publishAll().registrations
        #expect(sent.count == 2)
        for sent in sent {
            let preferences = try preferences(bench, sent)
            #expect(preferences.version == 2 && preferences.devices[0].filters?.blockedChatList == [V01.chatHash("spam")])
        }
    }

    /// A server returns the account's other devices only when the version is not above theirs.
    @Test func editBeforeTheFirstPublicationKeepsTheOtherDevices() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        for action in bench.takeActions() { bench.publish(action, isPublished: false) }
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["spam"]
        bench.register(profile, with: [servers[0]])
        let sent = try #require(bench.publishAll().registrations.first)
        let first = try preferences(bench, sent)
        #expect(first.version == 1 && first.devices[0].filters?.blockedChatList == [V01.chatHash("spam")])
        let stored = V01.Preferences(devices: [V01Account.device("tablet")], version: 1, accessToken: V01Account.newToken())
        bench.answer(sent, .versionMismatch, stored)
        let next = try preferences(bench, bench.publishAll().registrations.first)
        #expect(next.version == 2 && next.devices.map(\.installationID.string) == ["tablet", "own-device"])
    }

    @Test func versionOfAFarewellThatWasNotPublishedIsUsedAgain() throws {
        var bench = registered(2)
        bench.register(with: [servers[0]])
        for action in bench.takeActions() { bench.publish(action, isPublished: false) }
        bench.register(with: Array(servers.prefix(2)))
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["spam"]
        bench.register(profile, with: Array(servers.prefix(2)))
        #expect(try bench.publishAll().registrations.map { try preferences(bench, $0).version } == [2, 2])
    }

    @Test func answerShowsThatItsVersionWasPublished() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        // The relay confirms the publication later.
        bench.answer(try #require(bench.takeActions().registrations.first), .internalError)
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["spam"]
        bench.register(profile, with: [servers[0]])
        #expect(try preferences(bench, bench.publishAll().registrations.first).version == 2)
    }

    /// The change gets the version of the record that is being published.
    @Test func changeDuringAPublicationIsSentAfterIt() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let actions = bench.takeActions()
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["spam"]
        bench.register(profile, with: [servers[0]])
        for action in actions { bench.publish(action, isPublished: true) }
        bench.answer(try #require(actions.registrations.first))
        let sent = try #require(bench.publishAll().registrations.first)
        let next = try preferences(bench, sent)
        #expect(next.version == 2 && next.devices[0].filters?.blockedChatList == [V01.chatHash("spam")])
        bench.answer(sent)
        #expect(bench.status(servers[0]) == .registered(version: 2) && bench.publishAll().registrations.isEmpty)
    }

    /// The server may have the record that was being published, of the same version.
    @Test(arguments: [false, true]) func changeDuringAPublicationIsSentAtOnceAfterAKill(wasPublished: Bool) throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let former = try preferences(bench, bench.takeActions().registrations.first)
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["spam"]
        bench.register(profile, with: [servers[0]])
        bench.restart()
        if wasPublished { bench.answer(try #require(bench.publishAll().registrations.first), .versionMismatch, former) }
        let sent = try #require(bench.publishAll().registrations.first)
        let next = try preferences(bench, sent)
        #expect(next.version == (wasPublished ? 2 : 1) && next.devices.map(\.filters?.blockedChatList) == [[V01.chatHash("spam")]])
        bench.answer(sent)
        #expect(bench.status(servers[0]) == .registered(version: next.version) && bench.publishAll().registrations.isEmpty)
    }

    @Test func changeThatAnotherServerAcceptedDuringAPublicationIsSentAfterIt() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let first = bench.takeActions()
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["spam"]
        bench.register(profile, with: Array(servers.prefix(2)))
        bench.answer(try #require(bench.publishAll().registrations.first))
        #expect(bench.status(servers[1]) == .registered(version: 1))
        for action in first { bench.publish(action, isPublished: true) }
        bench.answer(try #require(first.registrations.first))
        let sent = bench.publishAll().registrations
        #expect(Set(sent.map(\.server)) == Set(servers.prefix(2)))
        for sent in sent {
            let next = try preferences(bench, sent)
            #expect(next.version == 2 && next.devices[0].filters?.blockedChatList == [V01.chatHash("spam")])
        }
    }

    @Test func serverThatIsAddedGetsTheSameRecord() throws {
        var bench = registered(1)
        bench.register(with: servers)
        let sent = bench.publishAll().registrations
        #expect(Set(sent.map(\.server)) == Set(servers.dropFirst()))
        #expect(try sent.map { try preferences(bench, $0).version } == [1, 1])
    }

    @Test func serverThatIsDroppedIsLeftAndMayBeAddedAgain() throws {
        var bench = registered(2)
        bench.register(with: [servers[0]])
        var sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[1]])
        let farewell = try preferences(bench, sent.first)
        #expect(farewell.unregister && farewell.version == 2 && farewell.devices.isEmpty)
        bench.answer(sent[0])
        #expect(bench.status(servers[1]) == .unregistered && bench.status(servers[0]) == .registered(version: 1))
        bench.register(with: Array(servers.prefix(2)))
        sent = bench.publishAll().registrations
        // The version is above that of the dropped server, and the same at both.
        #expect(Set(sent.map(\.server)) == Set(servers.prefix(2)))
        #expect(try sent.map { try preferences(bench, $0).version } == [3, 3])
    }

    @Test func formerServerIsKeptUntilANewOneHasAccepted() throws {
        var bench = registered(1)
        bench.register(with: [servers[1]])
        var sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[1]])
        bench.pass(.seconds(3600))
        let advertised = bench.publishAll().advertisements.last ?? bench.machine.advertisement(at: bench.now)
        #expect(advertised.info.map(\.publicKey) == [servers[0].compressed])
        #expect(bench.status(servers[0]) == .registered(version: 1))
        bench.answer(try #require(sent.first))
        sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[0]])
        #expect(try preferences(bench, sent.first).unregister)
        bench.answer(try #require(sent.first))
        // A server that was left is no reason to leave another one before it has accepted the device again.
        bench.register(with: [servers[0]])
        sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[0]])
        bench.answer(try #require(sent.first))
        #expect(bench.publishAll().registrations.map(\.server) == [servers[1]])
    }

    @Test func allFormerServersAreKeptUntilANewOneHasAccepted() throws {
        var bench = registered(2)
        bench.register(with: [servers[2]])
        let sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[2]])
        bench.answer(try #require(sent.first))
        #expect(Set(bench.publishAll().registrations.map(\.server)) == Set(servers.prefix(2)))
    }

    /// Record and farewell had the same version, so a new one is needed: the dropped server would refuse that version.
    @Test func serverThatWasDroppedWithAChangeMayBeAddedAgain() throws {
        var bench = registered(2)
        var profile = V01DeviceProfile.phone
        profile.blockedChats = ["spam"]
        bench.register(profile, with: [servers[0]])
        var sent = bench.publishAll().registrations
        #expect(try sent.map { try preferences(bench, $0).version } == [2, 2])
        for sent in sent { bench.answer(sent) }
        bench.register(profile, with: Array(servers.prefix(2)))
        sent = bench.publishAll().registrations
        #expect(try sent.map { try preferences(bench, $0).version } == [3, 3])
    }

    // MARK: VERSION_MISMATCH

    @Test func versionMismatchContinuesFromTheReturnedVersion() throws {
        var bench = V01MachineBench()
        bench.register(with: Array(servers.prefix(2)))
        let sent = bench.publishAll().registrations
        let stored = V01.Preferences(devices: [V01Account.device("tablet")], version: 41, accessToken: V01Account.newToken())
        bench.answer(sent[0], .versionMismatch, stored)
        let next = bench.publishAll().registrations
        #expect(next.map(\.server) == [sent[0].server])
        let preferences = try preferences(bench, next.first)
        #expect(preferences.version == 42)
        // The account's other device stays, and so does the token known to contacts.
        #expect(preferences.devices.map(\.installationID.string) == ["tablet", "own-device"])
        #expect(preferences.accessToken == stored.accessToken)
        // The other server gets the new record once it answered the old one.
        bench.answer(sent[1])
        let other = bench.publishAll().registrations
        #expect(other.map(\.server) == [sent[1].server] && other[0].register.payload == next[0].register.payload)
        bench.answer(next[0])
        bench.answer(other[0])
        #expect(bench.publishAll().registrations.isEmpty)
        #expect([sent[0], sent[1]].allSatisfy { bench.status($0.server) == .registered(version: 42) })
    }

    @Test func ownDeviceInAReturnedRecordIsReplaced() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let stored = V01.Preferences(
            devices: [V01Account.device("own-device", token: "old"), V01Account.device("tablet")], version: 7,
            accessToken: V01Account.newToken())
        bench.answer(bench.publishAll().registrations[0], .versionMismatch, stored)
        let preferences = try preferences(bench, bench.publishAll().registrations.first)
        #expect(preferences.devices.map(\.installationID.string) == ["tablet", "own-device"])
        #expect(preferences.devices.last?.token == DeviceToken("device-token"))
    }

    @Test func tombstoneIsPassedByGrowingSteps() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        var versions: [UInt64] = []
        for _ in 0..<4 {
            let sent = try #require(bench.publishAll().registrations.first)
            versions.append(try preferences(bench, sent).version)
            bench.answer(sent, .versionMismatch)
            bench.pass(.seconds(400))
        }
        #expect(versions == [1, 2, 5, 12])
    }

    /// Its answer was lost, and the server does not recognize the repetition.
    @Test func ownRecordInAMismatchIsSuccess() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let sent = try #require(bench.publishAll().registrations.first)
        bench.answer(sent, .versionMismatch, try preferences(bench, sent))
        #expect(bench.status(servers[0]) == .registered(version: 1) && bench.publishAll().registrations.isEmpty)
    }

    @Test func versionFarAheadIsNotBelieved() throws {
        for version: UInt64 in [.max, .max - 1, 1 << 40] {
            var bench = V01MachineBench()
            bench.register(with: Array(servers.prefix(2)))
            let sent = bench.publishAll().registrations
            let stored = V01.Preferences(devices: [V01Account.device()], version: version, accessToken: V01Account.newToken())
            bench.answer(sent[0], .versionMismatch, stored)
            bench.answer(sent[1])
            #expect(bench.status(sent[0].server) == .refused(.versionExhausted) && bench.status(sent[1].server) == .registered(version: 1))
            #expect(bench.publishAll().registrations.isEmpty)
        }
    }

    /// Servers that always claim a higher version: each refusal leads to a new record, with pauses.
    @Test func lyingServersDoNotMakeALoop() throws {
        var bench = V01MachineBench()
        bench.register(with: servers)
        var version: UInt64 = 100
        var count = 0
        let end = bench.now + .seconds(3600)
        while bench.now < end {
            for sent in bench.publishAll().registrations {
                count += 1
                if sent.server == servers[2] {
                    bench.answer(sent)
                } else {
                    version += 100
                    let stored = V01.Preferences(devices: [V01Account.device()], version: version, accessToken: V01Account.newToken())
                    bench.answer(sent, .versionMismatch, stored)
                }
            }
            bench.pass(.seconds(1))
        }
        #expect(count < 60, "\(count)")
        #expect(count > 6)
    }

    /// Each of two servers accepts a record, and refuses the next one, which the other server made necessary.
    @Test(arguments: [V01.RegistrationResponse.ErrorType.versionMismatch, .malformedMessage])
    func serversThatRefuseInTurnsDoNotMakeALoop(_ error: V01.RegistrationResponse.ErrorType) throws {
        var bench = V01MachineBench()
        bench.register(with: servers)
        var version: UInt64 = 100
        var (count, honest) = (0, 0)
        var turns = [servers[0]: false, servers[1]: true]
        let end = bench.now + .seconds(3600)
        while bench.now < end, count < 1000 {
            for sent in bench.publishAll().registrations {
                count += 1
                if turns[sent.server] == true {
                    version += 100
                    let stored = V01.Preferences(devices: [V01Account.device()], version: version, accessToken: V01Account.newToken())
                    bench.answer(sent, error, error == .versionMismatch ? stored : nil)
                } else {
                    bench.answer(sent)
                    if sent.server == servers[2] { honest += 1 }
                }
                turns[sent.server]?.toggle()
            }
            if bench.actions.isEmpty { bench.pass(.seconds(1)) }
        }
        #expect(count < 80, "\(count)")
        #expect(honest > 1)
        #expect(bench.status(servers[2]) == .registered(version: bench.machine.own.content?.version ?? 0))
    }

    // MARK: No answer

    @Test func backOffIsExponentialAndEndsInALongPause() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let first = try #require(bench.publishAll().registrations.first)
        var pauses: [Duration] = []
        for _ in 0..<RegistrationTiming.tryLimit {
            bench.pass(.seconds(10))
            guard case .willRetry(_, _, let pause)? = bench.takeActions().events.last else { break }
            pauses.append(pause)
            #expect(bench.publishAll().registrations.isEmpty)
            bench.pass(pause)
            // Byte for byte the same, so that a server recognizes the repetition.
            #expect(bench.publishAll().registrations == [first])
        }
        #expect(pauses.count == 12 && zip(pauses.dropLast(), pauses.dropFirst().dropLast()).allSatisfy { $0 < $1 })
        #expect(pauses[0] >= .seconds(30) && pauses[1] >= .seconds(120) && pauses[11] == .seconds(24 * 3600))
    }

    @Test func lateAnswerCounts() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let sent = try #require(bench.publishAll().registrations.first)
        bench.pass(.seconds(25))
        bench.answer(sent)
        #expect(bench.status(servers[0]) == .registered(version: 1))
        bench.pass(.seconds(3600))
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func internalErrorIsTriedAgainAfterAPause() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let sent = try #require(bench.publishAll().registrations.first)
        bench.answer(sent, .internalError)
        #expect(bench.publishAll().registrations.isEmpty && bench.status(servers[0]) == .pending(tries: 1))
        bench.pass(.seconds(40))
        #expect(bench.publishAll().registrations == [sent])
    }

    @Test func failedPublicationIsTriedAgain() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        for action in bench.takeActions() { bench.publish(action, isPublished: false) }
        #expect(bench.publishAll().registrations.isEmpty)
        bench.pass(.seconds(40))
        #expect(bench.publishAll().registrations.count == 1)
    }

    @Test func answersToOthersRegistersAreIgnored() throws {
        var bench = V01MachineBench()
        bench.register(with: Array(servers.prefix(2)))
        let sent = bench.publishAll().registrations
        bench.answer(SentRegistration<Version01>(server: sent[0].server, registration: sent[1].register))
        bench.answer(SentRegistration<Version01>(server: servers[2], registration: sent[0].register))
        #expect(sent.allSatisfy { bench.status($0.server) == .pending(tries: 0) })
    }

    // MARK: Refusals

    @Test func malformedMessageIsTriedOnceMoreWithAFreshAccessToken() throws {
        var bench = V01MachineBench()
        bench.register(with: Array(servers.prefix(2)))
        let sent = bench.publishAll().registrations
        for sent in sent { bench.answer(sent, .malformedMessage) }
        let again = bench.publishAll().registrations
        #expect(again.count == 2 && Set(again.map(\.register.payload)).count == 1)
        let (old, new) = (try preferences(bench, sent[0]), try preferences(bench, again[0]))
        #expect(new.accessToken != old.accessToken && new.accessToken.isUUID && new.version == 2)
        bench.answer(again[0], .malformedMessage)
        bench.answer(again[1])
        #expect(bench.status(again[0].server) == .refused(.malformedMessage) && bench.status(again[1].server) == .registered(version: 2))
        bench.pass(.seconds(2 * 24 * 3600))
        #expect(bench.publishAll().registrations.isEmpty)
        // No retry until the application changes something.
        var profile = V01DeviceProfile.phone
        profile.deviceToken = DeviceToken("another")
        bench.register(profile, with: Array(servers.prefix(2)))
        #expect(bench.publishAll().registrations.count == 2)
    }

    @Test func unsupportedTokenTypeIsNotTriedAgain() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        bench.answer(try #require(bench.publishAll().registrations.first), .unsupportedTokenType)
        #expect(bench.takeActions().events == [.refused(by: servers[0], .unsupportedTokenType)])
        bench.pass(.seconds(2 * 24 * 3600))
        bench.register(with: [servers[0]])
        #expect(bench.publishAll().registrations.isEmpty)
    }

    /// The server may have an earlier version of the record.
    @Test func serverThatRefusedAChangeIsLeftWhenItIsDropped() throws {
        var bench = registered(2)
        var profile = V01DeviceProfile.phone
        profile.platform = .firebase
        bench.register(profile, with: Array(servers.prefix(2)))
        for sent in bench.publishAll().registrations { bench.answer(sent, sent.server == servers[1] ? .unsupportedTokenType : nil) }
        #expect(bench.status(servers[1]) == .refused(.unsupportedTokenType))
        bench.register(profile, with: [servers[0]])
        let sent = bench.publishAll().registrations
        #expect(sent.map(\.server) == [servers[1]])
        #expect(try preferences(bench, sent.first).unregister)
        bench.answer(sent[0])
        #expect(bench.status(servers[1]) == .unregistered)
    }

    @Test func serverThatRefusesAnUnregistrationIsNotAskedAgain() throws {
        var bench = registered(2)
        bench.register(with: [servers[0]])
        bench.answer(try #require(bench.publishAll().registrations.first), .malformedMessage)
        #expect(bench.takeActions().events == [.refused(by: servers[1], .malformedMessage)])
        #expect(bench.status(servers[1]) == .unregistered)
        bench.pass(.seconds(2 * 24 * 3600))
        var profile = V01DeviceProfile.phone
        profile.deviceToken = DeviceToken("another")
        bench.register(profile, with: [servers[0]])
        #expect(bench.publishAll().registrations.map(\.server) == [servers[0]])
    }

    // MARK: The access token

    @Test func contactsOnlyWithoutContactsGivesNobodyTheToken() throws {
        var profile = V01DeviceProfile.phone
        profile.contactsOnly = true
        var bench = V01MachineBench()
        bench.register(profile, with: [servers[0]])
        let device = try #require(try preferences(bench, bench.publishAll().registrations.first).devices.first)
        // An empty list would give the token to everyone.
        #expect(device.filters?.allowedKeyList.count == 1)
        #expect(V01.openToken(device.filters?.allowedKeyList ?? [], from: bench.identity.publicKey, by: .generate()) == nil)
    }

    @Test func contactsAloneCanOpenTheToken() throws {
        let contact = PrivateKey.generate()
        var profile = V01DeviceProfile.phone
        profile.contactsOnly = true
        profile.contacts = [contact.publicKey]
        var bench = V01MachineBench()
        bench.register(profile, with: [servers[0]])
        let preferences = try preferences(bench, bench.publishAll().registrations.first)
        let list = try #require(preferences.devices.first?.filters?.allowedKeyList)
        #expect(V01.openToken(list, from: bench.identity.publicKey, by: contact) == preferences.accessToken)
    }

    @Test func contactWhoLostTheRightGetsNoNewToken() throws {
        let (contact, other) = (PrivateKey.generate(), PrivateKey.generate())
        var profile = V01DeviceProfile.phone
        profile.contactsOnly = true
        profile.contacts = [contact.publicKey, other.publicKey]
        var bench = registered(1, profile)
        let old = bench.machine.own.accessToken
        profile.contacts = [other.publicKey]
        bench.register(profile, with: [servers[0]])
        let sent = try #require(bench.publishAll().registrations.first)
        // Even when the server returns a record with the old token, and with another device that has it sealed.
        let tablet = V01Account.device("tablet", allowed: [V01.sealToken(old, from: bench.identity, to: contact.publicKey)])
        bench.answer(sent, .versionMismatch, V01.Preferences(devices: [tablet], version: 9, accessToken: old))
        let preferences = try preferences(bench, bench.publishAll().registrations.first)
        #expect(preferences.accessToken != old && preferences.devices.count == 2)
        for device in preferences.devices {
            let list = try #require(device.filters?.allowedKeyList)
            #expect(V01.openToken(list, from: bench.identity.publicKey, by: contact) == nil)
            #expect(V01.openToken(list, from: bench.identity.publicKey, by: other) == preferences.accessToken)
        }
    }

    /// Only the other device knows its contacts.
    @Test func tokenIsKeptForTheContactsOfAnotherDevice() throws {
        let contact = PrivateKey.generate()
        var profile = V01DeviceProfile.phone
        profile.contactsOnly = true
        profile.contacts = [newKey()]
        var bench = V01MachineBench()
        bench.register(profile, with: [servers[0]])
        let token = V01Account.newToken()
        let list = [V01.sealToken(token, from: bench.identity, to: contact.publicKey)]
        let stored = V01.Preferences(devices: [V01Account.device("tablet", allowed: list)], version: 3, accessToken: token)
        bench.answer(try #require(bench.publishAll().registrations.first), .versionMismatch, stored)
        bench.answer(try #require(bench.publishAll().registrations.first))
        profile.contacts = []
        bench.register(profile, with: [servers[0]])
        let sent = try preferences(bench, bench.publishAll().registrations.first)
        let tablet = try #require(sent.devices.first { $0.installationID == InstallationID("tablet") })
        #expect(sent.accessToken == token && tablet.filters?.allowedKeyList == list)
        // The own device's list has the account itself only.
        #expect(sent.devices.first { $0.installationID == bench.installationID }?.filters?.allowedKeyList.count == 1)
    }

    // MARK: Renewing

    /// A new version for all servers, between 27 and 30 days after the acceptance. Meanwhile the former one is advertised.
    @Test func recordIsRenewedEveryMonth() throws {
        let day = Duration.seconds(24 * 3600)
        var bench = registered(2)
        bench.pass(day * 26)
        bench.restart()
        #expect(bench.publishAll().registrations.isEmpty)
        bench.pass(day * 4)
        let sent = Set(bench.publishAll().registrations)
        #expect(Set(sent.map(\.server)) == Set(servers.prefix(2)))
        for sent in sent {
            let renewed = try preferences(bench, sent)
            #expect(renewed.version == 2 && renewed.devices.map(\.installationID) == [bench.installationID])
        }
        #expect(bench.machine.advertisement(at: bench.now).info.count == 2)
        for sent in sent { bench.answer(sent) }
        _ = bench.publishAll()
        #expect(bench.status(servers[0]) == .registered(version: 2) && bench.machine.advertisement(at: bench.now).info.count == 2)
        bench.pass(day * 26)
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func recordOfUnknownAgeIsRenewedWithinAMonth() throws {
        var bench = registered(1)
        guard case .server(var record) = bench.stored[.server(servers[0])] else {
            Issue.record("no record")
            return
        }
        record.renewal = nil
        bench.stored[.server(servers[0])] = .server(record)
        bench.restart()
        bench.pass(.seconds(30 * 24 * 3600))
        #expect(!bench.publishAll().registrations.isEmpty)
    }

    // MARK: Unregistering

    @Test func unregisteringEndsTheRecordWithoutOtherDevices() throws {
        var bench = registered(2)
        bench.take(bench.machine.setReceiving(false))
        let sent = bench.publishAll().registrations
        #expect(sent.count == 2)
        for sent in sent {
            let preferences = try preferences(bench, sent)
            #expect(preferences.unregister && preferences.version == 2 && preferences.accessToken.isEmpty)
            bench.answer(sent)
            #expect(bench.status(sent.server) == .unregistered)
        }
        // Nothing is advertised from then on.
        #expect(bench.publishAll().advertisements.last?.info == [])
        bench.pass(.seconds(7 * 24 * 3600))
        let later = bench.publishAll()
        #expect(later.registrations.isEmpty && later.advertisements.isEmpty)
    }

    @Test func unregisteringKeepsTheOtherDevices() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let stored = V01.Preferences(devices: [V01Account.device("tablet")], version: 3, accessToken: V01Account.newToken())
        bench.answer(bench.publishAll().registrations[0], .versionMismatch, stored)
        bench.answer(bench.publishAll().registrations[0])
        bench.take(bench.machine.setReceiving(false))
        let sent = try #require(bench.publishAll().registrations.first)
        let preferences = try preferences(bench, sent)
        #expect(!preferences.unregister && preferences.version == 5 && preferences.accessToken == stored.accessToken)
        #expect(preferences.devices.map(\.installationID.string) == ["tablet"])
        bench.answer(sent)
        #expect(bench.publishAll().advertisements.last?.info.map(\.installationID.string) == ["tablet"])
    }

    /// Repeated advertisements would contain outdated information about the other devices.
    @Test func unregisteredDeviceAdvertisesTheOthersOnce() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let stored = V01.Preferences(devices: [V01Account.device("tablet")], version: 3, accessToken: V01Account.newToken())
        bench.answer(bench.publishAll().registrations[0], .versionMismatch, stored)
        bench.answer(bench.publishAll().registrations[0])
        bench.take(bench.machine.setReceiving(false))
        bench.answer(try #require(bench.publishAll().registrations.first))
        #expect(bench.publishAll().advertisements.map { $0.info.map(\.installationID.string) } == [["tablet"]])
        bench.pass(.seconds(7 * 24 * 3600))
        bench.restart()
        #expect(bench.publishAll().advertisements.isEmpty)
    }

    @Test func unregistrationIsTriedUntilAnswered() throws {
        var bench = registered(1)
        bench.take(bench.machine.setReceiving(false))
        let sent = try #require(bench.publishAll().registrations.first)
        bench.pass(.seconds(60))
        #expect(bench.publishAll().registrations == [sent])
    }

    // MARK: Advertising

    @Test func advertisesAfterEachRegistration() throws {
        var bench = V01MachineBench()
        bench.register(with: Array(servers.prefix(2)))
        let sent = bench.publishAll().registrations
        bench.answer(sent[0])
        let first = try #require(bench.publishAll().advertisements.first)
        let token = try preferences(bench, sent[0]).accessToken
        #expect(
            first.info == [
                V01.AdvertisementInfo(publicKey: sent[0].server.compressed, accessToken: token, installationID: bench.installationID)
            ])
        bench.answer(sent[1])
        #expect(Set(bench.publishAll().advertisements.last?.info.map(\.publicKey) ?? []) == Set(sent.map(\.server.compressed)))
    }

    @Test func tokenIsLeftEmptyWhenThereIsAList() throws {
        var profile = V01DeviceProfile.phone
        profile.contactsOnly = true
        var bench = V01MachineBench()
        bench.register(profile, with: [servers[0]])
        bench.answer(bench.publishAll().registrations[0])
        let row = try #require(bench.publishAll().advertisements.first?.info.first)
        #expect(row.accessToken.isEmpty && row.publicKey == servers[0].compressed)
    }

    /// All devices of the account share the token: it must stay hidden if one device hides it.
    @Test func tokenIsLeftEmptyWhenAnotherDeviceHasAList() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        let tablet = V01Account.device("tablet", allowed: [[1]])
        let stored = V01.Preferences(devices: [tablet], version: 3, accessToken: V01Account.newToken())
        bench.answer(bench.publishAll().registrations[0], .versionMismatch, stored)
        bench.answer(bench.publishAll().registrations[0])
        let rows = try #require(bench.publishAll().advertisements.last?.info)
        #expect(rows.count == 2 && rows.allSatisfy(\.accessToken.isEmpty))
    }

    @Test func advertisementIsRepeatedEveryDayAndAtTheStart() throws {
        var bench = registered(1)
        bench.pass(.seconds(23 * 3600 - 1))
        #expect(bench.publishAll().advertisements.isEmpty)
        bench.pass(.seconds(3600 + 1))
        #expect(bench.publishAll().advertisements.count == 1)
        bench.restart(after: .seconds(60))
        #expect(bench.publishAll().advertisements.map(\.info.count) == [1])
    }
}
