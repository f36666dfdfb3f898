import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import PushClient

/// The client's rules of discovering, querying and notifying in version 0.1.
@Suite("Version 0.1, client: notifying") struct V01NotifyingTests {
    private let servers = (0..<3).map { _ in newKey() }
    private let friend = PrivateKey.generate()
    private let token = V01Account.newToken()
    private let messageID: [UInt8] = [1, 2, 3]

    private func row(_ server: PublicKey, _ installation: String = "phone", token: AccessToken? = nil) -> V01.AdvertisementInfo {
        V01.AdvertisementInfo(
            publicKey: server.compressed, accessToken: token ?? self.token, installationID: InstallationID(installation))
    }

    private func answered(
        _ installation: String = "phone", token: AccessToken? = nil, sealed: [[UInt8]] = [], about key: PublicKey? = nil
    ) -> V01.QueryInfo {
        V01.QueryInfo(
            accessToken: sealed.isEmpty ? token ?? self.token : AccessToken(""), installationID: InstallationID(installation),
            publicKey: V01.KeyHash(of: key ?? friend.publicKey).bytes, encryptedAccessTokens: sealed)
    }

    private func knowing(_ rows: [V01.AdvertisementInfo]) -> V01MachineBench {
        var bench = V01MachineBench()
        bench.take(bench.machine.watch(friend.publicKey))
        bench.take(bench.machine.advertised(by: friend.publicKey, rows: rows, age: .zero, at: bench.now))
        _ = bench.publishAll()
        return bench
    }

    private func notify(_ bench: inout V01MachineBench, _ installations: [String] = []) {
        let recipient = OutgoingNotification.Recipient(friend.publicKey, installations: installations.map { InstallationID($0) })
        let message = OutgoingNotification(messageID: messageID, chatID: "chat", kind: .message, content: [7], recipients: [recipient])
        bench.take(bench.machine.notify(message, chat: V01.chatHash(message.chatID), author: [], at: bench.now))
    }

    private func acknowledge(_ bench: inout V01MachineBench, _ sent: SentRequest, _ error: V01.Acknowledgement.ErrorType? = nil) {
        bench.take(bench.machine.requestAcknowledged(sent.ticket, by: sent.server, error, at: bench.now))
    }

    private func answer(_ bench: inout V01MachineBench, _ query: SentQuery<Version01>, _ rows: [V01.QueryInfo], by server: PublicKey) {
        bench.take(bench.machine.queryAnswered(query.ticket, by: server, rows: rows, at: bench.now))
    }

    private func outcome(_ bench: V01MachineBench) -> [DeviceOutcome.Result] {
        bench.machine.notifications.messages[messageID]?.outcomes.map(\.result) ?? []
    }

    // MARK: Discovering

    /// Over libp2p no peer has a store: the search does not wait for a look-up that can't end, and the next one tries it again.
    @Test func lookUpThatIsImpossibleEndsTheSearch() {
        var bench = V01MachineBench()
        bench.take(bench.machine.watch(friend.publicKey))
        #expect(!bench.machine.isDiscovered(friend.publicKey, at: bench.now))
        bench.take(bench.machine.lookUpEnded([friend.publicKey], .noStore))
        #expect(bench.machine.isDiscovered(friend.publicKey, at: bench.now))
        _ = bench.takeActions()
        bench.take(bench.machine.watch(friend.publicKey))
        #expect(bench.takeActions() == [.lookUp([friend.publicKey])] && !bench.machine.isDiscovered(friend.publicKey, at: bench.now))
    }

    @Test func contactCodeTopicIsListenedToAndLookedUpAtFirst() throws {
        var bench = V01MachineBench()
        bench.take(bench.machine.watch(friend.publicKey))
        #expect(bench.takeActions() == [.watch([friend.publicKey]), .lookUp([friend.publicKey])])
        bench.restart()
        #expect(bench.takeActions() == [.watch([friend.publicKey]), .lookUp([friend.publicKey])])
    }

    @Test func newerAdvertisementReplacesAnOlderOne() {
        var bench = knowing([row(servers[0]), row(servers[1])])
        bench.take(bench.machine.advertised(by: friend.publicKey, rows: [row(servers[2])], age: .seconds(60), at: bench.now))
        #expect(bench.machine.directory.servers(of: friend.publicKey) == Set(servers.prefix(2)))
        bench.pass(.seconds(1))
        bench.take(bench.machine.advertised(by: friend.publicKey, rows: [row(servers[2])], age: .zero, at: bench.now))
        #expect(bench.machine.directory.servers(of: friend.publicKey) == [servers[2]])
        bench.pass(.seconds(1))
        bench.take(bench.machine.advertised(by: friend.publicKey, rows: [], age: .zero, at: bench.now))
        #expect(bench.machine.directory.rows(of: friend.publicKey).isEmpty)
    }

    @Test func unusableRowsAreLeftOut() {
        let bad = [
            V01.AdvertisementInfo(publicKey: [1, 2, 3], accessToken: token, installationID: InstallationID("a")),
            V01.AdvertisementInfo(
                publicKey: servers[0].compressed, accessToken: AccessToken("no uuid"), installationID: InstallationID("b")),
            V01.AdvertisementInfo(publicKey: servers[0].compressed, accessToken: token, installationID: InstallationID("")),
        ]
        let bench = knowing(bad + [row(servers[1])])
        #expect(bench.machine.directory.rows(of: friend.publicKey).map(\.server) == [servers[1]])
        #expect(bench.machine.advertisementFlaws[friend.publicKey] == .badRow)
    }

    @Test func advertisementsOfStrangersAreIgnored() {
        var bench = V01MachineBench()
        bench.take(bench.machine.advertised(by: friend.publicKey, rows: [row(servers[0])], age: .zero, at: bench.now))
        #expect(bench.machine.directory.rows(of: friend.publicKey).isEmpty && bench.stored[.registrant(friend.publicKey)] == nil)
    }

    // MARK: Querying

    @Test func advertisedTokenNeedsNoQuery() throws {
        var bench = knowing([row(servers[0])])
        notify(&bench)
        let actions = bench.publishAll()
        #expect(actions.queries.isEmpty && actions.requests.map(\.server) == [servers[0]])
    }

    @Test func advertisedServersAreQueriedWhenThereIsNoToken() throws {
        var bench = knowing([row(servers[0], token: AccessToken("")), row(servers[1], token: AccessToken(""))])
        // The servers that this client uses are not queried.
        bench.register(with: [servers[2]])
        _ = bench.publishAll()
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        #expect(Set(query.servers) == Set(servers.prefix(2)) && query.registrant == friend.publicKey)
        let sealed = V01.sealToken(token, from: friend, to: bench.identity.publicKey)
        answer(&bench, query, [answered(sealed: [[1], sealed])], by: servers[0])
        answer(&bench, query, [], by: servers[1])
        let sent = try #require(bench.publishAll().requests.first)
        #expect(sent.server == servers[0] && sent.request.entries.map(\.token) == [token])
    }

    @Test func ownServersAreQueriedAboutWhomNothingIsKnown() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[2]])
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        #expect(query.servers == [servers[2]])
        // Answers of other servers, and rows about other registrants, are not accepted.
        answer(&bench, query, [answered()], by: servers[0])
        answer(&bench, query, [answered(about: newKey())], by: servers[2])
        #expect(bench.machine.directory.rows(of: friend.publicKey).isEmpty)
    }

    @Test func listWithoutAnEntryForThisKeyIsForOthers() throws {
        var bench = knowing([row(servers[0], token: AccessToken(""))])
        notify(&bench)
        let query = try #require(bench.publishAll().queries.first)
        answer(&bench, query, [answered(sealed: [V01.sealToken(token, from: friend, to: newKey())])], by: servers[0])
        #expect(outcome(bench) == [.notAllowed] && bench.publishAll().requests.isEmpty)
    }

    @Test func answerDoesNotBringAForgottenRegistrantBack() throws {
        var bench = knowing([row(servers[0], token: AccessToken(""))])
        bench.take(bench.machine.refresh(friend.publicKey, also: [], at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        bench.take(bench.machine.forget(friend.publicKey))
        answer(&bench, query, [answered()], by: servers[0])
        #expect(bench.machine.directory.registrants.isEmpty && bench.stored[.registrant(friend.publicKey)] == nil)
    }

    /// A row without a token was never confirmed by its server: its advertisement counts.
    @Test(arguments: [59, 60]) func rowsThatNothingConfirmsAreKept60DaysBesideConfirmedOnes(days: Int) throws {
        var bench = knowing([row(servers[0], token: AccessToken("")), row(servers[1], "tablet")])
        bench.restart(after: .seconds(days * 24 * 3600))
        #expect(bench.machine.directory.rows(of: friend.publicKey).count == 2)
        bench.take(bench.machine.refresh(friend.publicKey, also: [], at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        answer(&bench, query, [answered("tablet")], by: servers[1])
        bench.restart(after: .seconds(1))
        #expect(Set(bench.machine.directory.rows(of: friend.publicKey).map(\.server)) == Set(days < 60 ? servers.prefix(2) : [servers[1]]))
    }

    @Test func serverDoesNotCrowdOutAnother() throws {
        var bench = V01MachineBench()
        bench.register(with: Array(servers.prefix(2)))
        _ = bench.publishAll()
        bench.take(bench.machine.refresh(friend.publicKey, also: [], at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        answer(&bench, query, (0..<200).map { answered("invented-\($0)") }, by: servers[0])
        answer(&bench, query, [answered(), answered(token: V01Account.newToken())], by: servers[1])
        let rows = bench.machine.directory.rows(of: friend.publicKey)
        #expect(rows.count == Directory.rowLimit)
        #expect(rows.filter { $0.server == servers[1] }.map(\.accessToken) == [token])
    }

    @Test func rowsThatAreThereTwiceCountOnce() {
        let bench = knowing([row(servers[0]), row(servers[0], token: V01Account.newToken())])
        #expect(bench.machine.directory.rows(of: friend.publicKey).map(\.accessToken) == [token])
    }

    @Test func atMost16AdvertisedServersAreQueried() throws {
        var bench = knowing((0..<50).map { _ in row(newKey(), token: AccessToken("")) })
        bench.take(bench.machine.refresh(friend.publicKey, also: [servers[0]], at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        #expect(query.servers.count == 16 && query.servers.contains(servers[0]))
    }

    @Test func otherDevicesInAnAnswerAreNews() throws {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        bench.take(bench.machine.watch(friend.publicKey))
        _ = bench.publishAll()
        for (installation, isNews) in [("phone", true), ("phone", false), ("tablet", true)] {
            bench.take(bench.machine.refresh(friend.publicKey, also: [servers[0]], at: bench.now))
            answer(&bench, try #require(bench.publishAll().queries.first), [answered(installation)], by: servers[0])
            #expect(bench.takeActions().events == (isNews ? [.discovered(friend.publicKey, deviceCount: 1)] : []), "\(installation)")
        }
    }

    @Test func queriedTokenOutlivesTheNextAdvertisement() throws {
        var bench = knowing([row(servers[0], token: AccessToken(""))])
        bench.take(bench.machine.refresh(friend.publicKey, also: [], at: bench.now))
        answer(&bench, try #require(bench.publishAll().queries.first), [answered()], by: servers[0])
        bench.pass(.seconds(10))
        bench.take(
            bench.machine.advertised(by: friend.publicKey, rows: [row(servers[0], token: AccessToken(""))], age: .zero, at: bench.now))
        notify(&bench)
        let actions = bench.publishAll()
        #expect(actions.queries.isEmpty && actions.requests.count == 1)
    }

    // MARK: Choosing devices and servers

    @Test func lookUpOfAStartIsAwaited() throws {
        var bench = knowing([row(servers[0], "a")])
        bench.restart(after: .seconds(60))
        notify(&bench)
        #expect(bench.takeActions().requests.isEmpty)
        bench.take(bench.machine.advertised(by: friend.publicKey, rows: [row(servers[0], "b")], age: .zero, at: bench.now))
        bench.take(bench.machine.lookUpEnded([friend.publicKey], .found))
        #expect(bench.publishAll().requests.flatMap { $0.request.entries.map(\.device.installationID.string) } == ["b"])
    }

    @Test func threeMostRecentlyActiveDevicesByOneServer() throws {
        var bench = knowing(["a", "b", "c", "d", "e"].flatMap { name in servers.map { row($0, name) } })
        for (index, name) in ["d", "a", "e"].enumerated() {
            let time = bench.now + .seconds(index + 1)
            bench.take(bench.machine.directory.noteActivity(of: InstallationID(name), of: friend.publicKey, at: time))
        }
        notify(&bench)
        let sent = bench.publishAll().requests
        #expect(sent.count == 1)
        #expect(Set(sent[0].request.entries.map(\.device.installationID.string)) == ["a", "d", "e"])
    }

    @Test func devicesAtDifferentServersHaveOneServerEach() throws {
        var bench = knowing([row(servers[0], "a"), row(servers[1], "b", token: V01Account.newToken()), row(servers[0], "c")])
        notify(&bench)
        let sent = bench.publishAll().requests
        #expect(Set(sent.map(\.server)) == Set(servers.prefix(2)))
        #expect(sent.flatMap { $0.request.entries.map(\.device.installationID.string) }.sorted() == ["a", "b", "c"])
    }

    /// A token stands for all devices of its record.
    @Test func requestHasEachTokenOnce() throws {
        let ackKey = try #require(V01.AckKey(randomBytes(32)))
        var bench = knowing([row(servers[0], "a"), row(servers[0], "b")])
        notify(&bench)
        let request = V01.Request(try #require(bench.publishAll().requests.first).request, ackKey: ackKey)
        #expect(request.requests == [V01.PushNotification(accessToken: token, chatID: V01.chatHash("chat"))])
        #expect(request.message == [7] && request.messageID == Array("010203".utf8) && request.ackKey == ackKey.named)
    }

    @Test func anotherServerAfter3Seconds() throws {
        var bench = knowing(servers.map { row($0) })
        notify(&bench)
        var asked: [PublicKey] = []
        for _ in 0..<3 {
            asked += bench.publishAll().requests.map(\.server)
            bench.pass(.milliseconds(2900))
            #expect(bench.publishAll().requests.isEmpty)
            bench.pass(.milliseconds(200))
        }
        #expect(Set(asked) == Set(servers) && asked.count == 3)
    }

    @Test func acknowledgedSuccessIsDone() throws {
        var bench = knowing(servers.prefix(2).flatMap { [row($0, "a"), row($0, "b")] })
        notify(&bench)
        let sent = try #require(bench.publishAll().requests.first)
        acknowledge(&bench, SentRequest(ticket: sent.ticket, server: servers[2], request: sent.request))
        #expect(outcome(bench).isEmpty)
        acknowledge(&bench, sent)
        #expect(outcome(bench) == [.notified(by: sent.server), .notified(by: sent.server)])
        bench.pass(.seconds(3600))
        #expect(bench.publishAll().requests.isEmpty)
    }

    @Test func lateAcknowledgementCounts() throws {
        var bench = knowing([row(servers[0]), row(servers[1])])
        notify(&bench)
        let first = try #require(bench.publishAll().requests.first)
        bench.pass(.milliseconds(3100))
        #expect(bench.publishAll().requests.count == 1)
        acknowledge(&bench, first)
        #expect(outcome(bench) == [.notified(by: first.server)])
    }

    @Test func badTokenQueriesAgainOnce() throws {
        let fresh = V01Account.newToken()
        var bench = knowing([row(servers[0])])
        notify(&bench)
        acknowledge(&bench, try #require(bench.publishAll().requests.first), .badToken)
        var actions = bench.publishAll()
        let query = try #require(actions.queries.first)
        #expect(actions.requests.isEmpty && query.servers == [servers[0]])
        answer(&bench, query, [answered(token: fresh)], by: servers[0])
        let again = try #require(bench.publishAll().requests.first)
        #expect(again.request.entries.map(\.token) == [fresh] && again.request.messageID == messageID)
        acknowledge(&bench, again, .badToken)
        // It is not requested again in any round.
        for _ in 0..<60 {
            bench.pass(.seconds(10))
            actions = bench.publishAll()
            #expect(actions.queries.isEmpty && actions.requests.isEmpty)
        }
        #expect(outcome(bench) == [.gaveUp(.noServer)])
    }

    /// A refused token that came from a query also causes another query.
    @Test func badTokenOfAQueryQueriesAgainOnce() throws {
        var bench = knowing([row(servers[0], token: AccessToken(""))])
        notify(&bench, ["phone"])
        for token in [token, V01Account.newToken()] {
            let query = try #require(bench.publishAll().queries.first)
            answer(&bench, query, [answered(token: token)], by: servers[0])
            acknowledge(&bench, try #require(bench.publishAll().requests.first), .badToken)
        }
        for _ in 0..<60 {
            bench.pass(.seconds(10))
            #expect(bench.publishAll().queries.isEmpty)
        }
    }

    /// The first run was cancelled before the query was published.
    @Test func secondStartAsksTheSameServersAgain() throws {
        var bench = knowing([])
        bench.take(bench.machine.refresh(friend.publicKey, also: [servers[1]], at: bench.now))
        #expect(bench.takeActions().queries.map(\.servers) == [[servers[1]]])
        bench.take(bench.machine.start(at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        answer(&bench, query, [answered()], by: servers[1])
        #expect(bench.machine.directory.servers(of: friend.publicKey) == [servers[1]])
    }

    @Test func internalErrorAsksTheSameServerAgain() throws {
        var bench = knowing([row(servers[0]), row(servers[1])])
        notify(&bench)
        let sent = try #require(bench.publishAll().requests.first)
        acknowledge(&bench, sent, .internalError)
        #expect(bench.publishAll().requests.isEmpty)
        bench.pass(.milliseconds(3100))
        let again = try #require(bench.publishAll().requests.first)
        #expect(again.server == sent.server && again.request == sent.request)
        acknowledge(&bench, again)
        #expect(outcome(bench) == [.notified(by: sent.server)])
    }

    @Test func givesUpWithinTheAgeOfTheMessage() throws {
        var bench = knowing([row(servers[0])])
        notify(&bench)
        var count = 0
        while outcome(bench).isEmpty {
            count += bench.publishAll().requests.count
            bench.pass(.seconds(1))
        }
        #expect(count == NotificationMachine.roundLimit && bench.now.since(V01MachineBench.start) <= .seconds(600))
    }
}
