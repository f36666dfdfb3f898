import Delivery
import Core
import TestSupport
import Testing

struct FailureGuardTests {
    private typealias CredentialScope = FailureGuard.CredentialScope

    private let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
    private let app = FailureGuard.CredentialScope(platform: .apn, topic: "app")
    private var failureGuard = FailureGuard()

    private func devices(_ count: Int, from first: Int = 0) -> [DeviceID] {
        (first..<first + count).map { DeviceID(ProtocolNumber(rawValue: 1), row: Int64($0)) }
    }

    /// Failures of this number of devices, numbered from `first`.
    ///
    /// - Parameter owner: nil: each device has an owner of its own.
    private func failures(
        _ count: Int, _ credentialScope: CredentialScope, _ reason: FailureReason = .badDeviceToken, from first: Int = 0, owner: Int? = nil
    ) -> [FailureGuard.Failure] {
        zip(first..., devices(count, from: first)).map {
            FailureGuard.Failure(credentialScope: credentialScope, reason: reason, device: $1, owner: owner ?? $0)
        }
    }

    @Test mutating func oneDeadTokenInABatchOfOneIsRemoved() {
        for second in 0..<9 {
            let batch = [app: devices(1, from: second)]
            failureGuard.posted(batch, at: start + .seconds(second))
            #expect(failureGuard.judge(failures(1, app, .unregistered, from: second), of: batch, at: start + .seconds(second)) == [true])
        }
    }

    @Test mutating func tooManyEqualFailuresInABatchAreSetAside() {
        failureGuard.posted([app: devices(900)], at: start)
        let batch = [app: devices(50)]
        failureGuard.posted(batch, at: start)
        #expect(failureGuard.judge(failures(10, app), of: batch, at: start) == Array(repeating: true, count: 10))
        failureGuard.posted(batch, at: start)
        #expect(failureGuard.judge(failures(11, app), of: batch, at: start) == Array(repeating: false, count: 11))
        // A small share of all posts, and no batch to compare with.
        #expect(failureGuard.judge(failures(20, app), at: start) == Array(repeating: true, count: 20))
    }

    @Test mutating func singleFailuresAreJudgedByTheLastHour() {
        failureGuard.posted([app: devices(40)], at: start)
        var isHeld: [Bool] = []
        for second in 0..<20 { isHeld += failureGuard.judge(failures(1, app, from: second), at: start + .seconds(second)) }
        #expect(isHeld == Array(repeating: true, count: 9) + Array(repeating: false, count: 11))
        // Posts to other devices reduce the share.
        failureGuard.posted([app: devices(200, from: 40)], at: start + .seconds(30))
        #expect(failureGuard.judge(failures(1, app), at: start + .seconds(31)) == [true])
    }

    @Test("However many notifications its devices got before, a push service can end a fifth of them at most")
    mutating func manyNotificationsBefore() {
        let origin = CredentialScope(platform: .webPush, topic: "")
        for second in 0..<6 { failureGuard.posted([origin: devices(500)], at: start + .seconds(second)) }
        let ended = (0..<500).count { device in
            failureGuard.posted([origin: devices(1, from: device)], at: start + .seconds(10))
            let found = failures(1, origin, .subscriptionGone, from: device)
            return failureGuard.judge(found, of: [origin: devices(1, from: device)], at: start + .seconds(10)) == [true]
        }
        #expect(ended == 100)
    }

    @Test("Failures of one device count once: a few that are in doubt and get many notifications protect no others")
    mutating func repeatedFailures() {
        failureGuard.posted([app: devices(100)], at: start)
        for _ in 0..<20 { #expect(failureGuard.judge(failures(10, app), at: start) == Array(repeating: true, count: 10)) }
    }

    /// One can register any number of dead tokens.
    @Test("Failures of fewer than ten owners never protect a token, however many they are")
    mutating func failuresOfOneOwner() {
        let batch = [app: devices(100)]
        failureGuard.posted(batch, at: start)
        #expect(failureGuard.judge(failures(90, app, owner: 0), of: batch, at: start) == Array(repeating: true, count: 90))
        #expect(failureGuard.judge(failures(8, app, from: 90), at: start) == Array(repeating: true, count: 8))
        #expect(failureGuard.judge(failures(1, app, from: 98, owner: 0), at: start) == [true])
        #expect(failureGuard.judge(failures(1, app, from: 99), at: start) == [false])
        #expect(failureGuard.judge(failures(1, app, from: 98, owner: 0), at: start) == [false])
    }

    @Test("Of many devices a sample is counted, of those posted to and of those that failed alike", arguments: [5, 50])
    mutating func manyDevices(percentage: Int) {
        // The hashes differ in each run: a share of 5 % or 50 % in a sample of 256 is on its side of 20 % by more than eight standard deviations.
        var heldCount = 0
        for first in stride(from: 0, to: 100_000, by: 100) {
            let batch = [app: devices(100, from: first)]
            failureGuard.posted(batch, at: start)
            let counts = failureGuard.judge(failures(percentage, app, from: first), at: start)
            if first >= 1000 { heldCount += counts.count { !$0 } }
        }
        #expect(heldCount == (percentage == 50 ? 99_000 / 2 : 0))
        // With fewer devices, all are counted again.
        let late = start + .seconds(7200)
        failureGuard.posted([app: devices(100)], at: late)
        #expect(failureGuard.judge(failures(20, app), at: late) == Array(repeating: true, count: 20))
        #expect(failureGuard.judge(failures(1, app, from: 20), at: late) == [false])
    }

    private struct Event {
        let slot: Int64
        let scope: CredentialScope
        /// nil for an accepted token.
        let reason: FailureReason?
        let device: Int
    }

    @Test("Random failures against a list of all events", arguments: UInt64(1)...20)
    mutating func modelOfTheLastHour(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let scopes = [app, CredentialScope(platform: .firebase, topic: "")]
        let owners = Int.random(in: 8...14, using: &generator)
        var events: [Event] = []
        var now = start
        var (heldCount, countedCount) = (0, 0)
        for _ in 0..<1500 {
            now = now + .seconds(Int.random(in: 0...60, using: &generator))
            let slot = now.rawValue / 300_000_000_000
            let scope = generator.pick(scopes)
            if Int.random(in: 1...4, using: &generator) == 1 {
                let (first, count) = (Int.random(in: 0..<90, using: &generator), Int.random(in: 1...8, using: &generator))
                failureGuard.posted([scope: devices(count, from: first)], at: now)
                events += (first..<first + count).map { Event(slot: slot, scope: scope, reason: nil, device: $0) }
                continue
            }
            let device = Int.random(in: 0..<100, using: &generator)
            let failed = Event(slot: slot, scope: scope, reason: generator.pick([.unregistered, .badDeviceToken]), device: device)
            events.append(failed)
            events.removeAll { $0.slot <= slot - 12 }
            let lately = events.filter { $0.scope == scope }
            let alike = Set(lately.filter { $0.reason == failed.reason }.map(\.device))
            let posted = Set(lately.filter { $0.reason == nil }.map(\.device))
            let isHeld = Set(alike.map { $0 % owners }).count >= 10 && alike.count * 5 > posted.count
            if isHeld { heldCount += 1 } else { countedCount += 1 }
            let found = failures(1, scope, failed.reason ?? .other, from: device, owner: device % owners)
            #expect(failureGuard.judge(found, at: now) == [!isHeld])
        }
        #expect(countedCount > 0 && (owners < 10) == (heldCount == 0))
    }

    @Test mutating func failuresAreForgottenAfterAnHour() {
        #expect(failureGuard.judge(failures(10, app), at: start) == Array(repeating: false, count: 10))
        #expect(failureGuard.judge(failures(1, app), at: start + .seconds(3000)) == [false])
        #expect(failureGuard.judge(failures(1, app), at: start + .seconds(7201)) == [true])
    }

    @Test mutating func onlyEqualFailuresAreSetAside() {
        let firebase = CredentialScope(platform: .firebase, topic: "ignored")
        let other = CredentialScope(platform: .apn, topic: "other app")
        failureGuard.posted([app: devices(30), other: devices(30), firebase: devices(30)], at: start)
        #expect(failureGuard.judge(failures(20, app), at: start).allSatisfy { !$0 })
        #expect(failureGuard.judge(failures(2, app, .unregistered), at: start) == [true, true])
        #expect(failureGuard.judge(failures(1, other), at: start) == [true])
        #expect(failureGuard.judge(failures(1, firebase, .entityNotFound), at: start) == [true])
        #expect(firebase == CredentialScope(platform: .firebase, topic: "else"))
    }

    /// Clients choose topics: with thousands of them the guard's memory is bounded, and it still works.
    @Test mutating func theNumberOfTrackedTopicsIsBounded() {
        failureGuard.posted([app: devices(40)], at: start)
        for index in 0..<5000 {
            failureGuard.posted([CredentialScope(platform: .apn, topic: "\(index)"): devices(1, from: index)], at: start)
        }
        #expect(failureGuard.judge(failures(20, app), at: start).allSatisfy { !$0 })
        // Topics beyond the first hundred are counted together.
        let rest = (0..<2000).flatMap { failures(1, CredentialScope(platform: .apn, topic: "\(3000 + $0)"), .badTopic, from: $0) }
        #expect(failureGuard.judge(rest, at: start).allSatisfy { !$0 })
        // An hour later there is room for others.
        let late = start + .seconds(7200)
        let new = CredentialScope(platform: .apn, topic: "new")
        failureGuard.posted([new: devices(100)], at: late)
        #expect(failureGuard.judge(failures(15, new), at: late).allSatisfy { $0 })
    }

    @Test func topicsBeyondTheLimitShareTheirPosts() {
        var configuration = FailureGuard.Configuration()
        configuration.scopeLimit = 1
        var failureGuard = FailureGuard(configuration: configuration)
        failureGuard.posted([app: devices(1)], at: start)
        failureGuard.posted([CredentialScope(platform: .apn, topic: "second"): devices(100)], at: start)
        let counted = failureGuard.judge(failures(15, CredentialScope(platform: .apn, topic: "third")), at: start)
        #expect(counted == Array(repeating: true, count: 15))
    }

    @Test mutating func aClockThatIsSetBack() {
        failureGuard.posted([app: devices(100)], at: start)
        failureGuard.posted([app: devices(100)], at: start - .seconds(86_400))
        #expect(failureGuard.judge(failures(15, app), at: start).allSatisfy { $0 })
    }
}
