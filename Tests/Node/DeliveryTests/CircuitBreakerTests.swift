@testable import Delivery
import TestSupport
import Testing
import Core

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
