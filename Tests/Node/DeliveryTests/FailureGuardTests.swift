import Delivery
import Core
import TestSupport
import Testing

struct FailureGuardTests {
    private typealias CredentialScope = FailureGuard.CredentialScope

    private let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
    private let app = FailureGuard.CredentialScope(platform: .apn, topic: "app")
    private var failureGuard = FailureGuard()

    private mutating func judge(
        _ failures: [FailureGuard.Failure], of batch: [FailureGuard.CredentialScope: Int] = [:], at now: Timestamp
    ) -> [Bool] {
        failureGuard.judge(failures, of: batch, at: now)
    }

    /// Failures of this number of owners, numbered from `first`.
    private func failures(
        _ count: Int, _ credentialScope: FailureGuard.CredentialScope, _ reason: FailureReason = .badDeviceToken, from first: Int = 0
    ) -> [FailureGuard.Failure] {
        (first..<first + count).map { FailureGuard.Failure(credentialScope: credentialScope, reason: reason, owner: $0) }
    }

    @Test mutating func oneDeadTokenInABatchOfOneIsRemoved() {
        for second in 0..<9 {
            failureGuard.posted([app: 1], at: start + .seconds(second))
            let isHeld = judge(failures(1, app, .unregistered, from: second), of: [app: 1], at: start + .seconds(second))
            #expect(isHeld == [true])
        }
    }

    @Test mutating func tooManyEqualFailuresInABatchAreSetAside() {
        failureGuard.posted([app: 5000], at: start)
        failureGuard.posted([app: 50], at: start)
        #expect(judge(failures(10, app), of: [app: 50], at: start) == Array(repeating: true, count: 10))
        failureGuard.posted([app: 50], at: start)
        #expect(judge(failures(11, app), of: [app: 50], at: start) == Array(repeating: false, count: 11))
        // A tiny share of all posts, and no batch to compare with.
        #expect(judge(failures(20, app), at: start) == Array(repeating: true, count: 20))
    }

    @Test mutating func singleFailuresAreJudgedByTheLastHour() {
        failureGuard.posted([app: 40], at: start)
        var isHeld: [Bool] = []
        for second in 0..<20 { isHeld += judge(failures(1, app, from: second), at: start + .seconds(second)) }
        #expect(isHeld == Array(repeating: true, count: 9) + Array(repeating: false, count: 11))
        // Successful posts reduce the share.
        failureGuard.posted([app: 1000], at: start + .seconds(30))
        #expect(judge(failures(1, app), at: start + .seconds(31)) == [true])
    }

    /// One can register any number of dead tokens.
    @Test("Failures of fewer than ten owners never protect a token, however many they are")
    mutating func failuresOfOneOwner() {
        failureGuard.posted([app: 100], at: start)
        let many = Array(repeating: failures(1, app), count: 90).flatMap(\.self)
        #expect(judge(many, of: [app: 90], at: start) == Array(repeating: true, count: 90))
        #expect(judge(failures(8, app, from: 1), at: start) == Array(repeating: true, count: 8))
        #expect(judge(failures(1, app), at: start) == [true])
        #expect(judge(failures(1, app, from: 9), at: start) == [false])
        #expect(judge(failures(1, app), at: start) == [false])
    }

    private struct Event {
        let slot: Int64
        let scope: CredentialScope
        let reason: FailureReason
        /// nil for an accepted token.
        let owner: Int?
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
                let count = Int.random(in: 1...8, using: &generator)
                failureGuard.posted([scope: count], at: now)
                events += Array(repeating: Event(slot: slot, scope: scope, reason: .other, owner: nil), count: count)
                continue
            }
            let failed = Event(
                slot: slot, scope: scope, reason: generator.pick([.unregistered, .badDeviceToken]),
                owner: Int.random(in: 0..<owners, using: &generator))
            events.append(failed)
            events.removeAll { $0.slot <= slot - 12 }
            let lately = events.filter { $0.scope == scope }
            let alike = lately.filter { $0.owner != nil && $0.reason == failed.reason }
            let postedCount = lately.count { $0.owner == nil }
            let isHeld = Set(alike.map(\.owner)).count >= 10 && alike.count * 5 > postedCount
            if isHeld { heldCount += 1 } else { countedCount += 1 }
            #expect(judge(failures(1, scope, failed.reason, from: failed.owner ?? 0), at: now) == [!isHeld])
        }
        #expect(countedCount > 0 && (owners < 10) == (heldCount == 0))
    }

    @Test mutating func failuresAreForgottenAfterAnHour() {
        #expect(judge(failures(10, app), at: start) == Array(repeating: false, count: 10))
        #expect(judge(failures(1, app), at: start + .seconds(3000)) == [false])
        #expect(judge(failures(1, app), at: start + .seconds(7201)) == [true])
    }

    @Test mutating func onlyEqualFailuresAreSetAside() {
        let firebase = CredentialScope(platform: .firebase, topic: "ignored")
        let other = CredentialScope(platform: .apn, topic: "other app")
        failureGuard.posted([app: 30, other: 30, firebase: 30], at: start)
        #expect(judge(failures(20, app), at: start).allSatisfy { !$0 })
        #expect(judge(failures(2, app, .unregistered), at: start) == [true, true])
        #expect(judge(failures(1, other), at: start) == [true])
        #expect(judge(failures(1, firebase, .entityNotFound), at: start) == [true])
        #expect(firebase == CredentialScope(platform: .firebase, topic: "else"))
    }

    /// Clients choose topics: with thousands of them the guard's memory is bounded, and it still works.
    @Test mutating func theNumberOfTrackedTopicsIsBounded() {
        failureGuard.posted([app: 40], at: start)
        for index in 0..<5000 { failureGuard.posted([CredentialScope(platform: .apn, topic: "\(index)"): 1], at: start) }
        #expect(judge(failures(20, app), at: start).allSatisfy { !$0 })
        // Topics beyond the first hundred are counted together.
        let rest = (0..<2000).map {
            FailureGuard.Failure(credentialScope: CredentialScope(platform: .apn, topic: "\(3000 + $0)"), reason: .badTopic, owner: $0)
        }
        #expect(judge(rest, at: start).allSatisfy { !$0 })
        // An hour later there is room for others.
        let late = start + .seconds(7200)
        let new = CredentialScope(platform: .apn, topic: "new")
        failureGuard.posted([new: 100], at: late)
        #expect(judge(failures(15, new), at: late).allSatisfy { $0 })
    }

    @Test func topicsBeyondTheLimitShareTheirPosts() {
        var configuration = FailureGuard.Configuration()
        configuration.scopeLimit = 1
        var failureGuard = FailureGuard(configuration: configuration)
        failureGuard.posted([app: 1], at: start)
        failureGuard.posted([CredentialScope(platform: .apn, topic: "second"): 100], at: start)
        let counted = failureGuard.judge(failures(15, CredentialScope(platform: .apn, topic: "third")), at: start)
        #expect(counted == Array(repeating: true, count: 15))
    }

    @Test mutating func aClockThatIsSetBack() {
        failureGuard.posted([app: 100], at: start)
        failureGuard.posted([app: 100], at: start - .seconds(86_400))
        #expect(judge(failures(15, app), at: start).allSatisfy { $0 })
    }
}
