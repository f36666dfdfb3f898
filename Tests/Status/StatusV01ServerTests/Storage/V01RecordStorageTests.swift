import NodeAPI
import Delivery
import Foundation
import Core
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import StatusV01Server

@Suite("Version 0.1: stored records")
struct V01RecordStorageTests {
    private let fixture: V01StoreFixture
    private let account: V01Account

    init() throws {
        fixture = try V01StoreFixture()
        account = V01Account(
            of: PrivateKey.generate().publicKey, devices: [V01Account.device("a"), V01Account.device("b", token: "other", tokenType: 2)])
    }

    @Test func aRecordIsReadBackAsItCame() async throws {
        #expect(try await fixture.take(account.register(version: 3), of: account) == nil)
        #expect(try fixture.preferences(of: account) == account.preferences(version: 3))
        #expect(try fixture.selected(by: account.accessToken) == account.keyHash)
        let store = try fixture.reopened()
        #expect(try store.read(Records(store.sealer).preferences(of: account.keyHash)) == account.preferences(version: 3))
    }

    /// A record that an earlier release stored, in which the filters of a device occur twice, made the database count as damaged.
    @Test func aStoredRecordThatTheParserRefusesCountsAsNoRecord() async throws {
        let filters: [UInt8] = [4 << 3 | 2, 2, 2 << 3 | 2, 0]
        let payload = account.preferences(version: 1).encoded() + [1 << 3 | 2, UInt8(2 * filters.count)] + filters + filters
        #expect(throws: ProtobufError.tooMany) { try V01.Preferences(parsing: payload) }
        let (log, store, now) = (RecordedLog(), fixture.store, Timestamp(rawValue: 1))
        let records = Records(store.sealer, errors: RepeatedErrors(log.logger))
        try await store.commit(
            StoreCommand.change(
                records.store(
                    account.preferences(version: 1), payload: payload, as: account.keyHash, mark: nil, replacing: nil, devices: [:],
                    at: now)))
        let other = V01Account(of: account.server)
        try await fixture.take(other.register(version: 1), of: other)
        #expect(try store.read(records.preferences(of: account.keyHash)) == nil)
        #expect(try store.read(records.records(of: [account.keyHash, other.keyHash])).map(\.registrant) == [other.keyHash])
        let selection = try store.read(records.selection(by: [account.accessToken, other.accessToken], at: nil))
        #expect(selection?.records.keys.map(\.revealed) == [other.accessToken.revealed])
        let device = try #require(try fixture.devices(of: account)[InstallationID("a")])
        try await store.commit(records.endDevice(device, version: 1, at: now))
        let export = RecordExport(keyHash: account.keyHash, version: 9, changedAt: now, preferences: payload)
        #expect(try await store.commit(records.merge(export)) == false)
        // Once, without its content.
        #expect(log.messages == ["failed to parse a stored record"])
        #expect(log.lines.first?.contains("reason=tooMany") == true)
        #expect(try await fixture.take(account.register(version: 1), of: account) == .versionMismatch)
        #expect(try await fixture.take(account.register(version: 2), of: account) == nil)
        #expect(try fixture.preferences(of: account) == account.preferences(version: 2))
    }

    @Test func anAccessTokenSelectsOneRecordAndIsCompared() async throws {
        try await fixture.take(account.register(version: 1), of: account)
        let thief = V01Account(of: account.server, accessToken: account.accessToken)
        #expect(try await fixture.take(thief.register(version: 1), of: thief) == .malformedMessage)
        #expect(try fixture.selected(by: account.accessToken) == account.keyHash)
        #expect(try fixture.selected(by: AccessToken(account.accessToken.revealed.uppercased() + "x")) == nil)
    }

    /// Senders that still use it would have their notifications go to the other account, and get success.
    @Test func anAccessTokenThatWasReplacedOrEndedIsNotTakenByAnotherAccountFor30Days() async throws {
        let (start, thief) = (Timestamp(rawValue: 10), V01Account(of: account.server, accessToken: account.accessToken))
        var changed = account
        changed.accessToken = V01Account.newToken()
        try await fixture.take(account.register(version: 1), of: account, at: start)
        #expect(try await fixture.take(changed.register(version: 2), of: account, at: start) == nil)
        #expect(try await fixture.take(thief.register(version: 1), of: thief, at: start) == .malformedMessage)
        #expect(try fixture.selected(by: account.accessToken) == nil)
        // Its owner may use it again.
        #expect(try await fixture.take(account.register(version: 3), of: account, at: start) == nil)
        #expect(try fixture.selected(by: account.accessToken) == account.keyHash)
        #expect(try await fixture.take(account.unregister(version: 4), of: account, at: start) == nil)
        #expect(try await fixture.take(thief.register(version: 1), of: thief, at: start) == .malformedMessage)
        #expect(try await fixture.take(account.register(version: 5), of: account, at: start) == nil)
        #expect(try await fixture.take(account.unregister(version: 6), of: account, at: start) == nil)
        let end = start + Records.tokenRetirement
        for (time, count) in [(end, 0), (end + .nanoseconds(1), 2)] {
            #expect(try await fixture.store.commit(Records.retiredTokens.remove(before: time.rawValue, limit: 10)) == count)
        }
        #expect(try await fixture.take(thief.register(version: 1), of: thief) == nil)
        #expect(try fixture.selected(by: account.accessToken) == thief.keyHash)
    }

    @Test func anAccountHasAtMost16RetiredAccessTokens() async throws {
        var tokens: [AccessToken] = []
        for version in 1...20 as ClosedRange<UInt64> {
            var changed = account
            changed.accessToken = V01Account.newToken()
            tokens.append(changed.accessToken)
            #expect(try await fixture.take(changed.register(version: version), of: account, at: Timestamp(rawValue: Int64(version))) == nil)
        }
        var isRefused: [Bool] = []
        for token in tokens {
            let thief = V01Account(of: account.server, accessToken: token)
            isRefused.append(try await fixture.take(thief.register(version: 1), of: thief) == .malformedMessage)
        }
        #expect(isRefused == Array(repeating: false, count: 3) + Array(repeating: true, count: 17))
    }

    @Test func aNewerRecordReplacesTheStoredOneAsAWhole() async throws {
        try await fixture.take(account.register(version: 1), of: account)
        let before = try fixture.devices(of: account)
        for row in before.values { try await fixture.enqueue(for: row) }
        var changed = account
        changed.devices = [account.devices[0], V01Account.device("c")]
        try await fixture.take(changed.register(version: 2), of: changed)
        let after = try fixture.devices(of: account)
        #expect(Set(after.keys.map(\.string)) == ["a", "c"])
        // A remaining device keeps its row and its pending notifications; those of a removed device are deleted.
        #expect(after[InstallationID("a")] == before[InstallationID("a")])
        let waiting = try fixture.store.read(DeliveryStorage.waitingDeliveries())
        #expect(waiting.map(\.device.row) == [before[InstallationID("a")]])
        #expect(try fixture.preferences(of: account)?.devices == changed.devices)
    }

    @Test func aDisabledDeviceKeepsItsRowAndLosesItsPendingNotifications() async throws {
        try await fixture.take(account.register(version: 1), of: account)
        let rows = try fixture.devices(of: account)
        for row in rows.values { try await fixture.enqueue(for: row) }
        var changed = account
        changed.devices[0].filters?.isEnabled = false
        try await fixture.take(changed.register(version: 2), of: changed)
        #expect(try fixture.devices(of: account) == rows)
        let waiting = try fixture.store.read(DeliveryStorage.waitingDeliveries())
        #expect(waiting.map(\.device.row) == [rows[account.devices[1].installationID]])
    }

    @Test(arguments: [true, false]) func anEndLeavesKeyHashAndVersionAlone(byFlag: Bool) async throws {
        try await fixture.take(account.register(version: 1), of: account)
        for row in try fixture.devices(of: account).values { try await fixture.enqueue(for: row) }
        var empty = account
        empty.devices = []
        let end = byFlag ? account.unregister(version: 2) : empty.register(version: 2)
        #expect(try await fixture.take(end, of: account) == nil)
        #expect(try fixture.preferences(of: account) == nil)
        #expect(try fixture.devices(of: account).isEmpty)
        #expect(try fixture.selected(by: account.accessToken) == nil)
        #expect(try fixture.store.read(DeliveryStorage.waitingCount()) == 0)
        #expect(try await fixture.take(account.register(version: 2), of: account) == .versionMismatch)
        #expect(try await fixture.take(end, of: account) == nil)
        #expect(try await fixture.take(account.register(version: 3), of: account) == nil)
    }

    @Test func newDevicesOfARegisteredAccountCountTowardsTheLimits() async throws {
        var few = Limits.none
        few.registrationCount = 3
        let limits = V01Limits(few)
        var growing = account
        #expect(try await fixture.take(growing.register(version: 1), of: growing, limits: limits) == nil)
        growing.devices.append(V01Account.device("c", token: "third"))
        #expect(try await fixture.take(growing.register(version: 2), of: growing, limits: limits) == nil)
        // The same devices take no further room.
        #expect(try await fixture.take(growing.register(version: 3), of: growing, limits: limits) == nil)
        growing.devices.append(V01Account.device("d", token: "fourth"))
        #expect(try await fixture.take(growing.register(version: 4), of: growing, limits: limits) == .internalError)
        #expect(try fixture.devices(of: growing).count == 3)
    }

    @Test func eachNewDeviceOfARecordCountsTowardsTheRateOfNewRegistrations() async throws {
        var few = Limits.none
        try few.set("new-registrations=3/h")
        let limits = V01Limits(few)
        let other = V01Account(of: account.server, devices: account.devices)
        let third = V01Account(of: account.server)
        #expect(try await fixture.take(account.register(version: 1), of: account, limits: limits) == nil)
        #expect(try await fixture.take(other.register(version: 1), of: other, limits: limits) == .internalError)
        #expect(try await fixture.take(third.register(version: 1), of: third, limits: limits) == nil)
    }

    @Test func theStoredRegisterAgainChangesNothing() async throws {
        let (first, second) = (account.register(version: 1), account.register(version: 2))
        for register in [first, first, second, second] { #expect(try await fixture.take(register, of: account) == nil) }
        #expect(try await fixture.take(first, of: account) == .versionMismatch)
        #expect(try fixture.preferences(of: account)?.version == 2)
    }

    @Test func tombstonesOfAccountsNeverRegisteredAreForgotten() async throws {
        let stranger = V01Account(of: account.server)
        #expect(try await fixture.take(stranger.unregister(version: 7), of: stranger, at: Timestamp(rawValue: 10)) == nil)
        try await fixture.take(account.register(version: 1), of: account)
        try await fixture.take(account.unregister(version: 2), of: account)
        #expect(try await fixture.take(stranger.register(version: 7), of: stranger) == .versionMismatch)
        for (time, count) in [(10, 0), (11, 1)] as [(Int64, Int)] {
            let later = Timestamp(rawValue: time) + .seconds(30 * 24 * 3600)
            #expect(try await fixture.store.commit(Records.unfounded.forget(at: later, limit: 10)) == count)
        }
        #expect(try fixture.store.read(Records.head(of: stranger.keyHash)) == nil)
        #expect(try fixture.store.read(Records.head(of: account.keyHash))?.head.version == 2)
    }

    @Test func recordsThatWereNotRenewedEndUnderTheirVersion() async throws {
        try await fixture.take(account.register(version: 5), of: account, at: Timestamp(rawValue: 10))
        let cutoff = Timestamp(rawValue: 11)
        #expect(try fixture.store.read(Records.records(unchangedSince: cutoff)) == [account.keyHash])
        #expect(try await fixture.store.commit(Records.expire(account.keyHash, unchangedSince: cutoff, at: cutoff)))
        #expect(try await !fixture.store.commit(Records.expire(account.keyHash, unchangedSince: cutoff, at: cutoff)))
        #expect(try fixture.preferences(of: account) == nil)
        #expect(try await fixture.take(account.register(version: 5), of: account) == .versionMismatch)
        #expect(try await fixture.take(account.register(version: 6), of: account) == nil)
    }

    @Test func aDeadTokenTakesItsDeviceOutOfTheRecord() async throws {
        try await fixture.take(account.register(version: 4), of: account)
        let rows = try fixture.devices(of: account)
        let source = V01DeliverySource(fixture.store.sealer, apnsTopic: "")
        let row = try #require(rows[InstallationID("a")])
        try await fixture.enqueue(for: row)
        try await fixture.store.commit(source.endDevice(row, version: 3, at: Timestamp(rawValue: 2)))
        #expect(try fixture.devices(of: account).count == 2)
        try await fixture.store.commit(source.endDevice(row, version: 4, at: Timestamp(rawValue: 2)))
        #expect(try fixture.preferences(of: account)?.devices == [account.devices[1]])
        #expect(try fixture.selected(by: account.accessToken) == account.keyHash)
        #expect(try fixture.store.read(DeliveryStorage.waitingCount()) == 0)
        let last = try #require(rows[InstallationID("b")])
        try await fixture.store.commit(source.endDevice(last, version: 4, at: Timestamp(rawValue: 3)))
        #expect(try fixture.preferences(of: account) == nil)
        #expect(try fixture.selected(by: account.accessToken) == nil)
        #expect(try await fixture.take(account.register(version: 5), of: account) == nil)
    }

    /// gorush reports a failure up to a day after the post. Found by the model `dead-tokens.pml`.
    @Test func theLateFailureOfARemovedDeviceEndsNoDeviceOfAnotherAccount() async throws {
        try await fixture.take(account.register(version: 1), of: account)
        let removed = try fixture.devices(of: account).values
        try await fixture.take(account.unregister(version: 2), of: account)
        let other = V01Account(of: account.server, devices: account.devices)
        #expect(try await fixture.take(other.register(version: 1), of: other) == nil)
        #expect(try fixture.devices(of: other).values.filter(removed.contains) == [])
        let source = V01DeliverySource(fixture.store.sealer, apnsTopic: "")
        for row in removed { try await fixture.store.commit(source.endDevice(row, version: 1, at: Timestamp(rawValue: 2))) }
        #expect(try fixture.preferences(of: other) == other.preferences(version: 1))
    }

    @Test func deliveryFindsDevicesWithTheirTokens() async throws {
        try await fixture.take(account.register(version: 4), of: account)
        let source = V01DeliverySource(fixture.store.sealer, apnsTopic: "im.status")
        let rows = try fixture.devices(of: account)
        let found = try fixture.store.read(.find(source.devices(ids: Array(rows.values))) { .done($0) })
        let addresses = try found.map { (try source.owner(of: $0)?.installation, try source.address(of: $0)) }
        #expect(addresses.count == 2)
        for (installation, address) in addresses {
            let isFirst = installation == "a"
            #expect(address.gorushDevice?.token == account.devices[isFirst ? 0 : 1].token)
            #expect(address.gorushDevice?.platform == (isFirst ? .apn : .firebase))
            #expect(address.gorushDevice?.apnTopic == (isFirst ? "im.status" : ""))
            #expect(address.version == 4)
        }
    }

    /// Otherwise a device whose token is dead would keep its account registered.
    @Test func theEndOfADeviceIsNoRenewal() async throws {
        try await fixture.take(account.register(version: 1), of: account, at: Timestamp(rawValue: 5))
        let row = try #require(try fixture.devices(of: account).values.first)
        try await fixture.store.commit(fixture.records.endDevice(row, version: 1, at: Timestamp(rawValue: 50)))
        #expect(try fixture.devices(of: account).count == 1)
        let expiry = Records.expire(account.keyHash, unchangedSince: Timestamp(rawValue: 6), at: Timestamp(rawValue: 60))
        #expect(try await fixture.store.commit(expiry))
    }

    /// Of another node on the same database, between the reads of the expiry.
    @Test func expiryLeavesARenewal() async throws {
        try await fixture.take(account.register(version: 1), of: account)
        let expiry = Records.expire(account.keyHash, unchangedSince: Timestamp(rawValue: 10), at: Timestamp(rawValue: 30))
        guard case .read(let reads, let next) = expiry else { throw TestFailure("no read") }
        let old = try fixture.store.read(.read([reads[0]]) { .done($0) })
        try await fixture.take(account.register(version: 2), of: account, at: Timestamp(rawValue: 20))
        let current = try fixture.store.read(.read(Array(reads.dropFirst())) { .done($0) })
        #expect(try await !fixture.store.commit(try next(old + current)))
        #expect(try fixture.preferences(of: account)?.version == 2)
    }

    @Test func nothingSecretIsInTheFile() async throws {
        var secret = account
        secret.devices = [V01Account.device("a", token: "device-token-in-clear")]
        try await fixture.take(secret.register(version: 1), of: secret)
        try fixture.store.close()
        for name in try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path) {
            let content = try Data(contentsOf: URL(fileURLWithPath: fixture.folder.path + "/" + name))
            for needle in ["device-token-in-clear", secret.accessToken.revealed] {
                #expect(content.range(of: Data(needle.utf8)) == nil, "\(name)")
            }
        }
    }

    @Test func theLookUpByTokenSurvivesARotationOfTheStorageKey() async throws {
        let old = V01Account(of: account.server, accessToken: V01Account.newToken())
        try await fixture.take(old.register(version: 1), of: old)
        try await fixture.take(old.unregister(version: 2), of: old)
        try await fixture.take(account.register(version: 1), of: account)
        try fixture.store.close()
        let folder = try DataFolder(locking: fixture.folder.path)
        #expect(try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: V01StoreFixture.parts) == 3)
        folder.unlock()
        let store = try fixture.reopened()
        let selection = try store.read(Records(store.sealer).selection(by: [account.accessToken], at: nil))
        #expect(selection?.records[account.accessToken]?.preferences == account.preferences(version: 1))
        let thief = V01Account(of: account.server, accessToken: old.accessToken)
        let export = RecordExport(
            keyHash: thief.keyHash, version: 1, changedAt: Timestamp(rawValue: 1), preferences: thief.preferences().encoded())
        #expect(try await !store.commit(Records(store.sealer).merge(export)))
        let inspection = try StoreInspection(of: fixture.path, storageKey: fixture.storageKey, parts: V01StoreFixture.parts)
        #expect(inspection.isWhole)
        #expect(inspection.rows?["v0.1 records"] == StoreInspection.Rows(count: 1))
        #expect(inspection.rows?["v0.1 devices"] == StoreInspection.Rows(count: 2))
    }

    @Test func exportedRecordsAreMergedByVersion() async throws {
        let (gone, never) = (V01Account(of: account.server), V01Account(of: account.server))
        try await fixture.take(account.register(version: 2), of: account)
        try await fixture.take(gone.register(version: 1), of: gone)
        for account in [gone, never] { try await fixture.take(account.unregister(version: 2), of: account) }
        var exported: [RecordExport] = []
        try fixture.records.forEach(in: fixture.store) {
            exported.append($0)
            return true
        }
        #expect(exported.map(\.neverRegistered) == [false, false, true])
        let other = try V01StoreFixture()
        for record in exported { #expect(try await other.store.commit(other.records.merge(record))) }
        for record in exported { #expect(try await !other.store.commit(other.records.merge(record))) }
        #expect(try other.preferences(of: account) == account.preferences(version: 2))
        #expect(try other.selected(by: account.accessToken) == account.keyHash)
        #expect(try await other.take(gone.register(version: 2), of: gone) == .versionMismatch)
        // The tombstone of an account that was never registered is forgotten there, too.
        let later = Timestamp.now() + .seconds(31 * 24 * 3600)
        #expect(try await other.store.commit(Records.unfounded.forget(at: later, limit: 10)) == 1)
        let figures = try other.store.read(Records.figures())
        #expect(figures.records == 1 && figures.devices.unregistered == 1)
        #expect(figures.devices.registered == [.apn: 1, .firebase: 1])
    }

    @Test func aMergedRecordNeverTakesAnothersToken() async throws {
        let thief = V01Account(of: account.server, accessToken: account.accessToken)
        try await fixture.take(account.register(version: 1), of: account)
        let export = RecordExport(
            keyHash: thief.keyHash, version: 1, changedAt: Timestamp(rawValue: 1), preferences: thief.preferences().encoded())
        #expect(try await !fixture.store.commit(fixture.records.merge(export)))
        #expect(try fixture.selected(by: account.accessToken) == account.keyHash)
    }
}
