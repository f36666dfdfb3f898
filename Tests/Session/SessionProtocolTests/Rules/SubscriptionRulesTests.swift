import Core
@testable import SessionProtocol
import Testing
import WakuCrypto

@Suite struct SubscriptionRulesTests {
    private static let now: Int64 = 1_700_000_000
    private static let day: Int64 = 86_400
    private let rules = SubscriptionRules(availableServices: [.firebase, .apns])
    private var now: Int64 { Self.now }
    private var day: Int64 { Self.day }

    // MARK: Before signatures are checked

    @Test func serviceWithoutEndpointIsRefused() {
        #expect(refusal { try rules.admit(subscription(.huawei), at: now) }?.code == .serviceNotAvailable)
        #expect(refusal { try rules.admit(unsubscription(.huawei), at: now) }?.code == .serviceNotAvailable)
    }

    @Test func serviceComesBeforeTime() {
        #expect(refusal { try rules.admit(subscription(.huawei, signedAt: 1), at: now) }?.code == .serviceNotAvailable)
    }

    @Test(arguments: [0, 1, 14 * day, -day + 1])
    func subscriptionWithinItsWindowIsAdmitted(age: Int64) {
        #expect(refusal { try rules.admit(subscription(signedAt: now - age), at: now) } == nil)
    }

    @Test(arguments: [14 * day + 1, 15 * day, -day, -2 * day])
    func subscriptionOutsideItsWindowIsRefused(age: Int64) {
        let refusal = refusal { try rules.admit(subscription(signedAt: now - age), at: now) }
        #expect(refusal?.code == .error && refusal?.message.hasPrefix("sig_ts") == true)
    }

    @Test(arguments: [0, day, -day])
    func unsubscriptionWithinItsWindowIsAdmitted(age: Int64) {
        #expect(refusal { try rules.admit(unsubscription(signedAt: now - age), at: now) } == nil)
    }

    @Test(arguments: [day + 1, -day - 1, 14 * day])
    func unsubscriptionOutsideItsWindowIsRefused(age: Int64) {
        let refusal = refusal { try rules.admit(unsubscription(signedAt: now - age), at: now) }
        #expect(refusal?.code == .error && refusal?.message.hasPrefix("sig_ts") == true)
    }

    @Test(arguments: [Int64(1), 1 << 53])
    func extremeTimesDoNotOverflow(signedAt: Int64) {
        #expect(refusal { try rules.admit(subscription(signedAt: signedAt), at: now) }?.code == .error)
        #expect(refusal { try rules.admit(unsubscription(signedAt: signedAt), at: now) }?.code == .error)
    }

    @Test func timesOfDamagedRowsDoNotOverflow() {
        #expect(StoredSubscription(signedAt: .max).expiresAt == .max)
        #expect(!StoredSubscription(signedAt: .max).isExpired(at: now))
        #expect(StoredSubscription(signedAt: .min).isExpired(at: now))
        #expect(StoredSubscription(signedAt: now, arrivedAt: .min).order == .min)
    }

    // MARK: Subscribing

    @Test func newSubscriptionIsInserted() throws {
        #expect(try subscribe(signedAt: now) == .insert)
    }

    @Test func subscribingAgainUpdates() throws {
        #expect(try subscribe(signedAt: now, stored: now - 10) == .update)
    }

    @Test func equalTimeRenews() throws {
        #expect(try subscribe(signedAt: now, stored: now) == .update)
    }

    @Test func replayedSubscriptionIsRefused() {
        #expect(refusal { _ = try subscribe(signedAt: now - 1, stored: now) }?.code == .error)
    }

    @Test func expiredSubscriptionIsAsGone() throws {
        #expect(try subscribe(signedAt: now - 1, stored: now - 14 * day) == .insert)
        #expect(try subscribe(signedAt: now, stored: now - 14 * day + 1) == .update)
    }

    @Test func subscriptionOlderThanTheUnsubscriptionIsRefused() throws {
        let left = UnsubscribedName(signedAt: now - 5, expiresAt: now + 15 * day)
        #expect(refusal { _ = try subscribe(signedAt: now - 6, left: left) }?.code == .error)
        #expect(try subscribe(signedAt: now - 5, left: left) == .insert)
    }

    @Test func nameIsKeptFor15Days() throws {
        guard case .remove(let left) = try rules.decideUnsubscription(signedAt: now, stored: .init(signedAt: now), at: now) else {
            Issue.record("nothing was removed")
            return
        }
        let last = now + 15 * day - 1
        #expect(
            refusal { _ = try rules.decideSubscription(signedAt: now - 1, stored: nil, left: left, deviceCount: 0, at: last) } != nil)
        #expect(try rules.decideSubscription(signedAt: now - 1, stored: nil, left: left, deviceCount: 0, at: last + 1) == .insert)
    }

    @Test func deviceOverTheLimitIsRefused() throws {
        #expect(try subscribe(signedAt: now, deviceCount: 99) == .insert)
        let refusal = refusal { _ = try subscribe(signedAt: now, deviceCount: 100) }
        #expect(refusal?.code == .error && refusal?.message.hasPrefix("pubkey") == true)
    }

    @Test func renewalAtTheLimitIsTaken() throws {
        #expect(try subscribe(signedAt: now, stored: now - 1, deviceCount: 100) == .update)
    }

    @Test func limitCanBeSet() {
        let rules = SubscriptionRules(availableServices: [], maximumDevicesPerAccount: 2)
        let refusal = refusal { _ = try rules.decideSubscription(signedAt: now, stored: nil, left: nil, deviceCount: 2, at: now) }
        #expect(refusal?.message.contains("2 devices") == true)
    }

    // MARK: Clocks that are ahead

    /// The `sig_ts` of a clock that is 10 h ahead, arriving now.
    private var ahead: Int64 { now + 36_000 }
    private var used: AheadTimes { AheadTimes([AheadTime(.subscription, signedAt: ahead, arrivedAt: now)]) }

    private func replace(signedAt: Int64, _ used: AheadTimes, stored: Int64, at time: Int64) throws -> SubscriptionRules.Change {
        try rules.decideSubscription(
            signedAt: signedAt, stored: used.stored(signedAt: stored, at: time), left: nil, used: used, deviceCount: 1, at: time)
    }

    @Test func aTimeThatWasAheadIsOrderedByItsArrival() throws {
        for signedAt in [now - 300, now, now + 5, ahead, ahead + 1] {
            #expect(try replace(signedAt: signedAt, used, stored: ahead, at: now + 5) == .update)
            #expect(
                try rules.decideUnsubscription(
                    signedAt: signedAt, stored: used.stored(signedAt: ahead, at: now + 5), used: used, at: now + 5)
                    == .remove(leaving: UnsubscribedName(signedAt: now + 5, expiresAt: now + 5 + 15 * day)))
        }
        #expect(refusal { _ = try replace(signedAt: now - 301, used, stored: ahead, at: now + 5) }?.code == .error)
        // Also after that time has passed.
        #expect(try replace(signedAt: now, used, stored: ahead, at: ahead + day) == .update)
    }

    @Test func aMinuteAheadIsNoWrongClock() throws {
        var used = AheadTimes()
        used.note(.subscription, now + 60, at: now)
        #expect(used.added.isEmpty)
        #expect(refusal { _ = try replace(signedAt: now + 59, used, stored: now + 60, at: now) }?.code == .error)
        used.note(.subscription, now + 61, at: now)
        #expect(used.added == [AheadTime(.subscription, signedAt: now + 61, arrivedAt: now)])
        #expect(try replace(signedAt: now - 1, used, stored: now + 61, at: now) == .update)
    }

    @Test func aReplacedTimeThatWasAheadIsAReplay() throws {
        #expect(refusal { _ = try replace(signedAt: ahead, used, stored: now + 5, at: now + 10) }?.code == .error)
        #expect(refusal { _ = try subscribe(signedAt: ahead, used: used) }?.code == .error)
        #expect(try replace(signedAt: ahead + 1, used, stored: now + 5, at: now + 10) == .update)
        // An unsubscription signs another text.
        let stored = used.stored(signedAt: now + 5, at: now + 10)
        #expect(try rules.decideUnsubscription(signedAt: ahead, stored: stored, used: used, at: now + 10) != .nothingToRemove)
        let unsubscribed = AheadTimes([AheadTime(.unsubscription, signedAt: ahead, arrivedAt: now)])
        #expect(
            refusal { _ = try rules.decideUnsubscription(signedAt: ahead, stored: stored, used: unsubscribed, at: now + 10) }?.code
                == .error)
    }

    @Test func aTimeThatAnEarlierReleaseStoredCountsAsArrivedNowWhileItIsAhead() throws {
        #expect(try replace(signedAt: now - 300, AheadTimes(), stored: ahead, at: now) == .update)
        #expect(refusal { _ = try replace(signedAt: now - 301, AheadTimes(), stored: ahead, at: now) }?.code == .error)
        #expect(refusal { _ = try replace(signedAt: ahead - 61, AheadTimes(), stored: ahead, at: ahead - 60) }?.code == .error)
    }

    @Test func aNodesClockThatWasSetBackAdmitsNoReplay() {
        #expect(refusal { _ = try replace(signedAt: now - 1, AheadTimes(), stored: now, at: now - 600) }?.code == .error)
    }

    @Test func theFirstArrivalCountsAndTimesAreBounded() {
        var used = used
        used.note(.subscription, ahead, at: now + 100)
        #expect(used.added.isEmpty && used.stored(signedAt: ahead, at: now + 100).arrivedAt == now)
        for second in 1...Int64(AheadTimes.countLimit) { used.note(.subscription, ahead + second, at: now + 100) }
        #expect(used.lowestKept == ahead + 1 && !used.contains(.subscription, ahead) && used.contains(.subscription, ahead + 1))
        #expect(used.added.count == AheadTimes.countLimit)
    }

    @Test func aTimeThatWasDroppedFromTheListIsAReplay() throws {
        var used = used
        for second in 1...Int64(AheadTimes.countLimit) { used.note(.subscription, ahead + second, at: now) }
        let last = ahead + Int64(AheadTimes.countLimit)
        #expect(refusal { _ = try replace(signedAt: ahead, used, stored: last, at: now + 10) }?.code == .error)
        let stored = used.stored(signedAt: last, at: now + 10)
        #expect(
            refusal { _ = try rules.decideUnsubscription(signedAt: ahead, stored: stored, used: used, at: now + 10) }?.code == .error)
        // A clock that is right by now can renew and leave.
        #expect(try replace(signedAt: now + 10, used, stored: last, at: now + 10) == .update)
        #expect(try rules.decideUnsubscription(signedAt: now + 10, stored: stored, used: used, at: now + 10) != .nothingToRemove)
        // After that it stays a replay, also once the clock has passed it.
        let left = UnsubscribedName(signedAt: now + 10, expiresAt: now + 15 * day)
        func subscribe(signedAt: Int64, at time: Int64) throws {
            _ = try rules.decideSubscription(signedAt: signedAt, stored: nil, left: left, used: used, deviceCount: 0, at: time)
        }
        for time in [now + 20, ahead + 5, last + 10] { #expect(refusal { try subscribe(signedAt: ahead, at: time) }?.code == .error) }
        try subscribe(signedAt: last + 1, at: last + 1)
    }

    // MARK: Unsubscribing

    @Test func unsubscribingRemovesAndLeavesTheLaterTime() throws {
        let removal = try rules.decideUnsubscription(signedAt: now - 5, stored: .init(signedAt: now - 10), at: now)
        #expect(removal == .remove(leaving: UnsubscribedName(signedAt: now - 5, expiresAt: now + 15 * day)))
    }

    @Test func leftTimeIsAtMostNow() throws {
        let removal = try rules.decideUnsubscription(signedAt: now + day, stored: .init(signedAt: now + 100), at: now)
        #expect(removal == .remove(leaving: UnsubscribedName(signedAt: now, expiresAt: now + 15 * day)))
    }

    @Test func equalTimeUnsubscribes() throws {
        #expect(try rules.decideUnsubscription(signedAt: now, stored: .init(signedAt: now), at: now) != .nothingToRemove)
    }

    @Test func replayedUnsubscriptionIsRefused() {
        let refusal = refusal { _ = try rules.decideUnsubscription(signedAt: now - 1, stored: .init(signedAt: now), at: now) }
        #expect(refusal?.code == .error)
    }

    @Test func unsubscribingAMissingSubscriptionRemovesNothing() throws {
        #expect(try rules.decideUnsubscription(signedAt: now, stored: nil, at: now) == .nothingToRemove)
        #expect(try rules.decideUnsubscription(signedAt: now, stored: .init(signedAt: now - 14 * day), at: now) == .nothingToRemove)
    }

    // MARK: Expiry

    @Test func subscriptionIsGoneWhenItsSignatureIs14DaysOld() {
        let stored = StoredSubscription(signedAt: now)
        #expect(!stored.isExpired(at: now + 14 * day - 1))
        #expect(stored.isExpired(at: now + 14 * day))
    }

    // MARK: Helpers

    private func subscribe(
        signedAt: Int64, stored: Int64? = nil, left: UnsubscribedName? = nil, used: AheadTimes = AheadTimes(), deviceCount: Int = 0
    ) throws -> SubscriptionRules.Change {
        try rules.decideSubscription(
            signedAt: signedAt, stored: stored.map { StoredSubscription(signedAt: $0) }, left: left, used: used,
            deviceCount: deviceCount, at: now)
    }

    private func authority(_ signedAt: Int64) throws -> SignedAuthority {
        let account = try #require(AccountID([3] + [UInt8](repeating: 7, count: 32)))
        return SignedAuthority(
            account: account, sessionKey: nil, delegation: .none, signedAt: signedAt,
            signature: Confidential([UInt8](repeating: 0, count: 64)))
    }

    private func subscription(_ service: PushService = .firebase, signedAt: Int64 = now) throws -> SubscriptionForm {
        SubscriptionForm(
            authority: try authority(signedAt), namespaces: [0], wantsData: true,
            device: SubscriberDevice(service: service, token: "token"), encryptionKey: .random())
    }

    private func unsubscription(_ service: PushService = .firebase, signedAt: Int64 = now) throws -> UnsubscriptionForm {
        UnsubscriptionForm(authority: try authority(signedAt), device: SubscriberDevice(service: service, token: "token"))
    }
}
