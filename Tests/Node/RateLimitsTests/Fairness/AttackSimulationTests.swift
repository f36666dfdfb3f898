import Core
import Testing
import WakuCrypto

@testable import RateLimits

/// Attacks with throw-away keys in virtual time, with honest clients of both standings: each test is a row of the threat model's table of floods.
///
/// The bar: known clients are served as without the attack; honest strangers at 80 % while the attack's priced work fits two cores, and otherwise with
/// their fair share of the rest, which the test states.
@Suite struct AttackSimulationTests {
    private static let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
    /// CPU time per second of the machine: two cores.
    private static let cpu = 2_000_000

    /// Clients by number; each attack message comes from a new one.
    private static func payer(_ number: Int, _ kind: Payer.Kind = .deviceToken) -> Payer { FairQueueTests.payer(number, kind) }

    private struct Served {
        var asked = 0
        var served = 0
        var share: Double { Double(served) / Double(max(1, asked)) }
    }

    // MARK: New registrations at the total's rate

    /// - Parameter rate: registrations by new keys in a second; 1,300 are 1 MB.
    @Test(arguments: [250, 1_300]) func newRegistrationsOfStrangersDoNotRefuseTheKnown(rate: Int) throws {
        var table = RateLimitTable(.standard)
        var (known, strangers) = (Served(), Served())
        for tick in 0..<120_000 {
            let now = Self.start + .milliseconds(tick)
            for number in tick * rate / 1_000..<(tick + 1) * rate / 1_000 {
                _ = table.newRegistration(installations: 0, by: Charge(Self.payer(1_000_000 + number), .stranger), at: now)
            }
            // The burst is used up after a while.
            if tick % 500 == 7, tick > 60_000 {
                known.asked += 1
                let charge = Charge(Self.payer(tick), .known)
                if table.newRegistration(installations: 0, by: charge, at: now) == nil { known.served += 1 }
            }
            if tick % 97 == 3, tick > 60_000 {
                strangers.asked += 1
                let charge = Charge(Self.payer(-tick), .stranger)
                if table.newRegistration(installations: 0, by: charge, at: now) == nil { strangers.served += 1 }
            }
        }
        #expect(known.share >= 0.999)
        let total = try #require(Limits.standard.newRegistrations).count
        let priced = rate * (WorkKind.openMessage.cpuMicroseconds + WorkKind.registration.cpuMicroseconds)
        #expect(priced <= Self.cpu)
        #expect(strangers.share >= (rate < total ? 0.999 : 0.7), "\(strangers.share)")
    }

    // MARK: Registrations, with junk on their query topics

    /// - Parameter rate: new registrants in a second, each with a message on its query topic: 80 are 60 KB, 1,300 are 1 MB.
    @Test(arguments: [80, 1_300]) func derivationsForStrangersDoNotDelayTheKnown(rate: Int) {
        struct Query {
            let standing: Standing
            let isHonest: Bool
            let sentAt: Int
        }
        var queue = FairQueue<Query>(capacity: 2_000, newPayersFirst: true, seed: 1)
        let work = WorkKind.deriveTopicKey.cpuMicroseconds
        var (asked, served) = ([Standing: Int](), [Standing: Int]())
        var worst = 0
        // One of two cores derives. Times in microseconds.
        var free = 0
        for tick in 0..<60_000 {
            let now = tick * 1_000
            func ask(_ number: Int, _ standing: Standing, isHonest: Bool) {
                _ = queue.push(
                    Query(standing: standing, isHonest: isHonest, sentAt: now), by: Self.payer(number, .registrant), standing)
                if isHonest { asked[standing, default: 0] += 1 }
            }
            for number in tick * rate / 1_000..<(tick + 1) * rate / 1_000 { ask(number, .stranger, isHonest: false) }
            if tick % 500 == 3 { ask(-tick, .stranger, isHonest: true) }
            if tick % 500 == 253 { ask(-tick, .known, isHonest: true) }
            while free <= now, let query = queue.pop() {
                free = max(free, now) + work
                guard query.isHonest else { continue }
                if query.standing == .known { worst = max(worst, free - query.sentAt) }
                if free - query.sentAt <= 5_000_000 { served[query.standing, default: 0] += 1 }
            }
        }
        func share(_ standing: Standing) -> Double { Double(served[standing] ?? 0) / Double(asked[standing] ?? 1) }
        // A known registrant waits for the derivation in progress, and for its own.
        #expect(share(.known) == 1 && worst <= 2 * work + 1_000)
        let fairShare = min(1, Double(1_000_000 / work) / Double(rate))
        #expect(share(.stranger) >= 0.8 * fairShare, "\(share(.stranger)) of \(fairShare)")
    }

    // MARK: Queries about own registrants with long lists

    @Test func answersAreAtMostFiftyTimesTheirQueriesAfterTheFirst() {
        var table = RateLimitTable(.standard)
        let (list, query) = (790 << 10, 400)
        var (first, later, sent) = (0, 0, 0)
        var honest = Served()
        // 4 KB of queries a second, about one registrant.
        for tick in 0..<1_800 * 10 {
            let now = Self.start + .milliseconds(100 * tick)
            sent += query
            if table.answer(byteCount: list, about: [1], queryByteCount: query, at: now) == nil,
                table.answer(byteCount: list, for: Charge(Self.payer(1), .stranger), at: now) == nil
            {
                if first == 0 { first = list } else { later += list }
            }
            // An ordinary query, about a registrant of its own.
            honest.asked += 1
            let registrant = withUnsafeBytes(of: tick, Array.init)
            if table.answer(byteCount: 1_000, about: registrant, queryByteCount: query, at: now) == nil,
                table.answer(byteCount: 1_000, for: Charge(Self.payer(-tick), .stranger), at: now) == nil
            {
                honest.served += 1
            }
        }
        #expect(first == list)
        // Three whole answers in half an hour leave unpaid.
        #expect(later - 3 * list <= AnswerCredit.amplification * sent)
        #expect(honest.share == 1)
    }

    /// Registrations of 4 MiB of which answers contain little, each queried for the first time.
    @Test func readingForAnswersLeavesTheKnownTheirShare() {
        var table = RateLimitTable(.standard)
        var (read, known) = (0, Served())
        let seconds = 60
        for tick in 0..<seconds * 100 {
            let now = Self.start + .milliseconds(10 * tick)
            if table.reading(byteCount: 4 << 20, for: .answer, by: Charge(Self.payer(tick), .stranger), at: now) == nil { read += 4 }
            known.asked += 1
            let charge = Charge(Self.payer(-1 - tick % 50), .known)
            if table.reading(byteCount: 100 << 10, for: .answer, by: charge, at: now) == nil { known.served += 1 }
        }
        // 32 MiB a second and the burst, of 24,000 MiB that were asked for.
        #expect(read <= 32 * seconds + 64)
        #expect(known.share == 1)
    }

    /// Requests about own registrants with lists of 360 KB to 2 MiB, 1.5 KB for eight.
    @Test(arguments: [360, 2_048]) func readingForRequestsLeavesTheKnownTheirShare(kib: Int) {
        var table = RateLimitTable(.standard)
        var (read, known) = (0, Served())
        let seconds = 60
        for tick in 0..<seconds * 100 {
            let now = Self.start + .milliseconds(10 * tick)
            for number in 0..<8 {
                let charge = Charge(Self.payer(8 * tick + number), .stranger)
                if table.reading(byteCount: kib << 10, for: .decision, by: charge, at: now) == nil { read += kib }
            }
            guard tick % 5 == 3 else { continue }
            known.asked += 1
            let charge = Charge(Self.payer(-1 - tick % 50), .known)
            if table.reading(byteCount: 100 << 10, for: .decision, by: charge, at: now) == nil { known.served += 1 }
        }
        // 8 MiB a second and the burst.
        #expect(read <= (8 * seconds + 32) << 10)
        #expect(known.share == 1)
    }

    /// As large as contracts allow, for a registrant without standing.
    @Test func eightRegistrationsOfTwoMebibytesAreRead() {
        var table = RateLimitTable(.standard)
        let charge = Charge(Self.payer(1), .stranger)
        // The sender repeats its request for those that were refused.
        for now in [Self.start, Self.start + .seconds(10)] {
            let read = (0..<4).filter { _ in table.reading(byteCount: 2 << 20, for: .decision, by: charge, at: now) == nil }
            #expect(read.count == 4)
        }
    }

    /// Many registrants: their first answers all leave unpaid, so the total bounds them.
    @Test func firstAnswersOfManyRegistrantsLeaveTheKnownTheirShare() {
        var table = RateLimitTable(.standard)
        let list = 790 << 10
        var (sent, known) = (0, Served())
        let seconds = 120
        for tick in 0..<seconds * 100 {
            let now = Self.start + .milliseconds(10 * tick)
            if table.answer(byteCount: list, about: withUnsafeBytes(of: tick, Array.init), queryByteCount: 400, at: now) == nil,
                table.answer(byteCount: list, for: Charge(Self.payer(tick), .stranger), at: now) == nil
            {
                sent += list
            }
            // 1,000 ordinary queries a second about known registrants.
            for number in 0..<10 {
                known.asked += 1
                if table.answer(byteCount: 1_000, for: Charge(Self.payer(-number), .known), at: now) == nil { known.served += 1 }
            }
        }
        #expect(known.share >= 0.99, "\(known.share)")
        #expect(sent <= (65_536 << 10) + seconds * (4_096 << 10))
    }

    @Test func listsOfFourMebibytesAreAnsweredOnceInTenMinutes() {
        var table = RateLimitTable(.standard)
        let list = 4 << 20
        func asks(_ seconds: Int) -> Bool {
            let now = Self.start + .seconds(seconds)
            return table.answer(byteCount: list, about: [1], queryByteCount: 400, at: now) == nil
                && table.answer(byteCount: list, for: Charge(Self.payer(1), .stranger), at: now) == nil
        }
        let answers = [asks(0), asks(1), asks(601)]
        #expect(answers == [true, false, true])
    }

    @Test func thousandOrdinaryQueriesASecondAreAnswered() {
        var table = RateLimitTable(.standard)
        var served = Served()
        for tick in 0..<20_000 {
            let now = Self.start + .milliseconds(tick)
            served.asked += 1
            let registrant = withUnsafeBytes(of: tick % 5_000, Array.init)
            if table.query(about: registrant, at: now) == nil, table.answer(byteCount: 1_000, about: registrant, at: now) == nil,
                table.answer(byteCount: 1_000, for: Charge(Self.payer(tick % 5_000), .stranger), at: now) == nil
            {
                served.served += 1
            }
        }
        #expect(served.share == 1)
    }

    // MARK: Requests that notify a thousand own devices

    @Test func notificationsForOwnDevicesAreChargedBeforeTheyAreMade() {
        var table = RateLimitTable(.standard)
        var (known, strangers) = (Served(), Served())
        var attack = 0
        for tick in 0..<20_000 {
            let now = Self.start + .milliseconds(tick)
            // Ten requests a second, for ten registrants with 100 devices each.
            if tick % 100 == 0 {
                for number in 0..<1_000 {
                    let owner = Charge(Self.payer(1_000_000 + number / 100, .owner), .stranger)
                    let device = withUnsafeBytes(of: number, Array.init)
                    if table.notification(for: device, by: owner, at: now) == nil { attack += 1 }
                }
            }
            func notify(_ number: Int, _ standing: Standing, _ result: inout Served) {
                result.asked += 1
                let device = withUnsafeBytes(of: -number, Array.init)
                if table.notification(for: device, by: Charge(Self.payer(number, .owner), standing), at: now) == nil { result.served += 1 }
            }
            if tick % 5 == 1 { notify(1 + tick % 499, .known, &known) }
            if tick % 50 == 2 { notify(10_001 + tick % 991, .stranger, &strangers) }
        }
        #expect(known.share >= 0.999, "\(known.share)")
        #expect(strangers.share >= 0.8, "\(strangers.share)")
        let cpu = attack * WorkKind.notification.cpuMicroseconds / 20
        // The burst counts too.
        #expect(cpu <= Self.cpu * 3 / 4)
    }

    // MARK: Requests for one device

    /// 60 requests a second for one device, for ten minutes: some notification for it is admitted every two seconds, which wakes the app, and other
    /// devices of its owner have their own rate.
    @Test func aFloodedDeviceIsNotifiedEveryTwoSeconds() {
        var table = RateLimitTable(.standard)
        var (last, longest, other) = (Self.start, Duration.zero, Served())
        let owner = Charge(Self.payer(1, .owner), .stranger)
        for tick in 0..<36_000 {
            let now = Self.start + .milliseconds(tick * 1_000 / 60)
            if table.notification(for: [1], by: owner, at: now) == nil {
                longest = max(longest, now.since(last))
                last = now
            }
            guard tick % 60 == 1 else { continue }
            other.asked += 1
            if table.notification(for: [2], by: owner, at: now) == nil { other.served += 1 }
        }
        #expect(longest <= .milliseconds(100) && (Self.start + .seconds(600)).since(last) <= .milliseconds(100))
        #expect(other.share == 1)
    }

    // MARK: Reports

    /// Together, those that are listed have all work.
    @Test func heaviestPayersAreListedInBoundedMemory() {
        var log = RefusalLog()
        for number in Array(repeating: 0, count: 100) + Array(1...1000) { log.worked(for: Charge(Self.payer(number), .stranger)) }
        let heaviest = log.heaviest(1000)
        #expect(heaviest.count == 64 && heaviest.map(\.work).reduce(0, +) == 1100)
        #expect(heaviest.first?.payer == Self.payer(0))
    }

    @Test func refusalsAreReportedByKindAndStanding() {
        let limits = RateLimits(Limits.standard)
        let hasher = PayerHasher(key: .random())
        let payer = hasher.payer(.owner, [1])
        let device = hasher.payer(.deviceToken, [2]).bytes
        for _ in 0..<5_000 {
            _ = limits.refuses(for: Charge(payer, .stranger)) {
                $0.notification(for: device, by: Charge(payer, .stranger), at: Self.start)
            }
        }
        #expect(limits.refusals.attack == nil)
        limits.endMinute(at: Self.start)
        // The day of the first minute is new, so payers begin again.
        _ = limits.refuses(for: Charge(payer, .stranger)) { _ in nil }
        #expect(limits.refusals.attack?.key.limit == .notificationsByTarget)
        #expect(limits.refusals.attack?.count == 4_500)
        #expect(limits.refusals.heaviest().map(\.payer) == [payer])
        limits.endMinute(at: Self.start + .seconds(60))
        #expect(limits.refusals.attack == nil)
        let name = hasher.dailyName(of: payer, at: Self.start)
        #expect(name.count == 8 && name == hasher.dailyName(of: payer, at: Self.start + .seconds(60)))
        #expect(name != hasher.dailyName(of: payer, at: Self.start + .seconds(24 * 3600)))
    }
}
