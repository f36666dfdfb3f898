@testable import Delivery
import TestSupport
import Testing
import Core

extension CircuitBreaker {
    /// The time from which a probe may go out, while the breaker is open.
    var opensAgainAt: Timestamp? {
        if case .open(let until, _) = state { until } else { nil }
    }
}

/// A test for each transition of the breaker's state diagram.
struct CircuitBreakerTests {
    private let start = Timestamp(rawValue: 1_000_000_000_000)
    private var breaker = CircuitBreaker()
    private var generator = SeededGenerator(seed: 5)
    private var number: UInt64 = 0

    /// A single post that fails.
    private mutating func fail(at now: Timestamp, retryAfter: Duration? = nil) {
        number += 1
        if breaker.admission(at: now) == .probe { breaker.began(probe: number) }
        breaker.failed(number, latest: number, retryAfter: retryAfter, at: now, using: &generator)
    }

    /// Opens the breaker. Returns when a probe is admitted.
    private mutating func open(at now: Timestamp) throws -> Timestamp {
        for _ in 0..<3 { fail(at: now) }
        return try #require(breaker.opensAgainAt)
    }

    @Test mutating func aSingleFailureDoesNotOpenTheBreaker() {
        fail(at: start)
        #expect(breaker.state == .closed(failures: 1))
        #expect(breaker.admission(at: start) == .posts)
        breaker.worked()
        fail(at: start)
        fail(at: start)
        #expect(breaker.state == .closed(failures: 2))
    }

    @Test mutating func consecutiveFailuresOpenTheBreaker() {
        fail(at: start)
        fail(at: start + .milliseconds(250))
        fail(at: start + .milliseconds(750))
        #expect(!breaker.isClosed)
        #expect(breaker.isOpen(at: start + .milliseconds(750)))
        #expect(breaker.admission(at: start + .milliseconds(750)) == .nothing)
    }

    @Test mutating func failuresFarApartAreNotConsecutive() {
        for minute in 0..<10 { fail(at: start + .seconds(61 * minute)) }
        #expect(breaker.state == .closed(failures: 1))
    }

    /// The timeout may change while the node runs.
    @Test mutating func postsThatTimeOutOneAfterTheOtherAreConsecutive() {
        breaker.configuration.setTimeout(.seconds(600))
        for post in 0..<3 { fail(at: start + .seconds(601 * post)) }
        #expect(!breaker.isClosed)
    }

    // MARK: Suspects

    private func known(_ token: Int64) -> Suspect { .known(DeliveryQueue.recipient(token)) }

    private mutating func fail(_ suspects: Set<Suspect>, at now: Timestamp) {
        number += 1
        breaker.failed(number, latest: number, suspects: suspects, at: now, using: &generator)
    }

    @Test("A recipient whose notifications make gorush fail opens the breaker only after five failures with nothing that worked")
    mutating func oneSuspect() {
        for count in 1...4 {
            fail([known(1)], at: start)
            #expect(breaker.state == .closed(failures: count))
        }
        fail([known(1)], at: start)
        #expect(!breaker.isClosed)
    }

    @Test("A post that works in between ends the row of failures")
    mutating func suspectsBesidesPostsThatWork() {
        for _ in 0..<100 {
            for _ in 0..<3 { fail([.strangers], at: start) }
            breaker.worked()
        }
        #expect(breaker.isClosed)
    }

    @Test("Failures that no one suspect explains open the breaker")
    mutating func severalSuspects() {
        // The first post and then each of its notifications alone.
        fail([known(1), known(2), known(3), .strangers], at: start)
        fail([known(1)], at: start)
        fail([known(2)], at: start)
        #expect(breaker.state == .closed(failures: 3))
        fail([known(3)], at: start)
        #expect(!breaker.isClosed)
    }

    @Test("Strangers count as one suspect: anybody can register many devices")
    mutating func strangersAreOneSuspect() {
        for _ in 0..<3 { fail([.strangers], at: start) }
        fail([known(1)], at: start)
        #expect(breaker.state == .closed(failures: 4))
    }

    @Test("A later post with as many suspects does not replace those of an earlier one")
    func suspectsInCommon() {
        var suspicions = Suspicions()
        for suspects in [[known(1), known(2)], [known(2), known(3)], [known(3)]] as [Set<Suspect>] { suspicions.add(suspects) }
        #expect(suspicions.count == 2 && suspicions.contains(known(1)))
    }

    @Test("While one or two suspects explain the failures, a probe for another recipient does not wait")
    mutating func earlyProbes() throws {
        for _ in 0..<5 { fail([known(1)], at: start) }
        let until = try #require(breaker.opensAgainAt)
        #expect(breaker.admission(at: start) == .nothing && !breaker.isOpen(at: start))
        #expect(breaker.admitsEarlyProbe(for: known(2)) && breaker.admitsEarlyProbe(for: .strangers))
        #expect(!breaker.admitsEarlyProbe(for: known(1)))
        // One at a time.
        breaker.began(probe: 6)
        #expect(!breaker.admitsEarlyProbe(for: known(2)))
        fail([known(2)], at: start)
        #expect(breaker.admitsEarlyProbe(for: known(3)) && !breaker.admitsEarlyProbe(for: known(2)))
        // The third suspect: it is gorush.
        breaker.began(probe: 7)
        fail([known(3)], at: start)
        #expect(!breaker.admitsEarlyProbe(for: known(4)) && breaker.isOpen(at: start))
        #expect(breaker.opensAgainAt.map { $0 > until } == true)
        breaker.worked()
        #expect(breaker.admission(at: start) == .posts && !breaker.admitsEarlyProbe(for: known(4)))
    }

    @Test("A failure that no recipient explains, or a pause that gorush asks for, ends early probes", arguments: [nil, 20])
    mutating func noEarlyProbes(retryAfter: Int?) {
        for _ in 0..<5 { fail([known(1)], at: start) }
        #expect(breaker.admitsEarlyProbe(for: known(2)))
        breaker.began(probe: 6)
        fail(at: start, retryAfter: retryAfter.map { .seconds($0) })
        #expect(!breaker.admitsEarlyProbe(for: known(2)) && breaker.isOpen(at: start))
    }

    @Test("A pause that gorush asks for in a post from before the last failure holds for all recipients")
    mutating func retryAfterOfAnEarlierPost() {
        breaker.failed(1, latest: 2, suspects: [known(1)], at: start, using: &generator)
        breaker.failed(2, latest: 2, retryAfter: .seconds(20), at: start, using: &generator)
        #expect(breaker.isOpen(at: start + .seconds(19)) && !breaker.admitsEarlyProbe(for: known(2)))
    }

    @Test("One or two recipients that make gorush fail delay no others, whenever those come", arguments: UInt64(1)...50)
    func othersAreNotDelayed(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var breaker = CircuitBreaker()
        let suspects = [Suspect.strangers, known(1), known(2)].shuffled(using: &generator).prefix(Int.random(in: 1...2, using: &generator))
        var (now, number, openCount) = (start, UInt64(0), 0)
        for _ in 0..<300 {
            now = now + .milliseconds(Int.random(in: 0...2000, using: &generator))
            let other = known(Int64.random(in: 10...20, using: &generator))
            #expect(breaker.admission(at: now) != .nothing || breaker.admitsEarlyProbe(for: other))
            if !breaker.isClosed { openCount += 1 }
            number += 1
            if Int.random(in: 1...20, using: &generator) == 1 {
                breaker.began(probe: number)
                breaker.worked()
            } else if breaker.admission(at: now) != .nothing, let suspect = suspects.randomElement(using: &generator) {
                breaker.began(probe: number)
                breaker.failed(number, latest: number, suspects: [suspect], at: now, using: &generator)
            }
        }
        #expect(openCount > 0)
    }

    @Test("A gorush that fails for all gets two early probes at most", arguments: UInt64(1)...50)
    func earlyProbesOfAGorushThatFails(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var breaker = CircuitBreaker()
        var (now, number, earlyCount) = (start, UInt64(0), 0)
        for step in 0..<500 {
            now = now + .milliseconds(Int.random(in: 0...100, using: &generator))
            // Until the breaker opens, a single one.
            let recipient = breaker.isClosed ? known(1) : known(Int64.random(in: 1...1000, using: &generator))
            let isEarly = breaker.admission(at: now) == .nothing
            guard !isEarly || breaker.admitsEarlyProbe(for: recipient) else { continue }
            if isEarly { earlyCount += 1 }
            number += 1
            breaker.began(probe: number)
            breaker.failed(number, latest: number, suspects: [recipient], at: now, using: &generator)
            #expect(!breaker.isClosed || step < 10)
        }
        #expect((1...2).contains(earlyCount))
    }

    @Test("Failures of posts from before the breaker closed do not open it again")
    mutating func failuresFromBeforeTheClosing() {
        for _ in 0..<3 { fail(at: start) }
        breaker.began(probe: 4)
        breaker.worked()
        breaker.failed(2, latest: 4, at: start, using: &generator)
        #expect(breaker.state == .closed(failures: 0))
    }

    @Test("A failure without suspects counts beside those with")
    mutating func unexplainedFailuresCount() {
        fail(at: start)
        fail([known(1)], at: start)
        #expect(breaker.isClosed)
        fail(at: start)
        #expect(!breaker.isClosed)
    }

    @Test mutating func simultaneousFailuresCountOnce() {
        for post in UInt64(1)...8 { breaker.failed(post, latest: 8, retryAfter: nil, at: start, using: &generator) }
        #expect(breaker.state == .closed(failures: 1))
        for post in UInt64(9)...16 { breaker.failed(post, latest: 16, retryAfter: nil, at: start, using: &generator) }
        #expect(breaker.state == .closed(failures: 2))
        breaker.failed(17, latest: 17, retryAfter: nil, at: start, using: &generator)
        #expect(!breaker.isClosed)
    }

    @Test mutating func retryAfterOpensTheBreakerAtOnce() {
        fail(at: start, retryAfter: .seconds(20))
        #expect(breaker.isOpen(at: start + .milliseconds(19_999)))
        #expect(breaker.admission(at: start + .seconds(20)) == .probe)
        breaker.failed(number, latest: number, retryAfter: .seconds(100_000), at: start, using: &generator)
        #expect(breaker.opensAgainAt == start + .seconds(300))
    }

    @Test mutating func oneProbeIsAdmittedAfterThePause() throws {
        let until = try open(at: start)
        #expect(until.since(start) >= .milliseconds(250) && until.since(start) <= .milliseconds(500))
        #expect(breaker.admission(at: until - .nanoseconds(1)) == .nothing)
        #expect(breaker.admission(at: until) == .probe)
        breaker.began(probe: 4)
        #expect(breaker.state == .halfOpen(probe: 4, attempt: 0))
        #expect(breaker.admission(at: until) == .nothing)
        #expect(!breaker.isOpen(at: until))
    }

    @Test mutating func aSuccessfulProbeClosesTheBreaker() throws {
        let until = try open(at: start)
        breaker.began(probe: 4)
        breaker.worked()
        #expect(breaker.state == .closed(failures: 0))
        #expect(breaker.admission(at: until) == .posts)
    }

    @Test mutating func pausesGrowWithEachFailedProbe() throws {
        var until = try open(at: start)
        var pauses: [Duration] = []
        for _ in 0..<8 {
            fail(at: until)
            let next = try #require(breaker.opensAgainAt)
            pauses.append(next.since(until))
            until = next
        }
        #expect(pauses[0] >= .milliseconds(500) && pauses[0] <= .seconds(1))
        #expect(pauses[3] >= .milliseconds(2500))
        #expect(pauses.allSatisfy { $0 <= .seconds(5) })
    }

    @Test mutating func aProbeWithoutOutcomeIsFollowedByAnother() throws {
        let until = try open(at: start)
        breaker.began(probe: 4)
        breaker.endedWithoutEvidence(3, at: until)
        #expect(breaker.admission(at: until) == .nothing)
        breaker.endedWithoutEvidence(4, at: until)
        #expect(breaker.admission(at: until) == .probe)
    }

    @Test mutating func failuresOfPostsBeforeTheOpeningAreIgnored() throws {
        let until = try open(at: start)
        // Posts that began before the opening: their failures change nothing.
        breaker.failed(2, latest: 3, retryAfter: nil, at: start, using: &generator)
        #expect(breaker.opensAgainAt == until)
        breaker.began(probe: 4)
        breaker.failed(3, latest: 4, retryAfter: nil, at: until, using: &generator)
        #expect(breaker.state == .halfOpen(probe: 4, attempt: 0))
        breaker.worked()
        #expect(breaker.isClosed)
    }

    @Test mutating func theOperatorCanForceAProbe() throws {
        let until = try open(at: start)
        breaker.hasten(at: start)
        #expect(breaker.admission(at: start) == .probe)
        #expect(until > start)
        // The probe may fail like any other.
        fail(at: start)
        #expect(breaker.isOpen(at: start))
        breaker.worked()
        breaker.hasten(at: start)
        #expect(breaker.state == .closed(failures: 0))
    }
}
