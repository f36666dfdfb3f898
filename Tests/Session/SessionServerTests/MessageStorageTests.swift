@testable import Delivery
import Foundation
import Core
import SessionProtocol
import Storage
import Testing
import TestSupport
import WakuCrypto

@testable import SessionServer

@Suite("Session: notifications of a message")
struct MessageStorageTests {
    private let fixture: SessionStoreFixture
    private let account: SessionAccount

    init() throws {
        fixture = try SessionStoreFixture()
        account = try .sessionID()
    }

    @Test func eachDeviceThatWantsTheNamespaceIsNotifiedOnce() async throws {
        let devices = (0..<3).map { _ in SessionDevice() }
        try await fixture.apply([
            .subscribe(account.subscription(devices[0], namespaces: [-400, 0])),
            .subscribe(account.subscription(devices[1], namespaces: [0, 1])), .subscribe(account.subscription(devices[2], namespaces: [1])),
            .subscribe(try SessionAccount.group().subscription(devices[0])),
        ])
        let rows = try fixture.rows(of: account).map(\.row)
        let report = message(for: account, namespace: 0)
        let first = try await fixture.notify(report)
        #expect(first.queued.count == 2 && first.duplicates == 0 && first.isWanted)
        #expect(try fixture.waiting.map(\.device.row) == [rows[0], rows[1]])
        // The swarm's other servers report the same message.
        let second = try await fixture.notify(report)
        #expect(second.queued.isEmpty && second.duplicates == 2)
        #expect(try fixture.waiting.count == 2)
        let unwanted = try await fixture.notify(message(for: account, namespace: 7))
        #expect(unwanted.queued.isEmpty && !unwanted.isWanted)
    }

    @Test func aDeviceThatMissedTheFirstReportIsNotifiedByTheNext() async throws {
        try await fixture.subscribe(account, SessionDevice())
        let report = message(for: account)
        try await fixture.notify(report)
        try await fixture.subscribe(account, SessionDevice())
        let second = try await fixture.notify(report)
        #expect(second.queued.count == 1 && second.duplicates == 1)
    }

    @Test func reportsThatArePreparedTogetherMakeOneDelivery() async throws {
        try await fixture.subscribe(account, SessionDevice())
        let report = message(for: account)
        let prepared = try (0..<2).map { _ in try fixture.prepare(report) }
        let first = try await fixture.notify(prepared[0])
        let second = try await fixture.notify(prepared[1])
        #expect(first.queued.count == 1 && first.duplicates == 0)
        #expect(second.queued.isEmpty && second.duplicates == 1 && second.isWanted)
        let third = try await fixture.notify(report)
        #expect(third.queued.isEmpty && third.duplicates == 1 && third.isWanted)
    }

    @Test func messagesOfOneCommandAreEachNotifiedOnce() async throws {
        let other = try SessionAccount.group()
        for owner in [account, account, other] { try await fixture.subscribe(owner, SessionDevice()) }
        let (known, first, second) = (message(for: account), message(for: account), message(for: other))
        let prepared = try [known, first, second, first].map { try fixture.prepare($0) }
        try await fixture.notify(known)
        let rows = try (fixture.rows(of: account) + fixture.rows(of: other)).map(\.row)
        let notified = try await fixture.store.commit(fixture.subscriptions.notifyTogether(prepared)).map { try #require($0) }
        #expect(notified.map(\.queued.count) == [0, 2, 1, 0])
        #expect(notified.map(\.duplicates) == [2, 0, 0, 2])
        #expect(notified.flatMap(\.queued).map(\.waiting.device.row) == rows)
        // The same as in the outbox.
        #expect(try Array(fixture.waiting.dropFirst(2)) == notified.flatMap(\.queued).map(\.waiting))
        for (report, count) in [(first, 2), (second, 1)] { #expect(try await fixture.notify(report).duplicates == count) }
    }

    @Test func aReportThatIsKnownToHaveBeenMadeIsNeitherLookedUpNorEncrypted() async throws {
        for _ in 0..<2 { try await fixture.subscribe(account, SessionDevice()) }
        let report = message(for: account)
        let made = try await fixture.notify(report).queued.map(\.delivery)
        let known = made[0]
        let again = try fixture.store.read(fixture.preparation(report) { $0 == known })
        #expect(again.duplicates == 1 && again.isWanted && again.notifications.map(\.delivery) == [made[1]])
        // The store knows the other delivery.
        #expect(try await fixture.notify(again).duplicates == 2)
        let all = try fixture.store.read(fixture.preparation(report) { _ in true })
        #expect(all.duplicates == 2 && all.isWanted && all.notifications.isEmpty)
    }

    /// The writer reads and seals them.
    @Test func onlyNotificationsForAnotherKeyAreSealedAgain() async throws {
        let devices = [SessionDevice(), SessionDevice()]
        for device in devices { try await fixture.subscribe(account, device, at: .now - 60) }
        for _ in 0..<20 { try await fixture.notify(message(for: account)) }
        func cost(_ devices: [SessionDevice]) throws -> (readCount: Int, rowCount: Int, changeCount: Int) {
            try fixture.steps(of: devices.map { .subscribe(account.subscription($0)) })
        }
        let (same, other) = (try cost(devices), try cost([SessionDevice(token: devices[0].token), devices[1]]))
        #expect(same.rowCount < 10 && same.changeCount == 2)
        #expect(other.rowCount == same.rowCount + 20 && other.changeCount == same.changeCount + 20)
    }

    @Test func aBodyHas1000NotificationsSealedAgain() async throws {
        let devices = (0..<3).map { _ in SessionDevice() }
        for device in devices { try await fixture.subscribe(account, device, at: .now - 60) }
        for _ in 0..<4 {
            let prepared = try (0..<100).map { _ in try fixture.prepare(message(for: account)) }
            try await fixture.store.commit(fixture.subscriptions.notifyTogether(prepared))
        }
        let renewals = devices.map { SessionRequest.subscribe(account.subscription(SessionDevice(token: $0.token))) }
        #expect(try fixture.steps(of: renewals).changeCount == 3 + 999)
    }

    @Test func recentDeliveriesAreKnownFor24Hours() throws {
        let (recent, now) = (RecentDeliveries(), Timestamp.now())
        let deliveries = (0..<3).map { DeliveryID(hashing: [$0]) }
        recent.add(deliveries.prefix(2), at: now)
        #expect(deliveries.map { recent.contains($0, at: now) } == [true, true, false])
        #expect(recent.contains(deliveries[0], at: now + .seconds(24 * 3600 - 1)))
        #expect(!recent.contains(deliveries[0], at: now + .seconds(24 * 3600)))
    }

    @Test func aSubscriptionThatChangesMeanwhileHoldsUpNoOtherMessageOfTheCommand() async throws {
        let (ended, other) = (SessionDevice(), try SessionAccount.group())
        try await fixture.subscribe(account, ended, at: .now - 100)
        try await fixture.subscribe(account, SessionDevice())
        try await fixture.subscribe(other, SessionDevice())
        let prepared = try [message(for: account), message(for: other)].map { try fixture.prepare($0) }
        try await fixture.apply([.unsubscribe(account.unsubscription(ended))])
        let notified = try await fixture.store.commit(fixture.subscriptions.notifyTogether(prepared))
        #expect(notified.map { $0?.queued.count } == [nil, 1])
        // Nothing of the first message was stored: it can be prepared again.
        #expect(try fixture.waiting.count == 1)
        #expect(try await fixture.notify(prepared[0]).queued.count == 1)
    }

    @Test func aLimitedDeviceIsLeftOutOfACommand() async throws {
        for _ in 0..<2 { try await fixture.subscribe(account, SessionDevice()) }
        let row = try fixture.rows(of: account)[0].row
        let report = message(for: account)
        let prepared = [try fixture.prepare(report)]
        let notified = try await fixture.store.commit(fixture.subscriptions.notifyTogether(prepared) { $0.row != row })
        #expect(notified[0]?.queued.map(\.waiting.device.row) == [try fixture.rows(of: account)[1].row])
        // The refused notification is not recorded as made.
        #expect(try await fixture.notify(report).queued.map(\.waiting.device.row) == [row])
    }

    @Test func aSubscriptionThatIsRenewedMeanwhileIsNotifiedAsItIsThen() async throws {
        let device = SessionDevice()
        try await fixture.subscribe(account, device, at: .now - 100)
        let report = message(for: account)
        let prepared = try fixture.prepare(report)
        try await fixture.apply([.subscribe(account.subscription(device, namespaces: [7]))])
        #expect(try await !fixture.notify(prepared).isWanted)
        try await fixture.subscribe(account, device, at: .now + 1)
        let notified = try await fixture.notify(prepared)
        #expect(notified.queued.count == 1)
        let current = try fixture.records(of: account)[0].authority.signedAt
        #expect(notified.queued[0].address.version == UInt64(bitPattern: current))
    }

    @Test func aSubscriptionThatEndsMeanwhileIsNotNotified() async throws {
        let devices = (0..<2).map { _ in SessionDevice() }
        for device in devices { try await fixture.subscribe(account, device, at: .now - 100) }
        let prepared = try fixture.prepare(message(for: account))
        try await fixture.apply([.unsubscribe(account.unsubscription(devices[0]))])
        let notified = try await fixture.notify(prepared)
        #expect(notified.queued.map(\.address.gorushDevice?.token.revealed) == [devices[1].token])
        #expect(try fixture.waiting.count == 1)
    }

    @Test func aReportIsKnownFor24HoursAlsoWhenItsNotificationIsGone() async throws {
        try await fixture.subscribe(account, SessionDevice())
        let report = message(for: account)
        let now = Timestamp.now()
        try await fixture.notify(report, at: now)
        let sources = DeliverySources([fixture.source])
        try await fixture.store.commit(DeliveryStorage.drop(try fixture.waiting.map(\.id), of: sources, at: now))
        try await fixture.store.prune(Subscriptions.seenRows, before: now, at: now, keeping: 1000)
        #expect(try await fixture.notify(report, at: now).duplicates == 1)
        try await fixture.store.prune(Subscriptions.seenRows, before: now + .seconds(1), at: now, keeping: 1000)
        #expect(try await fixture.notify(report, at: now).queued.count == 1)
    }

    @Test func theSameHashIsAnotherDeliveryForAnotherAccount() async throws {
        let (other, device) = (try SessionAccount.group(), SessionDevice())
        try await fixture.subscribe(account, device)
        try await fixture.subscribe(other, device)
        for owner in [account, other] {
            #expect(try await fixture.notify(message(for: owner, hash: String(repeating: "h", count: 40))).queued.count == 1)
        }
    }

    @Test func expiredSubscriptionsAreNotNotified() async throws {
        let then = Int64.now - 14 * .day
        try await fixture.apply([.subscribe(account.subscription(SessionDevice(), at: then))], at: then)
        #expect(try await !fixture.notify(message(for: account)).isWanted)
    }

    @Test func aLimitedDeviceTakesNoOtherWithIt() async throws {
        for _ in 0..<3 { try await fixture.subscribe(account, SessionDevice()) }
        let row = try fixture.rows(of: account)[1].row
        let notified = try await fixture.notify(message(for: account)) { $0.row != row }
        #expect(notified.queued.count == 2 && notified.duplicates == 0)
    }

    @Test("Notifications that wait while their subscription is renewed with another key open with the new one")
    func renewedKeys() async throws {
        let (former, other) = (SessionDevice(.apns), SessionDevice(.apns))
        let renewed = SessionDevice(.apns, token: former.token)
        for device in [former, other] { try await fixture.subscribe(account, device) }
        let report = message(for: account, data: Array("hello".utf8))
        let queued = try await fixture.notify(report).queued
        func payloads() throws -> [SessionPayload] {
            let stored = try fixture.store.read(DeliveryStorage.stored(try fixture.waiting.map(\.id)))
            return try fixture.waiting.map { waiting in
                let sealed = try #require(stored[waiting.id]?.sealed)
                return try SessionPayload(parsing: try DeliveryStorage.payload(sealed, of: waiting.delivery, by: fixture.store.sealer))
            }
        }
        let before = try payloads()
        // A renewal with the same key changes nothing.
        try await fixture.subscribe(account, former, at: .now + 1)
        #expect(try payloads() == before)
        try await fixture.subscribe(account, renewed, at: .now + 2)
        let after = try payloads()
        #expect(after[1] == before[1])
        #expect(try fixture.waiting == queued.map(\.waiting))
        #expect(throws: CryptoError.authenticationFailed) { try fixture.sodium.xChaChaOpen(after[0].sealed[...], key: former.key) }
        let plain = try fixture.sodium.xChaChaOpen(after[0].sealed[...], key: renewed.key)
        #expect(plain == (try fixture.sodium.xChaChaOpen(before[0].sealed[...], key: former.key)))
        #expect(after[0].carriesData == before[0].carriesData && after[0].namespace == before[0].namespace)
    }

    @Test func contentIsSealedOnceAndOpensWithTheDevicesKey() async throws {
        let device = SessionDevice(.apns)
        try await fixture.subscribe(account, device)
        let report = message(for: account, data: Array("hello".utf8))
        let queued = try await fixture.notify(report).queued
        // Read from the outbox, as after a restart: the same bytes.
        let row = try fixture.store.read(.find(fixture.source.devices(ids: [try fixture.waiting[0].device.row])) { .done($0) })[0]
        let waiting = try #require(fixture.waiting.first)
        let stored = try #require(try fixture.store.read(DeliveryStorage.stored([waiting.id]))[waiting.id])
        let payload = try SessionPayload(
            parsing: try DeliveryStorage.payload(stored.sealed, of: waiting.delivery, by: fixture.store.sealer))
        #expect(payload.carriesData && payload.namespace == 0)
        let plain = try fixture.sodium.xChaChaOpen(payload.sealed[...], key: device.key)
        #expect(plain.count % 256 == 0)
        #expect(String(decoding: plain, as: UTF8.self).contains(report.hash))
        let address = try fixture.source.address(of: row)
        let reached = try #require(address.gorushDevice)
        #expect(reached.service == .apns && reached.platform == .apn && reached.apnTopic == "com.session")
        #expect(reached.token.revealed == device.token)
        let body = PayloadProfile.default.encode([
            Delivery.Notification(
                id: "n1", platform: reached.platform, deviceToken: reached.token, apnTopic: reached.apnTopic,
                content: fixture.source.content(payload, .apns))
        ])
        #expect(String(decoding: body, as: UTF8.self).contains(Data(payload.sealed).base64EncodedString()))
        #expect(queued.count == 1)
    }
}
