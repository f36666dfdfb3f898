import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

/// Rules of querying and notifying.
@Suite struct NotifyingTests {
    private let servers = (0..<3).map { _ in newKey() }
    private let friend = Friend()
    private let messageID: [UInt8] = [1, 2, 3]

    /// A bench that knows the friend's devices at the first `serverCount` servers.
    private func knowing(_ serverCount: Int = 1, _ installations: [String] = ["friends-phone"]) -> MachineBench {
        var bench = MachineBench()
        bench.take(bench.machine.watch(friend.key))
        let rows = servers.prefix(serverCount).flatMap { server in installations.map { friend.row(at: server, $0) } }
        bench.take(bench.machine.advertised(by: friend.key, from: nil, rows: rows, age: .zero, at: bench.now))
        _ = bench.publishAll()
        return bench
    }

    private func notify(_ bench: inout MachineBench, _ installations: [String] = [], of registrant: PublicKey? = nil) {
        let recipient = OutgoingNotification.Recipient(registrant ?? friend.key, installations: installations.map { InstallationID($0) })
        let message = OutgoingNotification(messageID: messageID, chatID: "chat", kind: .message, recipients: [recipient])
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
    }

    private func outcome(_ bench: MachineBench) -> [DeviceOutcome.Result] {
        bench.machine.notifications.messages[messageID]?.outcomes.map(\.result) ?? []
    }

    // MARK: Choosing devices

    @Test func installationsThatTheMessageGoesToAreNotified() throws {
        var bench = knowing(1, ["a", "b", "c", "d", "e", "f"])
        notify(&bench, ["b", "d", "e", "f"])
        let sent = try #require(bench.publishAll().requests.first)
        #expect(Set(sent.message.requests.map(\.installationID.string)) == ["b", "d", "e", "f"])
    }

    @Test func installationThatIsNamedTwiceIsNotifiedOnce() throws {
        var bench = knowing(1, ["a", "b"])
        notify(&bench, ["a", "b", "a"])
        let sent = try #require(bench.publishAll().requests.first)
        #expect(sent.message.requests.map(\.installationID.string) == ["a", "b"])
        bench.answer(sent)
        #expect(outcome(bench).count == 2)
    }

    @Test func threeMostRecentlyActiveOtherwise() throws {
        var bench = knowing(1, ["a", "b", "c", "d", "e"])
        for (index, name) in ["d", "a", "e"].enumerated() {
            let time = bench.now + .seconds(index + 1)
            bench.take(bench.machine.directory.noteActivity(of: InstallationID(name), of: friend.key, at: time))
        }
        notify(&bench)
        let sent = try #require(bench.publishAll().requests.first)
        #expect(Set(sent.message.requests.map(\.installationID.string)) == ["a", "d", "e"])
    }

    /// Nobody is given up before a server was asked.
    @Test func recipientsWhoseQueriesWaitForOthersAreNotGivenUp() throws {
        var bench = MachineBench()
        bench.machine.contactServers = [PushServer(key: servers[0])]
        let friends = (0..<QueryTable.limit + 10).map { _ in Friend() }
        let message = OutgoingNotification(
            messageID: messageID, chatID: "chat", kind: .message, recipients: friends.map { .init($0.key) })
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
        #expect(bench.actions.lookUps.map(Set.init) == [Set(friends.map(\.key))])
        var answered = 0
        for count in [QueryTable.limit, 10] {
            let queries = bench.publishAll().queries
            #expect(queries.count == count)
            bench.pass(.seconds(1))
            for query in queries {
                let friend = try #require(friends.first { $0.key == query.registrant })
                bench.answer(query, [friend.row(at: servers[0])], by: servers[0])
                answered += 1
            }
        }
        #expect(answered == friends.count && outcome(bench).isEmpty)
        #expect(bench.publishAll().requests.map(\.message.requests.count).reduce(0, +) > 0)
    }

    @Test func atMostFiveDevicesAreNotified() throws {
        var bench = knowing(1, (0..<9).map { "device-\($0)" })
        bench.machine.notifications.deviceLimit = 20
        notify(&bench)
        #expect(try #require(bench.publishAll().requests.first).message.requests.count == 5)
    }

    @Test func ownDeviceIsNeverNotified() throws {
        var bench = MachineBench()
        let token = AccessToken("44444444-4444-4444-8444-444444444444")
        let rows = ["own-device", "own-tablet"].map { name in
            PushNotificationQueryInfo(
                accessToken: token, installationID: InstallationID(name), publicKey: KeyHash(of: bench.publicKey).bytes, allowedKeyList: [],
                grant: ValueCryptography.grant(by: bench.publicKey, for: servers[0], accessToken: token), version: 1,
                serverPublicKey: servers[0].compressed)
        }
        bench.take(bench.machine.advertised(by: bench.publicKey, from: nil, rows: rows, age: .zero, at: bench.now))
        notify(&bench, ["own-device", "own-tablet"], of: bench.publicKey)
        let named = try #require(bench.publishAll().requests.first)
        #expect(named.message.requests.map(\.installationID.string) == ["own-tablet"])
        let other = OutgoingNotification(
            messageID: [4], chatID: "chat", kind: .message, recipients: [.init(bench.publicKey)])
        bench.take(bench.machine.notify(other, chat: StatusHashes.chat(other.chatID), author: [9], at: bench.now))
        let chosen = try #require(bench.publishAll().requests.first)
        #expect(chosen.message.requests.map(\.installationID.string) == ["own-tablet"])
    }

    @Test func ownSingleDeviceHasNothingToWaitFor() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: [PushServer(key: servers[0])]))
        bench.answer(try #require(bench.publishAll().registrations.first))
        let token = AccessToken("44444444-4444-4444-8444-444444444444")
        let row = PushNotificationQueryInfo(
            accessToken: token, installationID: InstallationID("own-device"), publicKey: KeyHash(of: bench.publicKey).bytes,
            allowedKeyList: [], grant: ValueCryptography.grant(by: bench.publicKey, for: servers[0], accessToken: token), version: 1,
            serverPublicKey: servers[0].compressed)
        notify(&bench, of: bench.publicKey)
        // The answer could name another device.
        bench.answer(try #require(bench.publishAll().queries.first), [row], by: servers[0])
        bench.pass(QueryTable.deadline)
        #expect(outcome(bench) == [.gaveUp(.noDevice)])
    }

    // MARK: One server for each device

    /// A server drops requests of too many devices, or bytes, without an answer.
    @Test func requestsForManyDevicesAreDivided() throws {
        var bench = MachineBench()
        let friends = (0..<250).map { _ in Friend() }
        for friend in friends {
            bench.take(bench.machine.watch(friend.key))
            let row = friend.row(at: servers[0])
            bench.take(bench.machine.advertised(by: friend.key, from: row.installationID, rows: [row], age: .zero, at: bench.now))
        }
        _ = bench.publishAll()
        let content = [UInt8](repeating: 1, count: PushNotification.contentByteLimit - KeyHash.byteCount)
        let message = OutgoingNotification(
            messageID: messageID, chatID: "chat", kind: .message, content: content, recipients: friends.map { .init($0.key) })
        let author = StatusHashes.author(bench.publicKey)
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: author, at: bench.now))
        let sent = bench.publishAll().requests
        #expect(sent.map(\.message.requests.count).sorted() == [50, 100, 100] && sent.allSatisfy { $0.server == servers[0] })
        #expect(Set(sent.flatMap { $0.message.requests.map(\.publicKey) }).count == friends.count)
        #expect(sent.allSatisfy { $0.message.encoded().count < SegmentAssembler.Limits().wholeByteCount })
        for sent in sent { bench.answer(sent) }
        #expect(outcome(bench) == Array(repeating: .notified(by: servers[0]), count: friends.count))
    }

    @Test func oneRequestAServerForAllItsDevices() throws {
        var bench = knowing(3, ["a", "b", "c"])
        notify(&bench)
        let sent = bench.publishAll().requests
        #expect(sent.count == 1 && sent[0].message.requests.count == 3 && sent[0].request.messageID == messageID)
        #expect(sent[0].message.requests.allSatisfy { $0.chatID == StatusHashes.chat("chat") && $0.author == [9] && $0.kind == .message })
    }

    @Test func successIsDoneAndOnNoOtherServer() throws {
        var bench = knowing(3)
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first))
        bench.pass(.seconds(3600))
        let actions = bench.publishAll()
        #expect(actions.requests.isEmpty && bench.machine.notifications.messages[messageID]?.isFinished == true)
    }

    @Test func nextServerAfter3SecondsEveryServerOnce() throws {
        var bench = knowing(3)
        notify(&bench)
        var asked: [PublicKey] = []
        for _ in 0..<3 {
            asked += bench.publishAll().requests.map(\.server)
            bench.pass(.seconds(3))
        }
        #expect(Set(asked) == Set(servers) && asked.count == 3)
        #expect(bench.publishAll().requests.isEmpty)
    }

    /// Pauses of 2 s · n · 2^n between rounds, at most a tenth more; four rounds.
    @Test func fourRoundsWithGrowingPauses() throws {
        var bench = knowing(1)
        notify(&bench)
        var times: [Timestamp] = []
        while outcome(bench).isEmpty {
            for _ in bench.publishAll().requests { times.append(bench.now) }
            bench.pass(try #require(bench.machine.nextWakeUp).since(bench.now))
        }
        let pauses = zip(times.dropFirst(), times).map { $0.since($1) - .seconds(3) }
        #expect(pauses.count == 3)
        for (pause, wanted) in zip(pauses, [4, 16, 48]) {
            #expect(pause >= .seconds(wanted) && pause <= .seconds(wanted) + .milliseconds(wanted * 100))
        }
        #expect(outcome(bench) == [.gaveUp(.noServer)])
    }

    @Test func serverThatWasNotKnownIsFoundInTheNextRound() throws {
        var bench = knowing(1)
        bench.take(bench.machine.register(.phone, with: [PushServer(key: servers[1])]))
        notify(&bench)
        #expect(bench.publishAll().requests.map(\.server) == [servers[0]])
        bench.pass(.seconds(3 + 5))
        let actions = bench.publishAll()
        #expect(actions.requests.map(\.server) == [servers[0]])
        let query = try #require(actions.queries.first { $0.registrant == friend.key })
        bench.answer(query, [friend.row(at: servers[1])], by: servers[1])
        bench.pass(.seconds(3))
        #expect(bench.publishAll().requests.map(\.server) == [servers[1]])
    }

    @Test func switchingSendingOffEndsEveryMessage() {
        var bench = knowing(1)
        bench.take(bench.machine.setSending(true))
        notify(&bench)
        _ = bench.publishAll()
        bench.take(bench.machine.setSending(false))
        bench.pass(.seconds(3600))
        #expect(bench.publishAll().requests.isEmpty && outcome(bench) == [.gaveUp(.cancelled)])
    }

    @Test func nothingIsSentOnceTheMessageIsTenMinutesOld() throws {
        var bench = knowing(1)
        notify(&bench)
        // The relay rejects all publications.
        while bench.now.since(MachineBench.start) < .seconds(600) {
            for action in bench.takeActions() { bench.publish(action, isPublished: false) }
            guard let next = bench.machine.nextWakeUp else { break }
            bench.pass(next.since(bench.now))
        }
        bench.pass(.seconds(600))
        #expect(bench.publishAll().requests.isEmpty)
        #expect(outcome(bench).count == 1 && bench.machine.nextWakeUp == nil)
    }

    /// The relay may report a request that arrived late, or as failed.
    @Test(arguments: [false, true]) func publicationDoesNotChangeAnAnsweredDevice(isPublished: Bool) throws {
        var bench = knowing(1, ["a", "b"])
        notify(&bench)
        let sent = try #require(bench.takeActions().requests.first)
        let report = PushNotificationReport(
            error: nil, publicKey: sent.message.requests[0].publicKey, installationID: InstallationID("a"))
        let response = PushNotificationResponse(messageID: sent.request.messageID, reports: [report])
        bench.take(bench.machine.requestAnswered(sent.ticket, by: sent.server, response, at: bench.now))
        bench.take(bench.machine.requestPublished(sent.ticket, isPublished: isPublished, at: bench.now))
        let devices = bench.machine.notifications.messages[messageID]?.devices ?? []
        #expect(devices.filter(\.isDone).map(\.installationID.string) == ["a"] && devices.count == 2)
    }

    @Test func lateAnswerOfTheFirstServerEndsIt() throws {
        var bench = knowing(2)
        notify(&bench)
        let first = try #require(bench.publishAll().requests.first)
        bench.pass(.seconds(3))
        _ = bench.publishAll()
        bench.answer(first)
        #expect(outcome(bench) == [.notified(by: first.server)])
        bench.pass(.seconds(3600))
        #expect(bench.publishAll().requests.isEmpty)
    }

    @Test func lateSuccessCountsAlthoughTheDeviceWasGivenUp() throws {
        for isExpired in [false, true] {
            var bench = knowing(1)
            notify(&bench)
            var last = try #require(bench.publishAll().requests.first)
            if isExpired {
                // The machine was asleep.
                bench.now = bench.now + NotificationMachine.messageLife
                bench.take(bench.machine.wake(at: bench.now))
            }
            while outcome(bench).isEmpty {
                bench.pass(try #require(bench.machine.nextWakeUp).since(bench.now))
                last = bench.publishAll().requests.first ?? last
            }
            #expect(outcome(bench) == [.gaveUp(isExpired ? .expired : .noServer)])
            bench.answer(last)
            #expect(outcome(bench) == [.notified(by: last.server)])
        }
    }

    @Test func lateSuccessDoesNotChangeThatTheCallerCancelled() throws {
        var bench = knowing(1)
        bench.take(bench.machine.setSending(true))
        notify(&bench)
        let sent = try #require(bench.publishAll().requests.first)
        bench.take(bench.machine.setSending(false))
        bench.answer(sent)
        #expect(outcome(bench) == [.gaveUp(.cancelled)])
    }

    @Test func internalErrorAsksTheSameServerAgainBeforeAnother() throws {
        var bench = knowing(2)
        notify(&bench)
        let first = try #require(bench.publishAll().requests.first)
        bench.answer(first, .internalError)
        #expect(bench.publishAll().requests.isEmpty)
        bench.pass(.seconds(3))
        let second = try #require(bench.publishAll().requests.first)
        #expect(second.server == first.server && second.request.messageID == first.request.messageID)
        bench.answer(second, .internalError)
        let third = try #require(bench.publishAll().requests.first)
        #expect(third.server != first.server)
    }

    @Test func reportsOfOtherDevicesAreNotBelieved() throws {
        var bench = knowing(1)
        notify(&bench)
        let sent = try #require(bench.publishAll().requests.first)
        let foreign = PushNotificationReport(error: nil, publicKey: [1], installationID: InstallationID("friends-phone"))
        let response = PushNotificationResponse(messageID: messageID, reports: [foreign])
        bench.take(bench.machine.requestAnswered(sent.ticket, by: sent.server, response, at: bench.now))
        #expect(outcome(bench).isEmpty)
    }

    @Test func answersOfAnotherServerOrAboutAnotherMessageAreNotBelieved() throws {
        var bench = knowing(1)
        notify(&bench)
        let sent = try #require(bench.publishAll().requests.first)
        let report = PushNotificationReport(
            error: nil, publicKey: KeyHash(of: friend.key).bytes, installationID: InstallationID("friends-phone"))
        let good = PushNotificationResponse(messageID: messageID, reports: [report])
        let other = PushNotificationResponse(messageID: [8], reports: [report])
        bench.take(bench.machine.requestAnswered(sent.ticket, by: servers[1], good, at: bench.now))
        bench.take(bench.machine.requestAnswered(sent.ticket, by: sent.server, other, at: bench.now))
        #expect(outcome(bench).isEmpty)
        bench.take(bench.machine.requestAnswered(sent.ticket, by: sent.server, good, at: bench.now))
        #expect(outcome(bench) == [.notified(by: sent.server)])
    }

    // MARK: Tokens

    @Test(arguments: [PushNotificationReport.ErrorType.wrongToken, .notRegistered])
    func wrongTokenIsForgottenAndQueriedAgainOnceARound(_ error: PushNotificationReport.ErrorType) throws {
        var bench = knowing(1)
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first), error)
        #expect(bench.machine.directory.usableRows(of: InstallationID("friends-phone"), of: friend.key, at: bench.now).isEmpty)
        let after = bench.publishAll()
        #expect(after.queries.count == 1 && after.requests.isEmpty)

        // Two servers: both are asked for newer tokens.
        bench = knowing(2)
        notify(&bench)
        let first = try #require(bench.publishAll().requests.first)
        bench.answer(first, error)
        let query = try #require(bench.publishAll().queries.first)
        var newer = friend
        newer.token = AccessToken("55555555-5555-4555-8555-555555555555")
        for server in servers.prefix(2) { bench.answer(query, [newer.row(at: server, version: 2)], by: server) }
        let second = try #require(bench.publishAll().requests.first)
        #expect(second.message.requests.first?.accessToken == newer.token)
        bench.answer(second, error)
        // Another server, without another query.
        let third = bench.publishAll()
        #expect(third.queries.isEmpty && third.requests.first.map { $0.server != second.server } == true)
    }

    @Test func wrongTokenForEverEnds() throws {
        var bench = knowing(2)
        notify(&bench)
        var requestCount = 0
        var queryCount = 0
        while outcome(bench).isEmpty {
            let actions = bench.publishAll()
            requestCount += actions.requests.count
            queryCount += actions.queries.count
            for sent in actions.requests { bench.answer(sent, .wrongToken) }
            for query in actions.queries {
                for server in servers.prefix(2) { bench.answer(query, [friend.row(at: server, version: 1)], by: server) }
            }
            if bench.actions.isEmpty, let next = bench.machine.nextWakeUp { bench.pass(next.since(bench.now)) }
        }
        #expect(queryCount <= 4 && requestCount <= 4 * 3)
    }

    /// Both servers answer NOT_REGISTERED. Ours don't answer the query then: they don't listen for it.
    @Test(arguments: [true, false]) func deviceThatNoServerKnowsAnyMoreIsGivenUpAfterOneQuery(_ isQueryAnswered: Bool) throws {
        var bench = knowing(2)
        bench.pass(.seconds(1))
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first), .notRegistered)
        let query = try #require(bench.publishAll().queries.first)
        if isQueryAnswered { for server in servers.prefix(2) { bench.answer(query, [], by: server) } }
        bench.pass(QueryTable.deadline)
        let other = try #require(bench.publishAll().requests.first)
        #expect(outcome(bench).isEmpty)
        bench.answer(other, .notRegistered)
        #expect(outcome(bench) == [.gaveUp(.notRegistered)] && !bench.machine.notifications.isActive)

        // The next message waits for one query too, also after a restart.
        bench.restart()
        let message = OutgoingNotification(messageID: [9], chatID: "chat", kind: .message, recipients: [.init(friend.key)])
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
        let actions = bench.publishAll()
        #expect(actions.queries.count == 1 && actions.requests.isEmpty && bench.machine.notifications.isActive)
        bench.pass(QueryTable.deadline)
        #expect(bench.machine.notifications.messages[[9]]?.outcomes.map(\.result) == [.gaveUp(.notRegistered)])
    }

    @Test func silentServerMayHaveTheDevice() throws {
        var bench = knowing(2)
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first), .notRegistered)
        _ = bench.publishAll()
        bench.pass(QueryTable.deadline)
        #expect(bench.publishAll().requests.count == 1)
        bench.pass(.seconds(3))
        #expect(outcome(bench).isEmpty && bench.machine.notifications.isActive)
    }

    /// The server has the device, with another token that the query did not bring.
    @Test func wrongTokenDoesNotMeanThatTheDeviceIsUnregistered() throws {
        var bench = knowing(1)
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first), .wrongToken)
        _ = bench.publishAll()
        bench.pass(QueryTable.deadline)
        #expect(outcome(bench).isEmpty && bench.machine.notifications.isActive)
    }

    @Test func deviceThatRegisteredAgainIsNotified() throws {
        var bench = knowing(1)
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first), .notRegistered)
        let query = try #require(bench.publishAll().queries.first)
        bench.answer(query, [friend.row(at: servers[0], version: 2)], by: servers[0])
        let again = try #require(bench.publishAll().requests.first)
        bench.answer(again)
        #expect(outcome(bench) == [.notified(by: servers[0])])
    }

    /// One device is for others only, another one unregistered.
    @Test func unregisteredDeviceDoesNotHideThatAnotherIsForOthers() throws {
        var bench = knowing(1, ["b"])
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first), .notRegistered)
        _ = bench.publishAll()
        bench.pass(QueryTable.deadline)
        let row = friend.row(at: servers[0], "a", allowedKeyList: [[1]])
        bench.take(bench.machine.advertised(by: friend.key, from: nil, rows: [row], age: .zero, at: bench.now))
        let message = OutgoingNotification(messageID: [9], chatID: "chat", kind: .message, recipients: [.init(friend.key)])
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
        _ = bench.publishAll()
        bench.pass(QueryTable.deadline)
        #expect(bench.machine.notifications.messages[[9]]?.outcomes.map(\.result) == [.notAllowed])
    }

    @Test func unknownTokenIsQueriedOnBothTopicForms() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: servers.map { PushServer(key: $0) }))
        _ = bench.publishAll()
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        #expect(query.registrant == friend.key && query.dialects == Set(PushServer.Dialect.allCases))
    }

    @Test func knownDialectIsQueriedOnOneTopicForm() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: [PushServer(key: servers[0], dialect: .deployed)]))
        _ = bench.publishAll()
        notify(&bench)
        #expect(try #require(bench.publishAll().queries.first).dialects == [.deployed])
    }

    @Test func tokenOlderThan24HoursIsQueried() throws {
        var bench = knowing(1)
        bench.pass(.seconds(24 * 3600))
        _ = bench.publishAll()
        notify(&bench)
        let actions = bench.publishAll()
        #expect(actions.requests.isEmpty && actions.queries.count == 1)
    }

    @Test func answersOfUnnamedServersAreNotBelieved() throws {
        var bench = knowing(1)
        bench.pass(.seconds(24 * 3600))
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        let stranger = newKey()
        bench.answer(query, [friend.row(at: stranger)], by: stranger)
        #expect(bench.machine.directory.servers(of: friend.key) == [servers[0]])
    }

    @Test func answerNamingAnotherServerOrWithAForeignGrantIsNotBelieved() throws {
        var bench = knowing(1)
        bench.pass(.seconds(24 * 3600))
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        bench.answer(query, [friend.row(at: servers[1], "x"), friend.row(at: servers[0], "y", grant: [1])], by: servers[0])
        #expect(bench.machine.directory.rows(of: friend.key).map(\.installationID.string) == ["friends-phone"])
    }

    /// Servers that don't know a registrant may answer with nothing, and sooner than the one that does.
    @Test func discoveringEndsWithADeviceAndNotWithAnEmptyAnswer() throws {
        var bench = MachineBench()
        bench.machine.contactServers = servers.prefix(3).map { PushServer(key: $0) }
        bench.take(bench.machine.refresh(friend.key, at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        bench.answer(query, [], by: servers[0])
        #expect(bench.machine.queries.isUnderWay(about: friend.key))
        let invented = friend.row(at: servers[0], "invented", grant: [1])
        bench.answer(query, [invented], by: servers[0])
        #expect(bench.machine.queries.isUnderWay(about: friend.key))
        bench.answer(query, [friend.row(at: servers[1])], by: servers[1])
        #expect(!bench.machine.queries.isUnderWay(about: friend.key))
        #expect(bench.machine.directory.servers(of: friend.key) == [servers[1]])
    }

    /// The grant of a row whose token is for others can't be checked.
    @Test func inventedRowsLeaveRoomForADeviceWithAGrant() throws {
        var bench = MachineBench()
        bench.machine.contactServers = servers.prefix(2).map { PushServer(key: $0) }
        bench.take(bench.machine.refresh(friend.key, at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        let invented = (0..<Directory.rowLimit).map { number in
            var row = friend.row(at: servers[0], "invented-\(number)", grant: [1], allowedKeyList: [[1]])
            row.accessToken = AccessToken("")
            return row
        }
        bench.answer(query, invented, by: servers[0])
        #expect(bench.machine.directory.rows(of: friend.key).count == Directory.rowLimit)
        bench.answer(query, [friend.row(at: servers[1])], by: servers[1])
        let rows = bench.machine.directory.rows(of: friend.key)
        #expect(rows.count == Directory.rowLimit && rows.last?.installationID.string == "friends-phone")
        notify(&bench)
        let sent = try #require(bench.publishAll().requests.first)
        #expect(sent.server == servers[1] && sent.message.requests.map(\.installationID.string) == ["friends-phone"])
    }

    @Test func actsAsSoonAsEveryInstallationAskedForIsKnown() throws {
        var bench = knowing(2)
        bench.pass(.seconds(24 * 3600))
        notify(&bench, ["friends-phone"])
        let query = try #require(bench.publishAll().queries.first)
        bench.answer(query, [friend.row(at: servers[0])], by: servers[0])
        #expect(bench.publishAll().requests.map(\.server) == [servers[0]])
    }

    @Test func actsAfter3SecondsOnKnownDevices() throws {
        var bench = knowing(2)
        bench.pass(.seconds(24 * 3600))
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        bench.answer(query, [friend.row(at: servers[1])], by: servers[1])
        #expect(bench.publishAll().requests.isEmpty)
        bench.pass(.seconds(3))
        #expect(bench.publishAll().requests.map(\.server) == [servers[1]])
    }

    @Test func answerDoesNotBringAForgottenRegistrantBack() throws {
        var bench = knowing()
        bench.pass(.seconds(25 * 3600))
        bench.take(bench.machine.refresh(friend.key, at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        bench.take(bench.machine.forget(friend.key))
        bench.answer(query, [friend.row(at: servers[0])], by: servers[0])
        #expect(bench.machine.directory.registrants.isEmpty && bench.stored[.registrant(friend.key)] == nil)
    }

    /// The message would query servers about the registrant, and remember the answer.
    @Test func messageToAForgottenRegistrantIsCancelled() throws {
        var bench = knowing()
        let other = Friend()
        bench.take(bench.machine.watch(other.key))
        bench.take(bench.machine.advertised(by: other.key, from: nil, rows: [other.row(at: servers[1])], age: .zero, at: bench.now))
        _ = bench.publishAll()
        let message = OutgoingNotification(
            messageID: messageID, chatID: "chat", kind: .message, recipients: [.init(friend.key), .init(other.key)])
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
        let sent = bench.publishAll().requests
        bench.answer(try #require(sent.first { $0.server == servers[0] }), .wrongToken)
        bench.take(bench.machine.forget(friend.key))
        #expect(outcome(bench) == [.gaveUp(.cancelled)] && bench.machine.notifications.isActive)
        bench.answer(try #require(sent.first { $0.server == servers[1] }))
        #expect(outcome(bench) == [.gaveUp(.cancelled), .notified(by: servers[1])])
        bench.pass(.seconds(600))
        #expect(bench.machine.directory.registrants.keys.contains(friend.key) == false)
    }

    @Test func lateQueryAnswerCounts() throws {
        var bench = knowing(1)
        bench.pass(.seconds(24 * 3600))
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        bench.pass(.seconds(4))
        _ = bench.publishAll()
        bench.answer(query, [friend.row(at: servers[0])], by: servers[0])
        bench.pass(.seconds(5))
        #expect(bench.publishAll().requests.count == 1)
    }

    @Test(arguments: [[[1, 2]], []] as [[[UInt8]]]) func deviceThatIsForOthersIsNotTried(list: [[UInt8]]) throws {
        var bench = MachineBench()
        bench.take(bench.machine.watch(friend.key))
        var row = friend.row(at: servers[0], allowedKeyList: list)
        row.accessToken = AccessToken("")
        bench.take(bench.machine.advertised(by: friend.key, from: nil, rows: [row], age: .zero, at: bench.now))
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        bench.answer(query, [row], by: servers[0])
        #expect(outcome(bench) == [.notAllowed] && bench.publishAll().requests.isEmpty)
    }

    @Test func deviceThatBecameForOthersIsNotAllowed() throws {
        var bench = knowing()
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first), .wrongToken)
        let query = try #require(bench.publishAll().queries.first)
        var row = friend.row(at: servers[0], version: 2)
        row.accessToken = AccessToken("")
        bench.answer(query, [row], by: servers[0])
        #expect(outcome(bench) == [.notAllowed])
    }

    @Test func registrantWithoutKnownDevicesIsGivenUp() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: [PushServer(key: servers[0])]))
        bench.answer(try #require(bench.publishAll().registrations.first))
        _ = bench.publishAll()
        notify(&bench)
        var queryCount = 0
        while outcome(bench).isEmpty {
            queryCount += bench.publishAll().queries.count
            bench.pass(try #require(bench.machine.nextWakeUp).since(bench.now))
        }
        #expect(queryCount == 4 && outcome(bench) == [.gaveUp(.noDevice)])
    }

    @Test func otherEventsDoNotShortenThePauseBetweenTwoQueries() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: [PushServer(key: servers[0])]))
        bench.answer(try #require(bench.publishAll().registrations.first))
        _ = bench.publishAll()
        notify(&bench)
        while bench.publishAll().queries.count == 1 { bench.pass(.seconds(3)) }
        let end = try #require(bench.machine.notifications.messages[messageID]?.recipients.first?.search?.restsUntil?.time)
        bench.take(bench.machine.wake(at: bench.now))
        #expect(bench.now < end && bench.publishAll().queries.isEmpty)
        bench.pass(end.since(bench.now))
        #expect(bench.publishAll().queries.count == 1)
    }

    // MARK: Stored state

    @Test func outcomeIsRemembered24Hours() throws {
        var bench = knowing(1)
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first))
        _ = bench.publishAll()
        bench.restart(after: .seconds(23 * 3600))
        notify(&bench)
        #expect(bench.publishAll().requests.isEmpty)
        bench.now = bench.now + .seconds(2 * 3600)
        bench.take(bench.machine.advertised(by: friend.key, from: nil, rows: [friend.row(at: servers[0])], age: .zero, at: bench.now))
        notify(&bench)
        #expect(bench.publishAll().requests.count == 1)
    }

    @Test func oldOutcomesAreForgottenAtAStart() throws {
        var bench = knowing(1)
        notify(&bench)
        bench.answer(try #require(bench.publishAll().requests.first))
        bench.restart(after: .seconds(24 * 3600 - 1))
        #expect(bench.stored[.message(messageID)] != nil)
        bench.restart(after: .seconds(1))
        #expect(bench.machine.notifications.messages.isEmpty && bench.stored[.message(messageID)] == nil)
    }

    @Test func requestInFlightAtAKillGoesToTheSameServerFirst() throws {
        var bench = knowing(3)
        notify(&bench)
        let first = try #require(bench.publishAll().requests.first)
        bench.restart()
        let again = try #require(bench.publishAll().requests.first)
        #expect(again.server == first.server && again.request == first.request)
    }

    /// An app sets its settings again before it runs the client.
    @Test func settingsBeforeTheStartDoNotMoveRestoredMessages() {
        var bench = knowing()
        notify(&bench)
        #expect(bench.takeActions().requests.count == 1)
        bench.machine = ClientMachine(
            records: Array(bench.stored.values), installationID: bench.installationID,
            cryptography: ValueCryptography(publicKey: bench.publicKey, sealed: bench.sealed), jitter: Jitter(seed: 1), at: bench.now)
        let before = bench.machine.notifications.messages
        bench.take(bench.machine.setSending(bench.machine.own.isSending))
        #expect(bench.actions.isEmpty && bench.machine.notifications.messages == before)
        bench.take(bench.machine.start(at: bench.now))
        #expect(bench.publishAll().requests.count == 1)
    }

    /// The first run was cancelled before the request was published.
    @Test func secondStartSendsARequestAgain() throws {
        var bench = knowing()
        notify(&bench)
        let first = try #require(bench.takeActions().requests.first)
        bench.take(bench.machine.start(at: bench.now))
        let again = try #require(bench.publishAll().requests.first)
        #expect(again.server == first.server && again.request == first.request && again.ticket != first.ticket)
        bench.answer(again)
        #expect(outcome(bench) == [.notified(by: again.server)])
    }

    /// After the start, the answer to the earlier query can't be decrypted.
    @Test(arguments: [false, true]) func queryInFlightIsAskedAgainAfterAStart(_ isKilled: Bool) throws {
        var bench = knowing()
        bench.pass(.seconds(25 * 3600))
        notify(&bench, ["friends-phone"])
        #expect(bench.takeActions().queries.map(\.registrant) == [friend.key])
        if isKilled { bench.restart() } else { bench.take(bench.machine.start(at: bench.now)) }
        let query = try #require(bench.publishAll().queries.first)
        bench.answer(query, [friend.row(at: servers[0])], by: servers[0])
        #expect(bench.publishAll().requests.map(\.server) == [servers[0]])
    }

    @Test func cancelledMessageIsNotSentAgain() throws {
        var bench = knowing(3)
        notify(&bench)
        _ = bench.publishAll()
        bench.take(bench.machine.notifications.cancel(messageID))
        bench.pass(.seconds(3600))
        #expect(bench.publishAll().requests.isEmpty && outcome(bench) == [.gaveUp(.cancelled)])
    }

    @Test func contentIsForgottenWhenTheMessageIsFinished() throws {
        var bench = knowing(1)
        let message = OutgoingNotification(
            messageID: messageID, chatID: "chat", kind: .message, content: [1, 2, 3], recipients: [.init(friend.key)])
        bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
        let sent = try #require(bench.publishAll().requests.first)
        #expect(sent.message.requests.first?.message == [1, 2, 3])
        bench.answer(sent)
        #expect(bench.machine.notifications.messages[messageID]?.content == [])
    }
}
