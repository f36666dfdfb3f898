import StatusProtocol
import TestSupport
import Testing
import Core
import WakuCrypto

@testable import RateLimits
@testable import StatusRules

@Suite("Rate limits")
struct RateLimiterTests {
    let start = Timestamp(rawValue: 1_700_000_000_000_000_000)

    @Test("admit a burst, then the rate")
    func burst() {
        var limiter = RateLimiter(RateLimit(10, per: .second, burst: 5))
        #expect((0..<8).map { _ in limiter.admits([1], at: start) } == [true, true, true, true, true, false, false, false])
        #expect(limiter.admits([1], at: start + .milliseconds(99)) == false)
        #expect(limiter.admits([1], at: start + .milliseconds(100)) == true)
        #expect(limiter.admits([1], at: start + .milliseconds(100)) == false)
        // The bucket is full again, but not beyond its capacity.
        let later = start + .seconds(3600)
        #expect((0..<6).filter { _ in limiter.admits([1], at: later) }.count == 5)
    }

    @Test("apply per key")
    func keys() {
        var limiter = RateLimiter(RateLimit(1, per: .minute))
        #expect(limiter.admits([1], at: start) == true)
        #expect(limiter.admits([1], at: start + .seconds(59)) == false)
        #expect(limiter.admits([2], at: start + .seconds(59)) == true)
        #expect(limiter.admits([1], at: start + .seconds(60)) == true)
    }

    @Test("hold over a long run", arguments: [1, 7, 1000])
    func average(rate: Int) {
        var limiter = RateLimiter(RateLimit(rate, per: .second, burst: 10))
        let admitted = (0..<20_000).filter { limiter.admits([1], at: start + .milliseconds($0)) }.count
        #expect((min(20_000, 20 * rate)...20 * rate + 10).contains(admitted), "\(admitted)")
    }

    @Test("block no longer than the refill of a whole bucket after the clock steps back")
    func clock() {
        var limiter = RateLimiter(RateLimit(1, per: .second, burst: 2))
        for _ in 0..<3 { _ = limiter.admits([1], at: start) }
        #expect(limiter.admits([1], at: start) == false)
        #expect(limiter.admits([1], at: start - .seconds(3600)) == true)
        #expect(limiter.admits([1], at: start - .seconds(3599)) == true)
    }

    @Test("admit no more when times arrive out of order")
    func timesOutOfOrderAdmitNoMore() {
        var limiter = RateLimiter(RateLimit(1, per: .day, burst: 10))
        let admitted = (0..<1000).filter { limiter.admits([1], at: start + .milliseconds($0.isMultiple(of: 2) ? $0 : $0 - 5)) }.count
        #expect(admitted == 10)
        #expect(limiter.admits([1], at: start - .seconds(5)) == false)
        #expect(limiter.admits([2], at: start - .seconds(5)) == true)
    }

    @Test("evict the oldest of too many keys, and never the latest")
    func bounds() {
        var limiter = RateLimiter(RateLimit(1, per: .hour), capacity: 100)
        for number in 0..<2_000 {
            let key = [UInt8(number / 256), UInt8(number % 256)]
            #expect(limiter.admits(key, at: start) == true)
            #expect(limiter.admits(key, at: start) == false)
            #expect(limiter.count <= 200)
        }
    }

    @Test(
        "round-trip through their text",
        arguments: ["10/s burst 100", "1/min burst 1", "3600/h burst 20", "1000000/d burst 1000000", "1/d burst 36500", "5/d burst 182500"])
    func roundTrip(text: String) throws { #expect(try RateLimit(parsing: text).description == text) }

    @Test("have by default a burst of one unit's tokens")
    func standardBurst() throws { #expect(try RateLimit(parsing: "20/s") == RateLimit(20, per: .second, burst: 20)) }

    @Test(
        "refuse malformed text",
        arguments: ["", "10", "/s", "10/", "0/s", "-1/s", "10/week", "10/s burst", "10/s burst 0", "10/s 5", "10/s burst 5 5", "1000001/s"])
    func malformed(text: String) { #expect(throws: RateLimit.Problem.malformed) { try RateLimit(parsing: text) } }

    @Test(
        "that take over 100 years to refill are refused, with the largest possible burst",
        arguments: [
            ("1/d burst 200000", 36_500), ("1/d burst 36501", 36_500), ("5/d burst 1000000", 182_500), ("1/h burst 1000000", 876_000),
        ])
    func uncountable(text: String, maximum: Int) {
        #expect(throws: RateLimit.Problem.burstTooLarge(maximum: maximum)) { try RateLimit(parsing: text) }
    }

    @Test("admit the largest possible burst, and no more")
    func largestBurst() throws {
        for text in ["1/h burst 876000", "1/min burst 1000000"] { #expect(throws: Never.self) { try RateLimit(parsing: text) } }
        let limit = try RateLimit(parsing: "1/d burst 36500")
        var limiter = RateLimiter(limit)
        let admitted = (0..<limit.burst + 5).count { _ in limiter.admits([1], at: start) }
        #expect(admitted == limit.burst)
    }
}

@Suite("Limits")
struct LimitsTests {
    let now = Timestamp(rawValue: 1_700_000_000_000_000_000)
    let one = PrivateKey.generate().publicKey
    let other = PrivateKey.generate().publicKey

    @Test("of a sender do not affect others, and are separate for each kind")
    func senders() throws {
        var limits = Limits.none
        for text in ["registrations-by-sender=1/h", "queries-by-sender=2/h", "requests-by-sender=3/h", "messages-by-sender=4/h"] {
            try limits.set(text)
        }
        var admission = RateLimitTable(limits)
        for (kind, count, refusal) in [
            (.registration, 1, .registrationsBySender), (.query, 2, .queriesBySender), (.request, 3, .requestsBySender),
        ] as [(MessageKind, Int, RateLimitTable.Refusal)] {
            for _ in 0..<count { #expect(admission.message(kind, from: one, at: now) == nil) }
            #expect(admission.message(kind, from: one, at: now) == refusal)
            #expect(admission.message(kind, from: other, at: now) == nil)
        }
        for _ in 0..<4 { #expect(admission.message(from: one, at: now) == nil) }
        #expect(admission.message(from: one, at: now) == .messagesBySender)
        #expect(admission.message(from: other, at: now) == nil)
        for _ in 0..<10 { #expect(admission.message(.queryResponse, from: one, at: now) == nil) }
    }

    @Test("of a sender apply to all unsigned messages together, and do not affect signed ones")
    func unsigned() throws {
        var limits = Limits.none
        for text in ["requests-by-sender=3/h", "messages-by-sender=4/h"] { try limits.set(text) }
        var admission = RateLimitTable(limits)
        let requests = (0..<9).map { _ in admission.message(MessageClass.request, from: nil, at: now) }
        #expect(requests.count { $0 == nil } == 3 && requests.last == .requestsBySender)
        let messages = (0..<9).map { _ in admission.message(from: nil, at: now) }
        #expect(messages.count { $0 == nil } == 4 && messages.last == .messagesBySender)
        #expect(admission.message(MessageClass.request, from: one, at: now) == nil)
        #expect(admission.message(from: one, at: now) == nil)
    }

    @Test("of a sender apply to its repeated messages separately, and a retry is no repetition")
    func repetitions() throws {
        var limits = Limits.none
        try limits.set("messages-by-sender=1/h")
        let gate = RateLimits(limits)
        let contents = [[1], [2]].map { SignedContent($0, by: one) }
        func isRefused(_ content: SignedContent, isRetry: Bool = false) -> Bool {
            gate.refuses(isRetry: isRetry) { $0.message(from: one, isRepetition: $0.isRepetition(of: content), at: now) }
        }
        #expect(!isRefused(contents[0]))
        #expect([false, true, true] == (0..<3).map { _ in isRefused(contents[0]) })
        #expect(isRefused(contents[1]))

        gate.replace(.none)
        gate.replace(limits)
        #expect(!isRefused(contents[0]))
        // Not as a repetition, which the limit would admit.
        #expect(isRefused(contents[0], isRetry: true))
        #expect(!isRefused(contents[0]))
        // The same bytes, signed by another key, are no repetition.
        #expect(!gate.refuses { $0.message(from: other, isRepetition: $0.isRepetition(of: SignedContent([1], by: other)), at: now) })
    }

    @Test("in total count all senders, but not messages refused before")
    func totals() throws {
        var limits = Limits.none
        for text in ["queries=3/h", "queries-by-sender=2/h"] { try limits.set(text) }
        var admission = RateLimitTable(limits)
        let refusals = (0..<9).map { _ in admission.message(MessageClass.query, from: one, at: now) }
        #expect(refusals.count { $0 == nil } == 2)
        #expect(admission.message(MessageClass.query, from: other, at: now) == nil)
        #expect(admission.message(MessageClass.query, from: other, at: now) == .queries)
    }

    @Test("of a target apply to all senders together")
    func targets() throws {
        var limits = Limits.none
        for text in ["queries-by-target=1/h", "notifications-by-target=1/h"] { try limits.set(text) }
        var admission = RateLimitTable(limits)
        let (hash, otherHash) = (KeyHash(of: one), KeyHash(of: other))
        #expect(admission.query(about: hash, at: now) == nil)
        #expect(admission.query(about: hash, at: now) == .queriesByTarget)
        #expect(admission.query(about: otherHash, at: now) == nil)
        let phone = RegistrationKey(keyHash: hash, installationID: InstallationID("phone"))
        #expect(admission.notification(for: phone, at: now) == nil)
        #expect(admission.notification(for: phone, at: now) == .notificationsByTarget)
        #expect(admission.notification(for: RegistrationKey(keyHash: hash, installationID: InstallationID("tablet")), at: now) == nil)
    }

    @Test("of counts apply to current registrations")
    func counts() throws {
        var limits = Limits.none
        for text in ["installations-by-key=2", "registration-count=5", "new-registrations=1/h"] { try limits.set(text) }
        var admission = RateLimitTable(limits)
        #expect(admission.newRegistration(installations: 2, at: now) == .installationsByKey)
        #expect(admission.newRegistration(installations: 1, exhausted: .registrationCount, at: now) == .registrationCount)
        #expect(admission.newRegistration(installations: 1, at: now) == nil)
        #expect(admission.newRegistration(installations: 1, at: now) == .newRegistrations)
    }

    @Test("of a push service's devices are off by default, and never apply above the total")
    func devicesByOrigin() throws {
        #expect(Limits.standard.webPushDevicesByOrigin == nil)
        var limits = Limits.standard
        try limits.set("web-push-devices-by-origin=100000")
        #expect(limits.webPushDevicesByOrigin == 100_000 && limits.conflicts.isEmpty)
        try limits.set("registration-count=1000")
        #expect(
            limits.conflicts.map(\.message) == [
                "web-push-devices-by-origin (100000) never applies, as registration-count (1000) is lower: lower the first or raise the second"
            ])
    }

    @Test("allow and deny keys")
    func lists() {
        var limits = Limits.none
        let (hash, otherHash) = (KeyHash(of: one), KeyHash(of: other))
        #expect(limits.allows(hash))
        limits.denied = [hash.bytes]
        #expect(!limits.allows(hash))
        #expect(limits.allows(otherHash))
        limits.allowed = [hash.bytes]
        #expect(!limits.allows(hash))
        #expect(!limits.allows(otherHash))
        limits.denied = []
        #expect(limits.allows(hash))
    }

    @Test("are set by name in the format in which they are shown")
    func names() throws {
        var limits = Limits.none
        #expect(Set(limits.settings.map(\.value)) == ["off"])
        for (name, value) in Limits.standard.settings { try limits.set("\(name)=\(value)") }
        #expect(limits == .standard)
        for (name, _) in Limits.standard.settings { try limits.set("\(name)=off") }
        #expect(limits == .none)
    }

    @Test("are listed in the article on configuration")
    func article() throws {
        let meanings = Limits.rates.map(\.meaning) + Limits.counts.map(\.meaning)
        let rows = zip(Limits.standard.settings, meanings).map { "| `\($0.name)` | `\($0.value)` | \($1) |" }
        let table = GeneratedTable("limits", in: "Configuration.md")
        #expect(try table.isCurrent(["| limit | default | of |", "| --- | --- | --- |"] + rows), "run Deploy/dev/generate-tables")
    }

    @Test(
        "refuse malformed settings",
        arguments: [
            ("requests", "requests is not of the form NAME=VALUE"),
            ("requests=many", "requests=many is not a rate: write it like 10/s, 600/min burst 100, or off"),
            (
                "registrations=1/d burst 200000",
                "registrations=1/d burst 200000 can't be counted: the burst takes over 100 years to refill: give a burst of at most 36500, or a higher rate"
            ),
            ("registration-count=0", "registration-count=0 is not a count: give a number from 1 to 1000000000, or off"),
        ])
    func problems(text: String, message: String) {
        var limits = Limits.none
        let problem = #expect(throws: Limits.Problem.self) { try limits.set(text) }
        #expect(problem?.message == message)
        #expect(limits == .none)
    }

    @Test("that do not exist cause an error that lists all limits")
    func unknown() {
        var limits = Limits.none
        let problem = #expect(throws: Limits.Problem.self) { try limits.set("wishes=1/s") }
        #expect(problem?.message.hasPrefix("there is no limit wishes: there are messages-by-sender, ") == true)
    }
}

/// The share of one of several nodes that count usage independently.
@Suite struct SharedLimitTests {
    @Test(arguments: [
        ("50/s burst 1000", 2, "90000/h burst 545"), ("2/s burst 100", 3, "57600/d burst 45"), ("1/min burst 1", 2, "720/d burst 1"),
        ("1/d burst 1", 3, "1/d burst 1"), ("1000000/s burst 1000000", 4, "250000/s burst 251000"), ("7/h burst 5", 1, "7/h burst 5"),
    ])
    func share(whole: String, nodeCount: Int, share: String) throws {
        let limit = try RateLimit(parsing: whole)
        #expect(limit.share(among: nodeCount).description == share)
    }

    /// Rates so low that each node applies the whole.
    @Test(arguments: ["59/h burst 20", "1/h burst 1", "1/d burst 1", "1439/d burst 100"]) func wholeRates(_ text: String) throws {
        let limit = try RateLimit(parsing: text)
        #expect(limit.isTooLowToDivide && limit.share(among: 3) == limit)
    }

    @Test(arguments: ["60/h burst 20", "1/min burst 1", "1440/d burst 1", "1/s burst 1"]) func dividedRates(_ text: String) throws {
        #expect(try !RateLimit(parsing: text).isTooLowToDivide)
    }

    /// All shares together allow no less than the whole, and little more.
    @Test func partsMakeTheWhole() throws {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2_000 {
            let count = Int.random(in: 1...100_000, using: &generator)
            let unit = try #require(RateLimit.Unit.allCases.randomElement(using: &generator))
            let limit = try RateLimit(parsing: "\(count)/\(unit.rawValue) burst \(Int.random(in: 1...10_000, using: &generator))")
            let nodeCount = Int.random(in: 1...8, using: &generator)
            guard !limit.isTooLowToDivide else { continue }
            let part = limit.share(among: nodeCount)
            let (whole, parts) = (1 / Double(limit.interval), Double(nodeCount) / Double(part.interval))
            // A share is at least one per day.
            let leeway = Double(nodeCount) / 86_400e9
            #expect(parts >= whole * 0.999 && parts <= whole * 1.02 + leeway, "\(limit) for \(nodeCount): \(part)")
            #expect(part.burst <= limit.burst && part.burst * nodeCount >= limit.burst)
        }
    }

    @Test func gateCountsItsPart() {
        var limits = Limits.none
        limits.requests = RateLimit(10, per: .minute, burst: 10)
        let gate = RateLimits(limits)
        gate.share(among: 4)
        #expect(gate.limits.requests == limits.requests?.share(among: 4))
        limits.requests = RateLimit(100, per: .minute, burst: 100)
        gate.replace(limits)
        #expect(gate.limits.requests == limits.requests?.share(among: 4))
        gate.share(among: 1)
        #expect(gate.limits == limits)
    }
}
