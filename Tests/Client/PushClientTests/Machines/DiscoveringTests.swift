import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

/// Rules of accepting information about others' devices.
@Suite struct DiscoveringTests {
    private let server = newKey()
    private let friend = Friend()

    private func watching() -> MachineBench {
        var bench = MachineBench()
        bench.take(bench.machine.watch(friend.key))
        return bench
    }

    private func hear(_ bench: inout MachineBench, _ rows: [PushNotificationQueryInfo], by owner: PublicKey? = nil, age: Duration = .zero) {
        bench.take(
            bench.machine.advertised(
                by: owner ?? friend.key, from: InstallationID("friends-phone"), rows: rows, age: age, at: bench.now))
    }

    private func installations(_ bench: MachineBench) -> [String] {
        bench.machine.directory.rows(of: friend.key).map(\.installationID.string)
    }

    @Test func queriesOverTheLimitWaitForTheEndOfOthers() throws {
        var table = QueryTable()
        let now = MachineBench.start
        let keys = (0..<QueryTable.limit + 3).map { _ in newKey() }
        let tickets = keys.map { table.begin($0, servers: [server], at: now) }
        #expect(tickets.map { $0 == nil } == Array(repeating: false, count: QueryTable.limit) + [true, true, true])
        #expect(table.registrants == Set(keys) && keys.allSatisfy(table.isUnanswered))
        #expect(table.begin(keys[QueryTable.limit], servers: [server], at: now) == nil)
        #expect(table.beginWaiting(at: now, isNeeded: { _ in true })?.registrant == nil)
        // Queries about the client's own registration do not wait.
        #expect(table.begin(newKey(), servers: [server], ownCheckAt: server, at: now) != nil)
        table.forget(keys[QueryTable.limit])
        for ticket in tickets.prefix(2) { _ = table.end(try #require(ticket)) }
        for key in keys.suffix(2) {
            let begun = table.beginWaiting(at: now) { _ in true }
            let next = try #require(begun)
            #expect(next.registrant == key && next.servers == [server] && table.queries[next.ticket]?.registrant == key)
        }
        #expect(table.beginWaiting(at: now, isNeeded: { _ in true })?.registrant == nil)
        #expect(table.registrants == Set(keys[2..<QueryTable.limit] + keys.suffix(2)))
    }

    /// A message to many has its queries wait, and is cancelled.
    @Test func queriesThatNoMessageNeedsAnyMoreAreNotSentAndCallersComeFirst() throws {
        var bench = MachineBench()
        bench.machine.contactServers = [PushServer(key: server)]
        let friends = (0..<QueryTable.limit + 4).map { _ in newKey() }
        func notify(_ id: [UInt8], _ friends: ArraySlice<PublicKey>) {
            let message = OutgoingNotification(messageID: id, chatID: "chat", kind: .message, recipients: friends.map { .init($0) })
            bench.take(bench.machine.notify(message, chat: StatusHashes.chat(message.chatID), author: [9], at: bench.now))
        }
        notify([1], friends[..<QueryTable.limit])
        notify([2], friends[QueryTable.limit..<QueryTable.limit + 2])
        notify([3], friends[(QueryTable.limit + 2)...])
        let called = [friends[QueryTable.limit + 3], newKey()]
        for friend in called { bench.take(bench.machine.refresh(friend, at: bench.now)) }
        #expect(bench.publishAll().queries.count == QueryTable.limit)
        bench.take(bench.machine.notifications.cancel([2]))
        bench.pass(QueryTable.deadline)
        #expect(bench.publishAll().queries.map(\.registrant) == called + [friends[QueryTable.limit + 2]])
    }

    @Test func lateAnswersToTheLatestQueriesAreAccepted() throws {
        var table = QueryTable()
        var tickets: [QueryTable.Ticket] = []
        for _ in 0..<3000 {
            let begun = table.begin(newKey(), servers: [server], at: MachineBench.start)
            let ticket = try #require(begun)
            #expect(table.end(ticket) != nil)
            tickets.append(ticket)
        }
        #expect(table.queries.count <= QueryTable.rememberedCount)
        #expect(table.answered(tickets[0], by: server) == nil)
        for ticket in tickets.suffix(500) { #expect(table.answered(ticket, by: server) != nil) }
    }

    @Test func answersAboutUnknownRegistrantsWithoutRowsAreNotRemembered() {
        var directory = Directory(cryptography: ValueCryptography(publicKey: newKey(), sealed: SealedRegistrations()))
        directory.learn(answered: [], about: friend.key, by: server, at: MachineBench.start)
        #expect(directory.registrants.isEmpty)
    }

    @Test func firstUseWatchesTheTopicAndLooksTheLatestUp() {
        var bench = watching()
        #expect(bench.actions.contains(.watch([friend.key])) && bench.actions.lookUps == [[friend.key]])
        _ = bench.publishAll()
        bench.take(bench.machine.watch(friend.key))
        #expect(bench.actions.isEmpty)
    }

    /// The process was suspended, or the relay detached: advertisements of that time were not received.
    @Test func afterALongTimeWithoutMessagesAdvertisementsAreLookedUpWhenTheyAreNeeded() {
        var bench = watching()
        _ = bench.publishAll()
        bench.take(bench.machine.messagesMissed())
        #expect(bench.actions.isEmpty)
        for expected in [[[friend.key]], []] as [[[PublicKey]]] {
            bench.take(bench.machine.watch(friend.key))
            #expect(bench.takeActions().lookUps == expected)
            // A look-up that is under way is not repeated.
            bench.take(bench.machine.messagesMissed())
        }
    }

    @Test func afterALongTimeWithoutMessagesTheOwnAdvertisementIsLookedUpAtOnce() {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: [PushServer(key: server)]))
        bench.restart()
        #expect(bench.publishAll().lookUps == [[bench.publicKey]])
        bench.take(bench.machine.messagesMissed())
        #expect(bench.actions.lookUps == [[bench.publicKey]])
    }

    @Test func messagesMayBeMissedAfterTenMinutesWithoutAnAttachedRelay() {
        var watch = ReceptionWatch(at: .zero)
        // Suspended between two notes.
        let afterSuspension = [60, 659, 1259, 1319].map { watch.note(isAttached: true, at: .seconds($0)) }
        #expect(afterSuspension == [false, false, true, false])
        let detached = (22..<40).map { watch.note(isAttached: false, at: .seconds(60 * $0)) }
        #expect(!detached.contains(true))
        let afterwards = [2400, 2460].map { watch.note(isAttached: true, at: .seconds($0)) }
        #expect(afterwards == [true, false])
    }

    /// Ids are stored per registrant: a hundred ids of unlimited length would fill the store.
    @Test func longInstallationIDsAreNotRemembered() {
        var bench = watching()
        for byteCount in [0, InstallationID.maximumByteCount, InstallationID.maximumByteCount + 1] {
            let id = InstallationID(bytes: [UInt8](repeating: 65, count: byteCount))
            bench.take(bench.machine.advertised(by: friend.key, from: id, rows: [friend.row(at: server)], age: .zero, at: bench.now))
        }
        #expect(bench.machine.directory.registrants[friend.key]?.activities.map(\.installationID.bytes.count) == [128])
        #expect(installations(bench) == ["friends-phone"])
    }

    /// A messenger notes each message that it receives.
    @Test func activityOfStrangersAndUnusableIDsIsNotRemembered() {
        var bench = watching()
        let before = bench.machine.directory.registrants
        bench.take(bench.machine.directory.noteActivity(of: InstallationID("phone"), of: newKey(), at: bench.now))
        let long = InstallationID(bytes: [UInt8](repeating: 65, count: InstallationID.maximumByteCount + 1))
        bench.take(bench.machine.directory.noteActivity(of: long, of: friend.key, at: bench.now))
        #expect(bench.machine.directory.registrants == before)
        bench.take(bench.machine.directory.noteActivity(of: InstallationID("phone"), of: friend.key, at: bench.now))
        #expect(bench.machine.directory.registrants[friend.key]?.activities.map(\.installationID.string) == ["phone"])
    }

    @Test func subscriptionsOfForgottenRegistrantsEndInOrder() {
        var bench = watching()
        bench.take(bench.machine.forget(friend.key))
        bench.take(bench.machine.watch(friend.key))
        let key = friend.key
        #expect(bench.actions == [.watch([key]), .lookUp([key]), .unwatch(key), .watch([key]), .lookUp([key])])
        _ = bench.takeActions()
        bench.take(bench.machine.forget(key))
        #expect(bench.takeActions() == [.unwatch(key)])
        // The look-up that was under way subscribed again.
        bench.take(bench.machine.lookUpEnded([key], .found))
        #expect(bench.takeActions() == [.unwatch(key)] && bench.machine.directory.registrants.isEmpty)
    }

    @Test func discoveriesBeforeTheStartAreLookedUpWithTheRest() {
        let bench = MachineBench()
        var machine = ClientMachine(
            records: Array(bench.stored.values), installationID: bench.installationID,
            cryptography: ValueCryptography(publicKey: bench.publicKey, sealed: bench.sealed), jitter: Jitter(seed: 1), at: bench.now)
        machine.watch(friend.key)
        #expect(machine.settle(at: bench.now).actions.lookUps.isEmpty)
        machine.start(at: bench.now)
        #expect(machine.settle(at: bench.now).actions.lookUps == [[friend.key]])
    }

    @Test func rejectedAdvertisementIsReportedAndChangesNothing() {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        _ = bench.publishAll()
        bench.take(bench.machine.advertisementRejected(of: friend.key, .unreadable))
        #expect(bench.takeActions().events == [.advertisementRejected(friend.key, .unreadable)])
        hear(&bench, [friend.row(at: server, "tablet", grant: [1])])
        #expect(bench.takeActions().events == [.advertisementRejected(friend.key, .badRow)])
        #expect(bench.machine.advertisementFlaws == [friend.key: .badRow])
        #expect(installations(bench) == ["friends-phone"])
        hear(&bench, [friend.row(at: server)])
        #expect(bench.machine.advertisementFlaws.isEmpty)
        // This registrant is not watched.
        bench.take(bench.machine.advertisementRejected(of: newKey(), .unreadable))
        #expect(bench.takeActions().isEmpty)
    }

    @Test func oneLookUpAStartForAllRegistrants() {
        var bench = watching()
        let other = newKey()
        bench.take(bench.machine.watch(other))
        _ = bench.publishAll()
        bench.restart()
        #expect(bench.actions.lookUps.map(Set.init) == [[friend.key, other]])
        bench.pass(.seconds(7 * 24 * 3600))
        #expect(bench.publishAll().lookUps.count == 1)
    }

    /// The registrant may have advertised since the last look-up.
    @Test(arguments: [true, false]) func lookUpIsRepeatedAfterAStart(isFound: Bool) {
        var bench = watching()
        if isFound { hear(&bench, [friend.row(at: server)]) }
        bench.take(bench.machine.lookUpEnded([friend.key], .found))
        #expect(bench.machine.surroundings.isServerless(friend.key) == !isFound)
        bench.restart()
        #expect(bench.actions.lookUps == [[friend.key]])
        bench.take(bench.machine.watch(friend.key))
        #expect(!bench.machine.surroundings.isServerless(friend.key))
        #expect(bench.machine.directory.isLookingUp(friend.key) && !bench.machine.directory.isLookedUp(friend.key))
        #expect(bench.actions.lookUps.count == 1)
    }

    /// What is known from an earlier run may have changed.
    @Test(arguments: [LookUpResult.found, .noStore, .noAnswer]) func eachRunTellsWhetherAnythingAnswered(result: LookUpResult) {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        #expect(bench.machine.isAnswered(about: friend.key) == true)
        bench.restart()
        #expect(bench.machine.isAnswered(about: friend.key) == nil)
        bench.take(bench.machine.lookUpEnded([friend.key], result))
        // Without a store there was nothing to ask.
        #expect(bench.machine.isAnswered(about: friend.key) == (result != .noAnswer))
        hear(&bench, [friend.row(at: server)])
        #expect(bench.machine.isAnswered(about: friend.key) == true)
    }

    /// Without a store.
    @Test func aSilentServerIsNoAnswer() throws {
        var bench = watching()
        bench.machine.contactServers = [PushServer(key: server)]
        bench.take(bench.machine.lookUpEnded([friend.key], .noStore))
        bench.take(bench.machine.refresh(friend.key, at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        #expect(bench.machine.isAnswered(about: friend.key) == nil)
        bench.pass(QueryTable.deadline)
        #expect(bench.machine.isAnswered(about: friend.key) == false)
        bench.answer(query, [friend.row(at: server)], by: server)
        #expect(bench.machine.isAnswered(about: friend.key) == true)
    }

    @Test func advertisedRowsAreTaken() {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        #expect(bench.actions.events.contains(.discovered(friend.key, deviceCount: 1)))
        #expect(bench.machine.directory.usableRows(of: InstallationID("friends-phone"), of: friend.key, at: bench.now).count == 1)
    }

    @Test func advertisementsOfOthersDoNotCount() {
        var bench = watching()
        // The rows are copied into an advertisement signed by another key, which is not watched.
        hear(&bench, [friend.row(at: server)], by: newKey())
        #expect(installations(bench).isEmpty && bench.machine.directory.registrants.count == 1)
    }

    @Test func rowWithoutServerKeyOrWithAWrongGrantEndsTheReading() {
        var bench = watching()
        var keyless = friend.row(at: server, "b")
        keyless.serverPublicKey = []
        hear(&bench, [friend.row(at: server, "a"), keyless, friend.row(at: server, "c")])
        #expect(installations(bench) == ["a"])
        hear(&bench, [friend.row(at: server, "d"), friend.row(at: server, "e", grant: [1]), friend.row(at: server, "f")])
        #expect(installations(bench) == ["a", "d"])
    }

    /// Its device is for contacts only, and has no contacts.
    @Test func rowWithNeitherTokenNorListIsForOthers() {
        var bench = watching()
        var closed = friend.row(at: server, "closed")
        closed.accessToken = AccessToken("")
        hear(&bench, [closed, friend.row(at: server, "open")])
        #expect(installations(bench) == ["closed", "open"] && bench.machine.advertisementFlaws.isEmpty)
        #expect(bench.machine.directory.isForOthers(InstallationID("closed"), of: friend.key, at: bench.now))
    }

    @Test func grantForAnotherServerDoesNotCount() {
        var bench = watching()
        let other = newKey()
        let foreign = ValueCryptography.grant(by: friend.key, for: other, accessToken: friend.token)
        hear(&bench, [friend.row(at: server, grant: foreign)])
        #expect(installations(bench).isEmpty)
    }

    @Test func newestVersionOfEachInstallationAndServerWins() {
        var bench = watching()
        let other = newKey()
        var newer = friend
        newer.token = AccessToken("33333333-3333-4333-8333-333333333333")
        hear(&bench, [friend.row(at: server, version: 2), friend.row(at: other, version: 1)])
        hear(&bench, [newer.row(at: server, version: 3)])
        hear(&bench, [friend.row(at: server, version: 2)])
        let rows = bench.machine.directory.rows(of: friend.key)
        #expect(rows.first { $0.server == server }?.version == 3 && rows.first { $0.server == server }?.accessToken == newer.token)
        #expect(rows.first { $0.server == other }?.version == 1)
    }

    @Test func oldAdvertisementsTokenIsAskedForAgain() {
        var bench = watching()
        hear(&bench, [friend.row(at: server)], age: .seconds(25 * 3600))
        #expect(installations(bench).count == 1)
        #expect(bench.machine.directory.usableRows(of: InstallationID("friends-phone"), of: friend.key, at: bench.now).isEmpty)
    }

    @Test func listIsOpenedAndOneThatIsNotForUsIsRemembered() {
        var bench = watching()
        let mine = Array(friend.key.x.prefix(8)) + Array(bench.publicKey.x.prefix(8)) + friend.token.bytes
        hear(
            &bench, [friend.row(at: server, "open", allowedKeyList: [[1], mine]), friend.row(at: server, "closed", allowedKeyList: [[1]])])
        #expect(bench.machine.directory.activeInstallations(of: friend.key, limit: 5, at: bench.now).map(\.string) == ["open"])
        #expect(bench.machine.directory.isForOthers(InstallationID("closed"), of: friend.key, at: bench.now))
    }

    @Test func rowsAreBounded() {
        var bench = watching()
        hear(&bench, (0..<500).map { friend.row(at: server, "device-\($0)") })
        #expect(installations(bench).count == Directory.rowLimit)
    }

    // MARK: Devices that are taken back

    private func valid(_ bench: MachineBench) -> [PublicKey] {
        bench.machine.directory.validRows(of: friend.key).map(\.server)
    }

    @Test func devicesLatestAdvertisementReplacesItsRows() {
        var bench = watching()
        let other = newKey()
        hear(&bench, [friend.row(at: server), friend.row(at: server, "tablet")])
        _ = bench.publishAll()
        bench.pass(.seconds(10))
        // The phone moved to another server. What it says of the tablet may be outdated.
        hear(&bench, [friend.row(at: other, version: 2)])
        #expect(bench.takeActions().events == [.discovered(friend.key, deviceCount: 2)])
        #expect(Set(valid(bench)) == [server, other] && valid(bench).count == 2)
        bench.pass(.seconds(10))
        hear(&bench, [])
        #expect(bench.takeActions().events == [.discovered(friend.key, deviceCount: 1)])
        #expect(bench.machine.directory.validRows(of: friend.key).map(\.installationID.string) == ["tablet"])
        // The servers may be queried.
        #expect(bench.machine.directory.servers(of: friend.key) == [server, other])
    }

    /// In any order.
    @Test(arguments: [true, false]) func outdatedAdvertisementBringsNothingBack(isReadFirst: Bool) {
        var bench = watching()
        if isReadFirst { hear(&bench, [friend.row(at: server)], age: .seconds(60)) }
        hear(&bench, [], age: .seconds(30))
        hear(&bench, [friend.row(at: server)], age: .seconds(60))
        #expect(valid(bench).isEmpty)
        // Another device may have read only the first one.
        bench.take(
            bench.machine.advertised(
                by: friend.key, from: InstallationID("tablet"), rows: [friend.row(at: server)], age: .zero, at: bench.now))
        #expect(valid(bench).isEmpty)
        hear(&bench, [friend.row(at: server)])
        #expect(valid(bench) == [server])
    }

    @Test func theLaterReadOfTwoAdvertisementsOfTheSameTimeCounts() {
        var bench = watching()
        for isRegistered in [true, false, true] {
            hear(&bench, isRegistered ? [friend.row(at: server)] : [])
            #expect(valid(bench) == (isRegistered ? [server] : []))
        }
    }

    /// The rest of the advertisement can't be read.
    @Test func rejectedRestTakesNothingBack() {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        bench.pass(.seconds(10))
        hear(&bench, [friend.row(at: newKey(), grant: [1]), friend.row(at: server)])
        #expect(valid(bench) == [server])
    }

    @Test func takenBackRowsAreKept30Days() {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        bench.pass(.seconds(10))
        hear(&bench, [])
        bench.restart(after: .seconds(30 * 24 * 3600 - 1))
        #expect(installations(bench).count == 1)
        bench.restart(after: .seconds(1))
        #expect(installations(bench).isEmpty)
    }

    /// Every message would wait for a server that is gone. The time that this client was off does not count.
    @Test(arguments: [59, 60]) func rowsThatNothingConfirmsAreKept60DaysBesideConfirmedOnes(days: Int) {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        bench.restart(after: .seconds(days * 24 * 3600))
        #expect(installations(bench) == ["friends-phone"])
        // From another device: its advertisement withdraws no row of the first one.
        bench.take(
            bench.machine.advertised(
                by: friend.key, from: InstallationID("tablet"), rows: [friend.row(at: server, "tablet")], age: .zero, at: bench.now))
        bench.restart(after: .seconds(1))
        #expect(Set(installations(bench)) == (days < 60 ? ["friends-phone", "tablet"] : ["tablet"]))
    }

    @Test func serversAnswerConfirmsATakenBackDevice() throws {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        bench.pass(.seconds(10))
        hear(&bench, [])
        bench.take(bench.machine.refresh(friend.key, at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        bench.take(bench.machine.queryAnswered(query.ticket, by: server, rows: [friend.row(at: server)], at: bench.now))
        #expect(valid(bench) == [server])
    }

    @Test func answerWithoutATakenBackDeviceIsRemembered() throws {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        bench.pass(.seconds(10))
        hear(&bench, [])
        #expect(bench.machine.directory.devices(of: friend.key, at: bench.now).unconfirmed.count == 1)
        bench.take(bench.machine.refresh(friend.key, at: bench.now))
        let query = try #require(bench.publishAll().queries.first)
        bench.take(bench.machine.queryAnswered(query.ticket, by: server, rows: [], at: bench.now))
        #expect(bench.machine.directory.devices(of: friend.key, at: bench.now).unconfirmed.isEmpty)
    }

    @Test func knownDevicesSurviveARestart() {
        var bench = watching()
        hear(&bench, [friend.row(at: server)])
        let before = bench.machine.directory.rows(of: friend.key)
        bench.restart()
        #expect(bench.machine.directory.rows(of: friend.key) == before)
    }
}
