import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

/// Which of a registrant's devices a message goes to, and when that is decided.
@Suite struct ChoosingDevicesTests {
    private let servers = (0..<2).map { _ in newKey() }
    private let friend = Friend()
    private let messageID: [UInt8] = [1, 2, 3]

    /// A bench whose look-up of the friend's advertisements is under way.
    private func lookingUp() -> MachineBench {
        var bench = MachineBench()
        bench.take(bench.machine.watch(friend.key))
        return bench
    }

    /// A bench that knows the friend's devices from their own advertisements.
    private func knowing(_ rows: [PushNotificationQueryInfo]) -> MachineBench {
        var bench = lookingUp()
        for row in rows { advertise(&bench, [row], from: row.installationID.string) }
        _ = bench.publishAll()
        return bench
    }

    private func advertise(_ bench: inout MachineBench, _ rows: [PushNotificationQueryInfo], from device: String) {
        bench.take(bench.machine.advertised(by: friend.key, from: InstallationID(device), rows: rows, age: .zero, at: bench.now))
    }

    private func notify(_ bench: inout MachineBench, id: [UInt8]? = nil) {
        let message = OutgoingNotification(messageID: id ?? messageID, chatID: "chat", kind: .message, recipients: [.init(friend.key)])
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
    }

    private func endLookUp(_ bench: inout MachineBench, _ result: LookUpResult = .found) {
        bench.take(bench.machine.lookUpEnded([friend.key], result))
    }

    private func outcomes(_ bench: MachineBench, id: [UInt8]? = nil) -> [DeviceOutcome.Result] {
        bench.machine.notifications.messages[id ?? messageID]?.outcomes.map(\.result) ?? []
    }

    private func asked(_ actions: [ClientMachine.Action]) -> Set<String> {
        Set(actions.requests.flatMap { $0.message.requests.map(\.installationID.string) })
    }

    // MARK: Sources of information

    /// The store has an advertisement of each device, and the message is sent between them.
    @Test func everyDeviceThatALookUpFindsIsNotified() {
        var bench = lookingUp()
        advertise(&bench, [friend.row(at: servers[0], "phone")], from: "phone")
        notify(&bench)
        #expect(bench.takeActions().requests.isEmpty)
        advertise(&bench, [friend.row(at: servers[0], "tablet")], from: "tablet")
        endLookUp(&bench)
        #expect(asked(bench.publishAll()) == ["phone", "tablet"])
    }

    /// Installation ids are unique only among the devices of a registrant.
    @Test func devicesOfTwoRegistrantsWithTheSameIDAreNotified() {
        let other = Friend()
        var bench = knowing([friend.row(at: servers[0], "phone")])
        bench.take(bench.machine.watch(other.key))
        let row = other.row(at: servers[0], "phone")
        bench.take(bench.machine.advertised(by: other.key, from: row.installationID, rows: [row], age: .zero, at: bench.now))
        _ = bench.publishAll()
        let message = OutgoingNotification(
            messageID: messageID, chatID: "chat", kind: .message, recipients: [.init(friend.key), .init(other.key)])
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
        let notified = bench.publishAll().requests.flatMap { $0.message.requests.map(\.publicKey) }
        #expect(Set(notified) == Set([friend.key, other.key].map { KeyHash(of: $0).bytes }))
    }

    /// The phone's owner put this client among the contacts while it did not run.
    @Test func lookUpOfAStartIsAwaited() {
        var bench = knowing([friend.row(at: servers[0], "phone", allowedKeyList: [[1]]), friend.row(at: servers[0], "tablet")])
        bench.restart(after: .seconds(60))
        bench.take(bench.machine.watch(friend.key))
        notify(&bench)
        #expect(bench.actions.requests.isEmpty)
        advertise(&bench, [friend.row(at: servers[0], "phone", version: 2)], from: "phone")
        endLookUp(&bench)
        #expect(asked(bench.takeActions()) == ["phone", "tablet"] && outcomes(bench).isEmpty)
    }

    @Test func lookUpIsAwaitedFor3Seconds() {
        var bench = knowing([friend.row(at: servers[0], "tablet")])
        bench.restart(after: .seconds(60))
        notify(&bench)
        bench.pass(.milliseconds(2900))
        #expect(bench.actions.requests.isEmpty)
        bench.pass(.milliseconds(100))
        #expect(asked(bench.takeActions()) == ["tablet"])
    }

    /// It may be one of a thousand.
    @Test func registrantWithoutKnownDevicesIsNotGivenUpDuringTheLookUp() {
        var bench = MachineBench()
        bench.machine.contactServers = [PushServer(key: servers[0])]
        notify(&bench)
        for action in bench.takeActions() where [action].queries.count == 1 { bench.publish(action, isPublished: true) }
        bench.pass(.seconds(300))
        #expect(outcomes(bench).isEmpty)
        advertise(&bench, [friend.row(at: servers[0], "phone")], from: "phone")
        endLookUp(&bench)
        #expect(asked(bench.takeActions()) == ["phone"])
    }

    /// The relay is not reachable: the next message looks the advertisement up again.
    @Test func failedLookUpIsRepeatedAndNotAwaited() {
        var bench = knowing([friend.row(at: servers[0], "tablet")])
        bench.restart(after: .seconds(60))
        endLookUp(&bench, .noAnswer)
        _ = bench.takeActions()
        notify(&bench)
        #expect(bench.actions.lookUps == [[friend.key]] && bench.actions.requests.isEmpty)
        endLookUp(&bench, .noAnswer)
        #expect(asked(bench.takeActions()) == ["tablet"])
    }

    /// The application's search ended with the first device.
    @Test func answersToAnEarlierQueryAreAwaited() throws {
        var bench = MachineBench()
        bench.machine.contactServers = servers.map { PushServer(key: $0) }
        bench.take(bench.machine.refresh(friend.key, at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        bench.answer(query, [friend.row(at: servers[0], "phone")], by: servers[0])
        notify(&bench)
        #expect(bench.publishAll().requests.isEmpty)
        bench.answer(query, [friend.row(at: servers[1], "tablet")], by: servers[1])
        #expect(asked(bench.publishAll()) == ["phone", "tablet"])
    }

    /// Servers that don't know the friend stay silent.
    @Test func advertisementEndsTheWaitForAnswers() {
        var bench = MachineBench()
        bench.machine.contactServers = servers.map { PushServer(key: $0) }
        notify(&bench)
        let query = bench.takeActions().filter { if case .query = $0 { true } else { false } }
        #expect(query.count == 1)
        for action in query { bench.publish(action, isPublished: true) }
        advertise(&bench, [friend.row(at: servers[0], "phone")], from: "phone")
        endLookUp(&bench)
        #expect(asked(bench.publishAll()) == ["phone"])
    }

    /// A light client may wait long for the topic of the answers.
    @Test func queryThatIsNotPublishedIsAwaitedFor3Seconds() {
        var bench = knowing([friend.row(at: servers[0], "phone"), friend.row(at: servers[0], "tablet")])
        bench.pass(.seconds(12 * 3600))
        advertise(&bench, [friend.row(at: servers[0], "phone")], from: "phone")
        bench.pass(.seconds(12 * 3600))
        notify(&bench)
        #expect(bench.actions.queries.count == 1)
        bench.pass(.milliseconds(2900))
        #expect(bench.takeActions().requests.isEmpty)
        bench.pass(.milliseconds(100))
        #expect(asked(bench.takeActions()) == ["phone"])
    }

    /// Its advertisement without rows may be an old one, which anyone can publish again.
    @Test func serversAreAskedAboutADeviceThatWasWithdrawnSinceTheLastQuery() throws {
        var bench = knowing([friend.row(at: servers[0], "phone"), friend.row(at: servers[0], "tablet")])
        for number in UInt8(4)...5 {
            bench.pass(.seconds(60))
            advertise(&bench, [], from: "tablet")
            notify(&bench, id: [number])
            let query = try #require(bench.actions.queries.first)
            _ = bench.publishAll()
            bench.answer(query, [friend.row(at: servers[0], "phone"), friend.row(at: servers[0], "tablet")], by: servers[0])
            let sent = bench.publishAll()
            #expect(asked(sent) == ["phone", "tablet"])
            for sent in sent.requests { bench.answer(sent) }
        }
        notify(&bench, id: [6])
        #expect(bench.publishAll().queries.isEmpty)
    }

    /// The phone is in use, the tablet was not for a day.
    @Test func serversAreAskedAboutOtherDevicesEveryTenMinutes() throws {
        var bench = knowing([friend.row(at: servers[0], "phone"), friend.row(at: servers[0], "tablet")])
        bench.pass(.seconds(12 * 3600))
        advertise(&bench, [friend.row(at: servers[0], "phone")], from: "phone")
        bench.pass(.seconds(12 * 3600))
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        // The server does not answer in time.
        bench.pass(.seconds(3))
        let first = bench.publishAll()
        #expect(asked(first) == ["phone"])
        notify(&bench, id: [4])
        let second = bench.publishAll()
        #expect(second.queries.isEmpty && asked(second) == ["phone"])
        bench.answer(query, [friend.row(at: servers[0], "phone"), friend.row(at: servers[0], "tablet")], by: servers[0])
        notify(&bench, id: [5])
        let third = bench.publishAll()
        #expect(asked(third) == ["phone", "tablet"])
        for sent in (first + second + third).requests { bench.answer(sent) }

        bench.pass(.seconds(24 * 3600))
        advertise(&bench, [friend.row(at: servers[0], "phone")], from: "phone")
        notify(&bench, id: [6])
        #expect(bench.publishAll().queries.count == 1)
    }

    // MARK: Devices for others

    /// A sender that read of the devices just now has the same outcomes as one that knows them from before.
    @Test func deviceForOthersIsReportedForEachMessage() throws {
        for isFresh in [true, false] {
            var bench = knowing(isFresh ? [] : [friend.row(at: servers[0], "phone"), friend.row(at: servers[0], "tablet")])
            advertise(&bench, [friend.row(at: servers[0], "phone", version: 2, allowedKeyList: [[1]])], from: "phone")
            advertise(&bench, [friend.row(at: servers[0], "tablet")], from: "tablet")
            _ = bench.takeActions()
            for id in [[1], [2]] as [[UInt8]] {
                notify(&bench, id: id)
                let sent = bench.publishAll()
                let reported = sent.events.filter { if case .gaveUp = $0 { true } else { false } }
                #expect(asked(sent) == ["tablet"] && reported.count == 1)
                bench.answer(try #require(sent.requests.first))
                #expect(Set(outcomes(bench, id: id)) == [.notified(by: servers[0]), .notAllowed])
            }
        }
    }

    /// It was for contacts only at a server that it left, and is for everybody now.
    @Test func formerRegistrationForOthersDoesNotCount() {
        var bench = knowing([friend.row(at: servers[0], "phone", allowedKeyList: [[1]])])
        bench.pass(.seconds(1))
        advertise(&bench, [], from: "phone")
        notify(&bench)
        _ = bench.publishAll()
        bench.pass(.seconds(3))
        #expect(outcomes(bench).isEmpty)
    }

    // MARK: Devices that were taken back

    /// status-go's clients advertise no rows while they register again.
    @Test func serversAreAskedAtOnceAboutADeviceThatIsNotAdvertisedAnyMore() throws {
        var bench = knowing([friend.row(at: servers[0], "phone")])
        bench.pass(.seconds(1))
        advertise(&bench, [], from: "phone")
        notify(&bench)
        let actions = bench.publishAll()
        #expect(actions.requests.isEmpty)
        bench.answer(try #require(actions.queries.first), [friend.row(at: servers[0], "phone")], by: servers[0])
        #expect(asked(bench.publishAll()) == ["phone"])
    }

    /// A server that has no device of the registrant does not answer.
    @Test func registrantWithoutAdvertisedDevicesIsGivenUpAfterTwoQueries() {
        var bench = knowing([friend.row(at: servers[0], "phone")])
        bench.pass(.seconds(1))
        advertise(&bench, [], from: "phone")
        let begun = bench.now
        notify(&bench)
        var queryCount = 0
        while outcomes(bench).isEmpty, let next = bench.machine.nextWakeUp {
            queryCount += bench.publishAll().queries.count
            bench.pass((bench.machine.nextWakeUp ?? next).since(bench.now))
        }
        #expect(queryCount == 2 && outcomes(bench) == [.gaveUp(.notRegistered)] && bench.now.since(begun) < .seconds(12))
    }

    /// The advertisement that the refused token came from is read again at each start.
    @Test(arguments: [PushNotificationReport.ErrorType.notRegistered, .wrongToken])
    func refusedDeviceStaysTakenBackAfterAStart(_ error: PushNotificationReport.ErrorType) throws {
        var bench = knowing([friend.row(at: servers[0], "phone")])
        bench.pass(.seconds(60))
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first), error)
        #expect(bench.machine.directory.validRows(of: friend.key).isEmpty)
        let age = Duration.seconds(120)
        bench.restart(after: .seconds(60))
        bench.take(
            bench.machine.advertised(
                by: friend.key, from: InstallationID("phone"), rows: [friend.row(at: servers[0], "phone")], age: age, at: bench.now))
        #expect(bench.machine.directory.validRows(of: friend.key).isEmpty)
        // The device registers again.
        advertise(&bench, [friend.row(at: servers[0], "phone", version: 2)], from: "phone")
        #expect(bench.machine.directory.validRows(of: friend.key).count == 1)
    }

    /// NOT_REGISTERED is final until the device advertises again: messages to other devices do not wait for its server.
    @Test func goneDeviceDelaysNothing() throws {
        var bench = knowing([friend.row(at: servers[0], "phone"), friend.row(at: servers[1], "tablet")])
        bench.pass(.seconds(1))
        notify(&bench)
        for sent in bench.publishAll().requests { bench.answer(sent, sent.server == servers[0] ? .notRegistered : nil) }
        // The first message is tried until it expires.
        for _ in 0..<120 {
            _ = bench.publishAll()
            bench.pass(.seconds(10))
        }
        notify(&bench, id: [4])
        let next = bench.publishAll()
        #expect(next.queries.isEmpty && asked(next) == ["tablet"])
    }
}
