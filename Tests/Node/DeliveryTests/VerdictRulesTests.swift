import Delivery
import Testing
import Core

@Suite("Verdicts on failed tokens")
struct VerdictRulesTests {
    private let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
    private let hour = Duration.seconds(3600)

    private func decide(
        _ complaint: VerdictRules.Complaint, stored: UInt64? = 3, notified: UInt64 = 3, doubt: TokenDoubt? = nil, at now: Timestamp? = nil
    ) -> VerdictRules.Decision {
        VerdictRules.decide(complaint, storedVersion: stored, notifiedVersion: notified, doubt: doubt, at: now ?? start)
    }

    @Test("A dead token ends only the registration that was notified")
    func dead() {
        #expect(decide(.dead) == .unregister)
        #expect(decide(.dead, stored: 4) == .ignore)
        #expect(decide(.dead, stored: 2) == .ignore)
        #expect(decide(.dead, stored: nil) == .ignore)
    }

    @Test("Only a newer registration supersedes the one that was notified", arguments: zip([nil, 2, 3, 4], [false, false, false, true]))
    func superseded(stored: UInt64?, isSuperseded: Bool) {
        #expect(VerdictRules.isSuperseded(storedVersion: stored, notifiedVersion: 3) == isSuperseded)
    }

    /// Decisions at these hours, one failure each.
    private func failures(at hours: [Int], acceptedBefore: Bool = true) -> [VerdictRules.Decision] {
        var doubt: TokenDoubt?
        return hours.map { hours in
            let now = start + hour * hours
            if acceptedBefore, doubt?.accepted(at: now) == true { doubt = nil }
            let decision = decide(.doubtful, doubt: doubt, at: now + .seconds(1))
            if case .doubt(let next) = decision { doubt = next }
            return decision
        }
    }

    @Test("Five consecutive doubtful failures over a day end the registration")
    func doubtful() {
        let decisions = failures(at: [0, 6, 12, 18, 24])
        #expect(decisions.last == .unregister)
        #expect(!decisions.dropLast().contains(.unregister))
    }

    @Test("Fewer failures, or within less than a day, do not", arguments: [[0, 8, 16, 30], [0, 1, 2, 3, 4, 5, 6, 7, 8, 23]])
    func notYet(hours: [Int]) {
        #expect(!failures(at: hours).contains(.unregister))
    }

    @Test("The first failure after the day does")
    func atLast() {
        #expect(failures(at: [0, 1, 2, 3, 4, 5, 23, 24]).last == .unregister)
    }

    @Test("A failure of a replaced or removed registration is not counted")
    func stale() {
        let doubt = TokenDoubt(version: 3, failureCount: 9, firstFailure: start - hour * 48, lastFailure: start - hour, unfailedSince: nil)
        #expect(decide(.doubtful, stored: 4, doubt: doubt) == .ignore)
        #expect(decide(.doubtful, stored: nil, doubt: doubt) == .ignore)
        #expect(decide(.doubtful, doubt: doubt) == .unregister)
        // A newer registration resets the count.
        #expect(decide(.doubtful, stored: 4, notified: 4, doubt: doubt) == .doubt(TokenDoubt(version: 4, at: start)))
    }

    @Test(
        "A notification without a failure within ten minutes is a success, which is detected at the acceptance or failure of the next one")
    func success() {
        var doubt = TokenDoubt(version: 3, at: start)
        var isOver: [Bool] = []
        for second in [60, 600, 661] { isOver.append(doubt.accepted(at: start + .seconds(second))) }
        #expect(isOver == [false, false, true])

        doubt.failed(at: start + .seconds(661))
        #expect(doubt == TokenDoubt(version: 3, at: start + .seconds(661)))
    }

    @Test("Notifications in quick succession whose failures come later are not successes")
    func burst() {
        var doubt = TokenDoubt(version: 3, at: start)
        for second in 1...4 {
            let isOver = doubt.accepted(at: start + .seconds(second))
            #expect(!isOver)
        }
        for second in 5...8 { doubt.failed(at: start + .seconds(second)) }
        #expect(doubt.failureCount == 5)
        #expect(doubt.firstFailure == start)
        #expect(!doubt.isEnough)
    }

    @Test("A clock that is set back does not end registrations early")
    func clock() {
        var doubt = TokenDoubt(version: 3, at: start)
        for _ in 0..<10 { doubt.failed(at: start - hour * 48) }
        #expect(!doubt.isEnough)
        for time in [start, start - hour * 48] {
            let isOver = doubt.accepted(at: time)
            #expect(!isOver)
        }
    }
}
