import Delivery
import Foundation
import NodeAssembly
import Core
import RateLimits
import SessionProtocol
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import SessionServer

@Suite("Session: stored subscriptions")
struct SubscriptionStorageTests {
    private let fixture: SessionStoreFixture
    private let account: SessionAccount
    private let device = SessionDevice()

    init() throws {
        fixture = try SessionStoreFixture()
        account = try .sessionID()
    }

    private func error(_ answer: RequestAnswer?) -> RequestError.Code? {
        if case .failed(let error) = answer { error.code } else { nil }
    }

    @Test func aRenewalReplacesEverythingAndKeepsTheRow() async throws {
        let first = try await fixture.apply([.subscribe(account.subscription(device, namespaces: [0], wantsData: true))])
        #expect(first.answers == [.added])
        let renewed = SessionDevice(device.service, token: device.token)
        let second = try await fixture.apply([.subscribe(account.subscription(renewed, namespaces: [1, 2], wantsData: false))])
        #expect(second.answers == [.updated])
        let records = try fixture.records(of: account)
        #expect(records.map(\.namespaces) == [[1, 2]])
        #expect(records.map(\.wantsData) == [false])
        let rows = try fixture.rows(of: account).map { SubscriptionID(rawValue: $0.row) }
        let entry = records[0].monitorEntry.bytes.count
        #expect(second.monitoring == [.set(MonitoredSubscription(id: rows[0], account: account.id, entryByteCount: entry))])
    }

    /// A name that ends in the body and is subscribed again pays twice, and is counted once.
    @Test func newSubscriptionsAreChargedOnceWhenTheyAreDecidedAgain() async throws {
        var few = Limits.none
        for text in ["new-registrations=3/d", "registration-count=3"] { try few.set(text) }
        let limits = SessionLimits(few)
        let (now, network) = (Timestamp.now(), SenderNetwork(nil))
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: 100)
        let requests: [SessionRequest] = [
            .subscribe(account.subscription(device, at: now.seconds - 2)),
            .unsubscribe(account.unsubscription(device, at: now.seconds - 1)),
            .subscribe(account.subscription(device, at: now.seconds)),
            .subscribe(account.subscription(SessionDevice(), at: now.seconds)),
        ]
        let command = fixture.subscriptions.apply(requests, rules, at: now.seconds) { limits.admitsNew($0, from: network, at: now) }
        let applied = try await fixture.store.commit(command.decidedOnce(in: fixture.store))
        #expect(applied.answers == [.added, .removed(true), .added, .added])
        limits.count(applied)
        #expect(limits.limiter.exhausted() == nil && limits.limiter.exhausted(devices: 2) == .registrationCount)
    }

    @Test func pubkeyServiceAndTokenTellSubscriptionsApart() async throws {
        let other = try SessionAccount.group()
        let token = device.token
        let requests: [SessionRequest] = [
            .subscribe(account.subscription(SessionDevice(.apns, token: token))),
            .subscribe(account.subscription(SessionDevice(.apnsSandbox, token: token))),
            .subscribe(other.subscription(SessionDevice(.apns, token: token))),
            .subscribe(account.subscription(SessionDevice(.apns))),
        ]
        #expect(try await fixture.apply(requests).answers == [.added, .added, .added, .added])
        #expect(try fixture.rows(of: account).map(\.service) == [.apns, .apnsSandbox, .apns])
        #expect(try await fixture.apply([requests[1]]).answers == [.updated])
    }

    @Test func aReplayedSubscriptionIsRefused() async throws {
        try await fixture.subscribe(account, device, at: .now)
        let older = try await fixture.apply([.subscribe(account.subscription(device, wantsData: false, at: .now - 100))])
        #expect(error(older.answers.first) == .error)
        #expect(try fixture.records(of: account).map(\.wantsData) == [true])
        let unsubscription = try await fixture.apply([.unsubscribe(account.unsubscription(device, at: .now - 100))])
        #expect(error(unsubscription.answers.first) == .error)
    }

    @Test func anUnsubscriptionLeavesANameThatRefusesOlderSubscriptionsFor15Days() async throws {
        let now = Int64.now
        try await fixture.subscribe(account, device, at: now - 10)
        let gone = try await fixture.apply([.unsubscribe(account.unsubscription(device, at: now))], at: now)
        #expect(gone.answers == [.removed(true)])
        #expect(try fixture.rows(of: account).isEmpty)
        let again = try await fixture.apply([.unsubscribe(account.unsubscription(device, at: now))], at: now)
        #expect(again.answers == [.removed(false)])
        let old = SessionRequest.subscribe(account.subscription(device, at: now - 10))
        #expect(try await error(fixture.apply([old], at: now).answers.first) == .error)
        try await Subscriptions.forgetNames(in: fixture.store, at: now + 15 * .day - 1)
        #expect(try await error(fixture.apply([old], at: now).answers.first) == .error)
        try await Subscriptions.forgetNames(in: fixture.store, at: now + 15 * .day)
        #expect(try await fixture.apply([old], at: now).answers == [.added])
    }

    private func aheadTimes(in store: (any Store)? = nil) throws -> [AheadTimeExport] {
        var times: [AheadTimeExport] = []
        try Subscriptions.forEachAheadTime(in: store ?? fixture.store) {
            times.append($0); return true
        }
        return times
    }

    @Test(arguments: SecondReportTests.Engine.allCases)
    func aDeviceWhoseClockWasAheadCanRenewAndLeave(engine: SecondReportTests.Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let (account, device, now) = (try SessionAccount.sessionID(), SessionDevice(), Int64.now)
        func subscribe(_ signedAt: Int64, at time: Int64) async throws -> RequestAnswer? {
            try await fixture.apply([.subscribe(account.subscription(device, at: signedAt))], at: time).answers.first
        }
        func unsubscribe(_ signedAt: Int64, at time: Int64) async throws -> RequestAnswer? {
            try await fixture.apply([.unsubscribe(account.unsubscription(device, at: signedAt))], at: time).answers.first
        }
        func isRefused(_ answer: RequestAnswer?) -> Bool { if case .failed(let error) = answer { error.code == .error } else { false } }
        let ahead = now + 36_000
        #expect(try await subscribe(ahead, at: now) == .added)
        // The same request, repeated.
        #expect(try await subscribe(ahead, at: now + 1) == .updated)
        #expect(try await isRefused(subscribe(now - 301, at: now + 1)))
        #expect(try await subscribe(now - 300, at: now + 2) == .updated)
        #expect(try await isRefused(subscribe(ahead, at: now + 3)))
        #expect(try await subscribe(ahead + 1, at: now + 4) == .updated)
        #expect(try await unsubscribe(now + 5, at: now + 5) == .removed(true))
        for replayed in [ahead, ahead + 1] { #expect(try await isRefused(subscribe(replayed, at: now + 6))) }
        #expect(try await isRefused(subscribe(now + 4, at: now + 6)))
        #expect(try await subscribe(now + 6, at: now + 6) == .added)
        // Kept until it is 14 days old and would be refused anyway.
        let last = ahead + 14 * .day
        try await Subscriptions.forgetNames(in: fixture.store, at: last)
        #expect(try await isRefused(subscribe(ahead, at: last)))
        try await Subscriptions.forgetNames(in: fixture.store, at: last + 2)
        #expect(try aheadTimes(in: fixture.store).isEmpty)
    }

    @Test func anUnsubscriptionThatWasAheadIsNoneTwice() async throws {
        let now = Int64.now
        try await fixture.subscribe(account, device, at: now - 10)
        let gone = SessionRequest.unsubscribe(account.unsubscription(device, at: now + 36_000))
        #expect(try await fixture.apply([gone], at: now).answers == [.removed(true)])
        #expect(try await fixture.apply([gone], at: now + 1).answers == [.removed(false)])
        #expect(try await fixture.apply([.subscribe(account.subscription(device, at: now + 2))], at: now + 2).answers == [.added])
        #expect(try await error(fixture.apply([gone], at: now + 3).answers.first) == .error)
        #expect(try fixture.rows(of: account).count == 1)
    }

    @Test func rowsOfEarlierReleasesAreOrderedByTheNextRequest() async throws {
        let now = Int64.now
        let ahead = now + 36_000
        // An earlier release stores it without its arrival.
        try await fixture.apply([.subscribe(account.subscription(device, at: ahead))], at: now)
        try await fixture.store.commit(.change([Mutation(SessionStorage.aheadTime, .delete(where: [.present(.id)]))()]))
        #expect(try aheadTimes().isEmpty)
        let old = try await fixture.apply([.subscribe(account.subscription(device, at: now + 99))], at: now + 400)
        #expect(error(old.answers.first) == .error)
        let renewed = try await fixture.apply([.subscribe(account.subscription(device, at: now + 100))], at: now + 400)
        #expect(renewed.answers == [.updated])
        #expect(try aheadTimes().map(\.signedAt) == [ahead])
        let replayed = try await fixture.apply([.subscribe(account.subscription(device, at: ahead))], at: now + 500)
        #expect(error(replayed.answers.first) == .error)
    }

    @Test func timesOfADeviceAreBounded() async throws {
        let now = Int64.now
        let requests = (1...200).map { SessionRequest.subscribe(account.subscription(device, at: now + 1000 + Int64($0))) }
        for start in stride(from: 0, to: 200, by: 10) { try await fixture.apply(Array(requests[start..<start + 10]), at: now) }
        #expect(try aheadTimes().map(\.signedAt) == (169...200).map { now + 1000 + Int64($0) })
    }

    @Test func anArrayIsDecidedInOrderAsOneTransaction() async throws {
        let other = SessionDevice()
        let answers = try await fixture.apply([
            .subscribe(account.subscription(device, at: .now - 5)), .subscribe(account.subscription(device, wantsData: false, at: .now)),
            .subscribe(account.subscription(other)), .unsubscribe(account.unsubscription(other, at: .now)),
            .unsubscribe(account.unsubscription(other, at: .now)),
            .subscribe(account.subscription(device, at: .now - 50)),
        ])
        #expect(answers.answers.prefix(5) == [.added, .updated, .added, .removed(true), .removed(false)])
        #expect(error(answers.answers.last) == .error)
        #expect(try fixture.records(of: account).map(\.wantsData) == [false])
        #expect(answers.monitoring.count == 1)
    }

    @Test func anUnsubscribedRowThatIsSubscribedAgainInTheSameArrayIsAnotherRow() async throws {
        try await fixture.subscribe(account, device, at: .now - 5)
        try await fixture.notify(message(for: account))
        #expect(try fixture.waiting.count == 1)
        let row = try fixture.rows(of: account)[0].row
        let applied = try await fixture.apply([
            .unsubscribe(account.unsubscription(device, at: .now)), .subscribe(account.subscription(device, at: .now + 1)),
        ])
        #expect(applied.answers == [.removed(true), .added])
        let rows = try fixture.rows(of: account)
        #expect(rows.count == 1 && rows[0].row != row)
        #expect(applied.monitoring.contains(.remove(SubscriptionID(rawValue: row))))
        #expect(try fixture.waiting.isEmpty)
    }

    @Test func devicesAreLimitedWithinAnArrayToo() async throws {
        let devices = (0..<5).map { _ in SessionDevice() }
        let many = try await fixture.apply(devices.map { .subscribe(account.subscription($0)) }, limit: 3)
        #expect(many.answers.prefix(3) == [.added, .added, .added])
        #expect(many.answers.suffix(2).map(error) == [.error, .error])
        #expect(try await fixture.apply([.subscribe(account.subscription(devices[0]))], limit: 3).answers == [.updated])
        let exchanged = try await fixture.apply(
            [.unsubscribe(account.unsubscription(devices[1])), .subscribe(account.subscription(devices[4]))], limit: 3)
        #expect(exchanged.answers == [.removed(true), .added])
    }

    @Test func newSubscriptionsCanBeRefusedAndRenewalsAreNot() async throws {
        try await fixture.subscribe(account, device)
        let rules = SubscriptionRules(availableServices: [.firebase])
        let refusal = RequestError(.error, "no more")
        let requests: [SessionRequest] = [.subscribe(account.subscription(device)), .subscribe(account.subscription())]
        let applied = try await fixture.store.commit(fixture.subscriptions.apply(requests, rules, at: .now) { _ in refusal })
        #expect(applied.answers == [.updated, .failed(refusal)])
    }

    @Test func devicesWithADoubtfulTokenAreCountedByService() async throws {
        for service in [PushService.apns, .huawei, .huawei] { try await fixture.subscribe(account, SessionDevice(service)) }
        let doubted = try fixture.rows(of: account).filter { $0.service == .huawei }.map(\.row)
        let doubt = TokenDoubt(version: 1, at: .now())
        try await fixture.store.commit(.change(doubted.map { DeliveryStorage.setDoubt(doubt, of: Subscriptions.device($0)) }))
        let figures = try fixture.store.read(Subscriptions.figures(at: .now))
        #expect(figures.services == [.apns: 1, .huawei: 2] && figures.inDoubt == [.huawei: 2])
    }

    @Test func anExpiredSubscriptionDoesNotCountAndIsReplaced() async throws {
        let then = Int64.now - 14 * .day + 1
        try await fixture.apply([.subscribe(account.subscription(device, at: then))], at: then)
        let row = try fixture.rows(of: account)[0].row
        let now = then + 14 * .day
        #expect(try fixture.store.read(Subscriptions.figures(at: now - 1)).services == [.firebase: 1])
        #expect(try fixture.store.read(Subscriptions.figures(at: now)).services.isEmpty)
        #expect(try [now - 1, now].map { try fixture.store.read(Subscriptions.count(at: $0)) } == [1, 0])
        let gone = try await fixture.apply([.unsubscribe(account.unsubscription(device, at: now))], at: now)
        #expect(gone.answers == [.removed(false)])
        let renewed = try await fixture.apply([.subscribe(account.subscription(device, at: now))], at: now, limit: 1)
        #expect(renewed.answers == [.added])
        #expect(try fixture.rows(of: account).map(\.row).allSatisfy { $0 > row })
    }

    @Test func expiredSubscriptionsAreRemovedWithWhatWaitsForThem() async throws {
        let then = Int64.now - 14 * .day + 5
        try await fixture.apply([.subscribe(account.subscription(device, at: then))], at: then)
        try await fixture.subscribe(account, SessionDevice())
        try await fixture.notify(message(for: account))
        #expect(try fixture.waiting.count == 2)
        let rows = try fixture.rows(of: account)
        let expired = try await fixture.store.commit(Subscriptions.expire(at: then + 14 * .day, limit: 100))
        #expect(expired == [SubscriptionID(rawValue: rows[0].row)])
        #expect(try fixture.waiting.map(\.device.row) == [rows[1].row])
        #expect(try fixture.rows(of: account).map(\.row) == [rows[1].row])
    }

    @Test func aDeadTokenEndsItsSubscriptionsUnderEveryPubkey() async throws {
        let other = try SessionAccount.group()
        let neighbour = SessionDevice()
        for owner in [account, other] { try await fixture.subscribe(owner, device) }
        try await fixture.subscribe(account, neighbour)
        // The same characters are a different token at another service.
        try await fixture.subscribe(account, SessionDevice(.huawei, token: device.token))
        let dead = try fixture.rows(of: other)[0]
        let version = UInt64(bitPattern: dead.signedAt)
        try await fixture.store.commit(fixture.source.endDevice(dead.row, version: version + 1, at: .now()))
        #expect(try fixture.rows(of: other).count == 1)
        try await fixture.store.commit(fixture.source.endDevice(dead.row, version: version, at: .now()))
        #expect(try fixture.rows(of: other).isEmpty)
        #expect(try fixture.records(of: account).map(\.token.value) == [neighbour.token, device.token])
    }

    @Test func entriesForStorageServersAreThoseOfSubscriptionsThatCount() async throws {
        let other = try SessionAccount.group()
        try await fixture.subscribe(account, device)
        try await fixture.subscribe(other, device)
        let rows = try [account, other].map { SubscriptionID(rawValue: try fixture.rows(of: $0)[0].row) }
        let gone = SubscriptionID(rawValue: 999)
        let entries = try fixture.store.read(fixture.subscriptions.monitorEntries(of: rows + [gone]))
        #expect(Set(entries.keys) == Set(rows))
        #expect(try fixture.records(of: account)[0].monitorEntry.bytes == entries[rows[0]]?.bytes)
    }

    @Test func allAccountsAreFoundAtTheStart() async throws {
        var expected: Set<AccountID> = []
        for _ in 0..<20 {
            let account = try SessionAccount.group()
            expected.insert(account.id)
            try await fixture.subscribe(account, SessionDevice())
        }
        for (size, count) in [(1, 20), (7, 3), (100, 1)] as [(Int64, Int)] {
            var found: [AccountID] = []
            let ranges = try fixture.store.read(Subscriptions.ranges(of: size))
            #expect(ranges.count == count)
            for range in ranges {
                try fixture.subscriptions.forEachAccount(in: fixture.store, range) { subscription in
                    found.append(subscription.account)
                    #expect(subscription.entryByteCount > 100)
                }
            }
            #expect(found.count == 20)
            #expect(Set(found) == expected)
        }
    }

    @Test func damagedRowIDsHideNoOtherAccounts() async throws {
        try await fixture.subscribe(account, device)
        let damaged = Mutation(
            SessionStorage.subscription,
            .upsert([
                .id, SessionStorage.name, SessionStorage.account, SessionStorage.token, SessionStorage.service, SessionStorage.signedAt,
                SessionStorage.entryByteCount, SessionStorage.sealed,
            ]))
        for id in [Int64.min, 0, .max] {
            let (bytes, one) = (Value.bytes(withUnsafeBytes(of: id, Array.init)), Value.integer(1))
            try await fixture.store.commit(.change([damaged(.integer(id), bytes, bytes, bytes, one, one, one, bytes)]))
            var found: [AccountID] = []
            for range in try fixture.store.read(Subscriptions.ranges(of: 10)) {
                try fixture.subscriptions.forEachAccount(in: fixture.store, range) { found.append($0.account) }
            }
            #expect(found == [account.id])
        }
    }

    @Test func nothingSecretAndNoPubkeyIsInTheFilesInClear() async throws {
        try await fixture.subscribe(account, device)
        let record = try fixture.records(of: account)[0]
        let secrets =
            [Array(device.token.utf8), record.authority.signature.value, account.id.bytes, account.id.key]
            + [record.encryptionKey.secret.withBytes { Array($0) }]
        for file in try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path) {
            let data = try Data(contentsOf: URL(fileURLWithPath: fixture.folder.path + "/" + file))
            for secret in secrets { #expect(data.range(of: Data(secret)) == nil) }
        }
    }

    @Test(arguments: SecondReportTests.Engine.allCases)
    func importedSubscriptionsStayDelivered(engine: SecondReportTests.Engine) async throws {
        let target = try SessionStoreFixture(at: try await engine.location())
        let other = SessionDevice()
        try await fixture.subscribe(account, device)
        try await fixture.subscribe(account, other)
        let first = try #require(try fixture.rows(of: account).first)
        #expect(!first.wasDelivered)
        try await fixture.store.commit(.change([Subscriptions.noteDelivered(first.row, at: .now())]))
        for summary in try fixture.rows(of: account) {
            let merged = target.subscriptions.merge(
                try fixture.subscriptions.open(summary), summary.service, wasDelivered: summary.wasDelivered, at: .now)
            #expect(try await target.store.commit(merged))
        }
        #expect(try target.rows(of: account).map(\.wasDelivered) == [true, false])
        try target.store.close()
    }

    @Test func exportedSubscriptionsAreImportedUnlessNewerOnesAreThere() async throws {
        let folder = try TemporaryFolder()
        let target = try NodeAssembly.store(in: folder.path, of: fixture.identity)
        let subscriptions = Subscriptions(target.sealer)
        try await fixture.subscribe(account, device, at: .now - 10)
        let old = try fixture.records(of: account)[0]
        #expect(try await target.commit(subscriptions.merge(old, .firebase, at: .now)))
        #expect(try await !target.commit(subscriptions.merge(old, .firebase, at: .now)))
        #expect(try await !target.commit(subscriptions.merge(old, .firebase, at: .now + 15 * .day)))
        try await fixture.subscribe(account, device, at: .now)
        #expect(try await target.commit(subscriptions.merge(try fixture.records(of: account)[0], .firebase, at: .now)))
        // The name of an ended subscription ends an older one in the target, and prevents its import.
        try await fixture.apply([.unsubscribe(account.unsubscription(device, at: .now + 5))])
        var names: [UnsubscribedNameExport] = []
        try Subscriptions.forEachLeftName(in: fixture.store) {
            names.append($0); return true
        }
        #expect(names.count == 1)
        for name in names { #expect(try await target.commit(Subscriptions.merge(name, at: .now()))) }
        #expect(try target.read(Subscriptions.ofAccount(subscriptions.accountHash(account.id))).isEmpty)
        #expect(try await !target.commit(subscriptions.merge(old, .firebase, at: .now)))
    }

    /// A file has both, the name first.
    @Test func aSubscriptionInTheSecondOfItsUnsubscriptionIsImported() async throws {
        let folder = try TemporaryFolder()
        let target = try NodeAssembly.store(in: folder.path, of: fixture.identity)
        let subscriptions = Subscriptions(target.sealer)
        let time = Int64.now
        try await fixture.subscribe(account, device, at: time - 10)
        try await fixture.apply([.unsubscribe(account.unsubscription(device, at: time))])
        try await fixture.subscribe(account, device, at: time)
        var names: [UnsubscribedNameExport] = []
        try Subscriptions.forEachLeftName(in: fixture.store) {
            names.append($0); return true
        }
        #expect(names.map(\.signedAt) == [time])
        // The second import changes nothing.
        for isFirst in [true, false] {
            for name in names { #expect(try await target.commit(Subscriptions.merge(name, at: .now())) == isFirst) }
            #expect(try await target.commit(subscriptions.merge(try fixture.records(of: account)[0], .firebase, at: .now)) == isFirst)
        }
        #expect(try target.read(Subscriptions.ofAccount(subscriptions.accountHash(account.id))).count == 1)
    }

    @Test func exportedTimesThatWereAheadStayReplays() async throws {
        let folder = try TemporaryFolder()
        let target = try NodeAssembly.store(in: folder.path, of: fixture.identity)
        let subscriptions = Subscriptions(target.sealer)
        try await fixture.apply([.subscribe(account.subscription(device, at: .now + 36_000))])
        let ahead = try fixture.records(of: account)[0]
        try await fixture.subscribe(account, device)
        let current = try fixture.records(of: account)[0]
        #expect(try await target.commit(subscriptions.merge(ahead, .firebase, at: .now)))
        // The later subscription, although its `sig_ts` is lower.
        #expect(try await target.commit(subscriptions.merge(current, .firebase, at: .now)))
        let times = try aheadTimes()
        #expect(times.count == 1)
        for time in times { #expect(try await target.commit(Subscriptions.merge(time))) }
        #expect(try await !target.commit(subscriptions.merge(ahead, .firebase, at: .now)))
    }
}
