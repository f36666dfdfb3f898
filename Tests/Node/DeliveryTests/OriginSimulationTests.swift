import Core
import TestSupport
import Testing

@testable import Delivery

/// Push services in virtual time: the table decides, the simulation answers.
@Suite("Web Push services by origin")
struct OriginSimulationTests {
    enum Manner: Hashable {
        case honest
        /// Answers after 9 s.
        case slow
        /// Never answers: posts time out after 15 s.
        case dead
        /// Its name can't be resolved: posts fail after 5 s.
        case unresolved
        /// Accepts its first message, and never answers again.
        case turning
        /// Accepts and takes 1.9 s.
        case lying
        /// Answers 400.
        case refusing
        /// Answers 429 with an hour of Retry-After.
        case busy
    }

    struct Result {
        var accepted: [Int64] = []
        var refused = 0
        var evicted: [Int: Int] = [:]
        /// From arrival to acceptance, of honest services.
        var honestDelays: [Duration] = []
        var delays: [Int64: Duration] = [:]
        var maximumOpenCount = 0
        /// Of the services that have not answered.
        var maximumOthersCount = 0
        var maximumPlaceCount = 0
        var maximumInFlightOfOne = 0
        var maximumInFlight = 0
        var posts: [WebPushOrigin: Int] = [:]
    }

    private static let start = Timestamp(rawValue: 1_700_000_000_000_000_000)

    private static func origin(_ number: Int) throws -> WebPushOrigin {
        try #require(WebPushOrigin(endpoint: "https://push\(number).example/x"))
    }

    /// Runs deliveries at given times to their ends, or until `until`.
    ///
    /// - Parameters:
    ///   - known: services that accepted messages before the start.
    ///   - address: the number of the address of an origin.
    ///   - host: the host name of an origin.
    private static func run(
        _ manners: [Manner], arrivals: [(at: Duration, origin: Int)], openLimit: Int = 1000, waitingLimit: Int = 100_000,
        until: Duration = .seconds(600), known: [Int] = [], address: (Int) -> Int = { $0 },
        host: (Int) -> String = { "push\($0).example" }
    ) throws -> (Result, DeliveryTable) {
        var configuration = OriginQueues.Configuration()
        configuration.openLimit = openLimit
        configuration.waitingLimit = waitingLimit
        var table = DeliveryTable([DeliveryQueue()], webPush: configuration)
        let origins = try manners.indices.map { try #require(WebPushOrigin(endpoint: "https://\(host($0))/x")) }
        table.origins.acceptedBefore(known.map { origins[$0] }, now: start)
        let numbers = Dictionary(uniqueKeysWithValues: origins.enumerated().map { ($1, $0) })
        var result = Result()
        var answers = EventQueue<Timestamp, (sent: Timestamp, place: EndpointID, batch: DeliveryQueue.Batch)>()
        var hasAccepted = Set<Int>()
        var arrived: [Int64: Timestamp] = [:]
        var owner: [Int64: Int] = [:]
        var inFlight: [WebPushOrigin: Int] = [:]
        var inFlightCount = 0
        var generator = SeededGenerator(seed: 1)
        var next = 0
        var now = start
        var stepCount = 0
        while now < start + until {
            while next < arrivals.count, start + arrivals[next].at <= now {
                let id = Int64(next + 1)
                let device = DeviceID(ProtocolNumber(rawValue: 1), row: id)
                let waiting = WaitingDelivery(
                    id: id, delivery: DeliveryID(hashing: withUnsafeBytes(of: id, Array.init)), device: device, expires: now + .seconds(600)
                )
                arrived[id] = now
                owner[id] = arrivals[next].origin
                table.add(
                    [
                        DeliveryTable.Arrival(
                            waiting: waiting, endpoint: .webPush(origins[arrivals[next].origin]))
                    ], isAwaited: true, clock: now, now: now)
                next += 1
            }
            while let due = answers.next, due <= now, let last = answers.pop()?.event {
                guard case .webPush(let origin) = last.place, table.origins.services[origin] != nil, let number = numbers[origin] else {
                    Issue.record("an origin with a post in flight was released")
                    continue
                }
                inFlight[origin, default: 0] -= 1
                inFlightCount -= 1
                let answer: WebPushAnswer =
                    switch manners[number] {
                    case .honest, .slow, .lying: .accepted
                    case .dead, .unresolved: .unanswered
                    case .turning: hasAccepted.insert(number).inserted ? .accepted : .unanswered
                    case .refusing: .refused
                    case .busy: .later(retryAfter: .seconds(3600))
                    }
                let outcome = answer.result(id: "", status: nil, reason: nil).outcome
                _ = table.answered(last.batch, outcome, by: last.place, now: now)
                // Dead ones were never heard of.
                _ = table.origins.noteAnswer(
                    answer, of: origin, endpointHash: Int(last.batch.deliveries[0]),
                    from: answer == .unanswered ? nil : Self.address(address(number)), after: now.since(last.sent), now: now)
                let finished = table.finished(last.batch, outcome, by: last.place, except: [], now: now)
                for id in last.batch.deliveries where answer == .accepted {
                    result.accepted.append(id)
                    if let time = arrived[id] { result.delays[id] = now.since(time) }
                    if manners[number] == .honest, let time = arrived[id] { result.honestDelays.append(now.since(time)) }
                }
                result.refused += finished.refused.count
                for id in finished.refused { _ = table.end(id, as: .failed) }
            }
            let step = table.step(now: now)
            for (place, action) in step.actions {
                switch action {
                case .post(let batch):
                    #expect(batch.deliveries.count == 1)
                    guard case .webPush(let origin) = place, let number = numbers[origin] else { continue }
                    #expect(owner[batch.deliveries[0]] == number)
                    _ = table.sent(batch, count: 1, by: place, now: now)
                    result.posts[origin, default: 0] += 1
                    inFlight[origin, default: 0] += 1
                    inFlightCount += 1
                    result.maximumInFlightOfOne = max(result.maximumInFlightOfOne, inFlight[origin, default: 0])
                    let time: Duration =
                        switch manners[number] {
                        case .honest, .refusing, .busy: .milliseconds(Int64.random(in: 20...80, using: &generator))
                        case .lying: .milliseconds(1900)
                        case .slow: .seconds(9)
                        case .dead: .seconds(15)
                        case .unresolved: .seconds(5)
                        case .turning: hasAccepted.contains(number) ? .seconds(15) : .milliseconds(50)
                        }
                    answers.add((now, place, batch), at: now + time)
                case .expire(let ids):
                    for id in ids { _ = table.end(id, as: .failed) }
                case .evict(let ids):
                    for id in ids {
                        if let owner = owner[id] { result.evicted[owner, default: 0] += 1 }
                        _ = table.end(id, as: .failed)
                    }
                }
            }
            result.maximumInFlight = max(result.maximumInFlight, inFlightCount)
            result.maximumOthersCount = max(result.maximumOthersCount, table.origins.others.openCount)
            result.maximumOpenCount = max(result.maximumOpenCount, table.origins.openCount)
            result.maximumPlaceCount = max(result.maximumPlaceCount, table.gorushes.count + 1 + table.origins.services.count)
            stepCount += 1
            // Rarer with time: it looks at every delivery.
            if stepCount.nonzeroBitCount == 1 { table.checkInvariants() }
            let times = [answers.next, step.next, next < arrivals.count ? start + arrivals[next].at : nil].compactMap(\.self)
            guard let soonest = times.min() else { break }
            now = max(now + .milliseconds(1), soonest)
        }
        table.checkInvariants()
        return (result, table)
    }

    private static func address(_ number: Int) -> IPAddress? {
        IPAddress(bytes: [9, 9, UInt8(number >> 8), UInt8(truncatingIfNeeded: number)])
    }

    private static func percentile(_ delays: [Duration]) -> Duration { delays.sorted()[delays.count * 99 / 100] }

    @Test("Of 2,000 services a third is slow, dead, lying or refusing, and the honest ones are as quick as without them")
    func badServices() throws {
        let bad: [Manner] = [.slow, .dead, .lying, .refusing, .busy]
        let manners: [Manner] = (0..<2000).map { $0 % 3 == 0 ? bad[$0 / 3 % bad.count] : .honest }
        var generator = SeededGenerator(seed: 7)
        let arrivals = (0..<20_000).map { number in
            (at: Duration.milliseconds(number * 3), origin: Int.random(in: 0..<2000, using: &generator))
        }
        // Before their first answer they share few places with the bad ones: see `silentDomains`.
        let known = manners.indices.filter { manners[$0] == .honest }
        let (mixed, table) = try Self.run(manners, arrivals: arrivals, until: .seconds(200), known: known)
        let (alone, _) = try Self.run(manners, arrivals: arrivals.filter { manners[$0.origin] == .honest }, until: .seconds(200))
        let honestCount = arrivals.count { manners[$0.origin] == .honest }
        #expect(mixed.honestDelays.count == honestCount && alone.honestDelays.count == honestCount)
        #expect(Self.percentile(mixed.honestDelays) <= Self.percentile(alone.honestDelays) + .milliseconds(5))
        #expect(mixed.maximumOpenCount <= 1000 && mixed.maximumInFlightOfOne <= 8)
        // No device of a busy service is posted to again within the hour.
        for (index, manner) in manners.enumerated() where manner == .busy {
            #expect(mixed.posts[try Self.origin(index), default: 0] <= arrivals.count { $0.origin == index })
        }
        // Only services with deliveries left have places.
        #expect(table.origins.services.count <= 2000 / 3 + 1)
    }

    @Test("With fewer places than services, every honest one has its turn")
    func turns() throws {
        let manners: [Manner] = (0..<60).map { $0 < 20 ? .dead : .honest }
        let arrivals = (0..<600).map { (at: Duration.milliseconds($0 * 10), origin: $0 % 60) }
        let (result, _) = try Self.run(manners, arrivals: arrivals, openLimit: 50)
        #expect(result.maximumOpenCount <= 50 && result.maximumOthersCount <= 10)
        #expect(result.honestDelays.count == 400)
    }

    /// Services of a stranger, each with a notification every 20 s from 1 s on, beside two that are honest: one accepted messages before, the other
    /// never did. Both have a notification each second from 2 s on.
    private static func attack(
        _ manner: Manner, count: Int, until: Duration, host: (Int) -> String
    ) throws -> (result: Result, table: DeliveryTable, known: [Duration], unknown: [Duration], honestCount: Int) {
        let manners = [.honest, .honest] + Array(repeating: manner, count: count)
        let seconds = Int(until / .seconds(1))
        var arrivals = (0..<seconds / 20).flatMap { round in
            (0..<count).map { (at: Duration.seconds(1 + 20 * round), origin: 2 + $0) }
        }
        for second in 2..<seconds - 1 { arrivals += [0, 1].map { (at: .seconds(second), origin: $0) } }
        arrivals.sort { $0.at < $1.at }
        let (result, table) = try run(
            manners, arrivals: arrivals, until: until, known: [0], host: { $0 < 2 ? "push.honest\($0).example" : host($0) })
        func delays(of origin: Int) -> [Duration] {
            result.delays.compactMap { id, delay in arrivals[Int(id) - 1].origin == origin ? delay : nil }
        }
        return (result, table, delays(of: 0), delays(of: 1), seconds - 3)
    }

    @Test(
        "Names of one domain that nobody answers for hold no other service up, however many they are",
        arguments: [Manner.unresolved, .dead, .turning, .slow])
    func silentNames(manner: Manner) throws {
        let (result, _, known, unknown, count) = try Self.attack(manner, count: 2500, until: .seconds(60)) { "a\($0).evil.test" }
        #expect(known.count == count && unknown.count == count)
        #expect(known.allSatisfy { $0 < .seconds(1) } && unknown.allSatisfy { $0 < .seconds(1) })
        #expect(result.maximumOthersCount <= 20 + 2)
    }

    @Test("Addresses that nobody answers at count as one domain")
    func silentAddresses() throws {
        let (_, _, known, unknown, count) = try Self.attack(.unresolved, count: 2500, until: .seconds(60)) { "9.8.\($0 / 250).\($0 % 250)" }
        #expect(known.count == count && unknown.count == count)
        #expect((known + unknown).allSatisfy { $0 < .seconds(1) })
    }

    @Test("Of many domains that nobody answers for, each waits its turn once, and a service that answered before does not wait")
    func silentDomains() throws {
        // Each domain has one of 200 places for 15 s at most: 800 of them have had their turn after 60 s, and the honest service after them.
        let (result, table, known, unknown, count) = try Self.attack(.dead, count: 800, until: .seconds(120)) { "push.evil\($0).test" }
        #expect(known.count == count && known.allSatisfy { $0 < .seconds(1) })
        #expect(unknown.count == count && unknown.allSatisfy { $0 <= .seconds(75) })
        // From then on it does not wait.
        #expect(unknown.count { $0 > .seconds(1) } <= 75)
        #expect(result.maximumOthersCount == 200)
        #expect(table.origins.longestWait(of: .others, at: Self.start + .seconds(120)) > .seconds(3))
        #expect(table.origins.longestWait(of: .responsive, at: Self.start + .seconds(120)) == .zero)
    }

    /// An arrival for a device of its own.
    private static func arrival(_ id: Int64, at origin: Int) throws -> DeliveryTable.Arrival {
        let waiting = WaitingDelivery(
            id: id, delivery: DeliveryID(hashing: [UInt8(id)]), device: DeviceID(ProtocolNumber(rawValue: 1), row: id),
            expires: start + .seconds(600))
        return DeliveryTable.Arrival(waiting: waiting, endpoint: .webPush(try Self.origin(origin)))
    }

    @Test("A notification that finds no connection to a crowded address is posted later, and its service has not failed")
    func crowdedAddress() throws {
        var table = DeliveryTable([DeliveryQueue()])
        var now = Self.start
        table.add([try Self.arrival(1, at: 0)], isAwaited: true, clock: now, now: now)
        func posts() -> [(place: EndpointID, batch: DeliveryQueue.Batch)] {
            table.step(now: now).actions.compactMap { if case (let place, .post(let batch)) = $0 { (place, batch) } else { nil } }
        }
        let answer = WebPushAnswer.addressBusy
        let outcome = answer.result(id: "", status: nil, reason: nil).outcome
        for _ in 0..<10 {
            let (place, batch) = try #require(posts().first)
            _ = table.sent(batch, count: 1, by: place, now: now)
            table.postpone([1: now + .seconds(5)], of: batch, at: place)
            _ = table.origins.noteAnswer(answer, of: try Self.origin(0), endpointHash: 1, from: nil, after: .zero, now: now)
            _ = table.answered(batch, outcome, by: place, now: now)
            let finished = table.finished(batch, outcome, by: place, now: now)
            #expect(finished.breakerChange == nil && finished.refused.isEmpty && finished.completed.isEmpty)
            now = now + .milliseconds(4_999)
            #expect(posts().isEmpty)
            now = now + .milliseconds(1)
        }
        #expect(table.origins.figures(now: now).unavailableCount == 0)
    }

    @Test("A message that took two posts takes two of the allowance of its service and of its address")
    func secondPosts() throws {
        var configuration = OriginQueues.Configuration()
        configuration.standing.rate = 1
        configuration.standing.burst = 2
        for postCount in 1...2 {
            var table = DeliveryTable([DeliveryQueue()], webPush: configuration)
            let now = Self.start
            func posts() -> [(place: EndpointID, batch: DeliveryQueue.Batch)] {
                table.step(now: now).actions.compactMap { if case (let place, .post(let batch)) = $0 { (place, batch) } else { nil } }
            }
            table.add([try Self.arrival(1, at: 0)], isAwaited: false, clock: now, now: now)
            let (place, batch) = try #require(posts().first)
            _ = table.sent(batch, count: 1, by: place, now: now)
            _ = table.origins.noteAnswer(
                .accepted, of: try Self.origin(0), endpointHash: 1, from: Self.address(0), after: .zero, postCount: postCount, now: now)
            _ = table.answered(batch, .accepted, by: place, now: now)
            _ = table.finished(batch, .accepted, by: place, now: now)
            table.add([try Self.arrival(2, at: 0)], isAwaited: false, clock: now, now: now)
            #expect(posts().flatMap(\.batch.deliveries) == (postCount == 1 ? [2] : []))
        }
    }

    @Test("A notification that a push service did not accept is tried again, also if the table took a step before its post ended")
    func stepBeforeTheEnd() throws {
        var table = DeliveryTable([DeliveryQueue()])
        let now = Self.start
        func posts(at time: Timestamp) -> [(place: EndpointID, batch: DeliveryQueue.Batch)] {
            table.step(now: time).actions.compactMap { if case (let place, .post(let batch)) = $0 { (place, batch) } else { nil } }
        }
        table.add([try Self.arrival(1, at: 0)], isAwaited: false, clock: now, now: now)
        let (place, batch) = try #require(posts(at: now).first)
        _ = table.sent(batch, count: 1, by: place, now: now)
        let outcome = WebPushAnswer.unanswered.result(id: "", status: nil, reason: nil).outcome
        _ = table.answered(batch, outcome, by: place, now: now)
        // The result is stored meanwhile.
        #expect(posts(at: now).isEmpty)
        _ = table.finished(batch, outcome, by: place, now: now)
        let next = table.step(now: now).next
        let due = try #require(next)
        #expect(posts(at: due).map(\.batch.deliveries) == [[1]])
        // A step leaves nothing that the next one would look at in vain.
        #expect(table.origins.changed.isEmpty)
    }

    /// Anybody can have subscriptions at an address of the service that ends connections, or never answers.
    @Test(
        "Subscriptions that a push service does not answer do not delay others",
        arguments: [.milliseconds(1), .seconds(15)] as [Duration])
    func unansweredSubscriptions(end: Duration) throws {
        let (healthy, origin) = (Int64(1000), try Self.origin(0))
        var table = DeliveryTable([DeliveryQueue()])
        var (now, added, device) = (Self.start, 0 as Int64, Duration.zero)
        var ends: [(time: Timestamp, batch: DeliveryQueue.Batch)] = []
        var arrivals: [Int64: Timestamp] = [:]
        var delays: [Duration] = []
        func add(_ id: Int64, of row: Int64) {
            let waiting = WaitingDelivery(
                id: id, delivery: DeliveryID(hashing: withUnsafeBytes(of: id, Array.init)),
                device: DeviceID(ProtocolNumber(rawValue: 1), row: row), expires: now + .seconds(600))
            let arrival = DeliveryTable.Arrival(waiting: waiting, endpoint: .webPush(origin), recipient: PushRecipient(waiting.device))
            table.add([arrival], isAwaited: true, clock: now, now: now)
        }
        table.origins.acceptedBefore([origin], now: now)
        let known = DeviceID(ProtocolNumber(rawValue: 1), row: healthy)
        table.becameKnown([(recipient: PushRecipient(known), origin: origin)])
        for id in 1...24 as ClosedRange<Int64> { add(id, of: id) }
        while now < Self.start + .seconds(300) {
            if now >= Self.start + device {
                arrivals[healthy + added] = now
                add(healthy + added, of: healthy)
                added += 1
                device += .seconds(1)
            }
            for (time, batch) in ends.filter({ $0.time <= now }) {
                let answer: WebPushAnswer = batch.deliveries[0] < healthy ? .unanswered : .accepted
                let outcome = answer.result(id: "", status: nil, reason: nil).outcome
                _ = table.answered(batch, outcome, by: .webPush(origin), now: time)
                _ = table.origins.noteAnswer(
                    answer, of: origin, endpointHash: 1, from: answer == .unanswered ? nil : Self.address(0), after: end, now: now)
                _ = table.finished(batch, outcome, by: .webPush(origin), now: now)
            }
            ends.removeAll { $0.time <= now }
            let step = table.step(now: now)
            for case (_, .post(let batch)) in step.actions {
                if let arrival = arrivals[batch.deliveries[0]] { delays.append(now.since(arrival)) }
                _ = table.sent(batch, count: 1, by: .webPush(origin), now: now)
                ends.append((now + (batch.deliveries[0] < healthy ? end : .milliseconds(20)), batch))
            }
            now = max(now, try #require((ends.map(\.time) + [step.next, Self.start + device].compactMap(\.self)).min()))
        }
        #expect(delays.count == 300)
        // While its address is not known, one post at a time goes to a service.
        #expect(delays.dropFirst(end == .seconds(15) ? 20 : 0).allSatisfy { $0 < .milliseconds(100) }, "\(delays)")
    }

    /// Three times the pace of a service goes to a stranger's thousand subscriptions, all of which it accepts.
    /// Requests wait for a part of the notifications: other nodes handle the others' requests.
    @Test(
        "Subscriptions of one owner that are notified all the time delay neither others nor new ones at the same push service",
        arguments: [true, false])
    func acceptedFlood(isAwaited: Bool) throws {
        let (honest, new, origin) = (Int64(0), Int64(1001), try Self.origin(0))
        var table = DeliveryTable([DeliveryQueue()])
        let recipients = (0...new).map { PushRecipient(DeviceID(ProtocolNumber(rawValue: 1), row: $0)) }
        table.origins.acceptedBefore([origin], now: Self.start)
        table.becameKnown(recipients.dropLast().map { (recipient: $0, origin: origin) })
        var (now, id) = (Self.start, 0 as Int64)
        var arrivals: [Int64: Timestamp] = [:]
        var delays: [Duration] = []
        func add(_ row: Int64) {
            id += 1
            if row == honest || row == new { arrivals[id] = now }
            let waiting = WaitingDelivery(
                id: id, delivery: DeliveryID(hashing: withUnsafeBytes(of: id, Array.init)),
                device: DeviceID(ProtocolNumber(rawValue: 1), row: row), expires: now + .seconds(600))
            let arrival = DeliveryTable.Arrival(waiting: waiting, endpoint: .webPush(origin), recipient: recipients[Int(row)])
            table.add([arrival], isAwaited: isAwaited || row % 3 == 1, clock: now, now: now)
        }
        var posts: [(batch: DeliveryQueue.Batch, row: Int)] = []
        var rows: [Int64: Int] = [:]
        for tick in 0..<9_000 as Range<Int64> {
            now = Self.start + .milliseconds(10 * tick)
            for (batch, row) in posts {
                table.becameKnown([(recipient: recipients[row], origin: origin)], at: now)
                _ = table.answered(batch, .accepted, by: .webPush(origin), now: now)
                _ = table.origins.noteAnswer(
                    .accepted, of: origin, endpointHash: row, from: Self.address(0), after: .milliseconds(10), now: now)
                _ = table.finished(batch, .accepted, by: .webPush(origin), now: now)
            }
            for place in 0..<3 as Range<Int64> {
                let row = 1 + (tick * 3 + place) % 1000
                add(row)
                rows[id] = Int(row)
            }
            if tick % 1500 == 1499 {
                add(honest)
                rows[id] = Int(honest)
            }
            if tick == 7_000 {
                add(new)
                rows[id] = Int(new)
            }
            posts = table.step(now: now).actions.compactMap { action in
                guard case (_, .post(let batch)) = action else { return nil }
                if let arrival = arrivals[batch.deliveries[0]] { delays.append(now.since(arrival)) }
                _ = table.sent(batch, count: 1, by: .webPush(origin), now: now)
                return (batch, rows[batch.deliveries[0]] ?? 0)
            }
        }
        #expect(delays.count == 7)
        #expect(delays.allSatisfy { $0 < .milliseconds(200) }, "\(delays)")
        #expect(table.count > 10_000)
    }

    @Test("A service whose notifications are all in flight takes no turn of its address")
    func turnsForWaiting() throws {
        var configuration = OriginQueues.Configuration()
        configuration.standing.rate = 1
        configuration.standing.burst = 2
        var table = DeliveryTable([DeliveryQueue()], webPush: configuration)
        let now = Self.start
        func posts(at time: Timestamp) -> [(place: EndpointID, batch: DeliveryQueue.Batch)] {
            table.step(now: time).actions.compactMap { if case (let place, .post(let batch)) = $0 { (place, batch) } else { nil } }
        }
        // Both services use up the allowance of their address, and have some of their own left.
        var first: [(place: EndpointID, batch: DeliveryQueue.Batch)] = []
        for number in 0..<2 {
            table.add([try Self.arrival(Int64(number + 1), at: number)], isAwaited: false, clock: now, now: now)
            _ = table.origins.noteAnswer(
                .accepted, of: try Self.origin(number), endpointHash: 1, from: Self.address(0), after: .zero, now: now)
            first += posts(at: now)
        }
        #expect(first.map(\.batch.deliveries) == [[1], [2]])
        // The table looks at a service whose post is answered.
        _ = table.answered(first[0].batch, .accepted, by: first[0].place, now: now)
        #expect(posts(at: now).isEmpty)
        table.add([try Self.arrival(3, at: 1)], isAwaited: false, clock: now, now: now)
        #expect(posts(at: now).isEmpty)
        #expect(posts(at: now + .milliseconds(1100)).map(\.batch.deliveries) == [[3]])
    }

    @Test("A service that answers in time again has a place among those that do")
    func late() throws {
        var standing = OriginStanding(OriginStanding.Configuration())
        let now = Self.start
        #expect(!standing.isResponsive(at: now))
        standing.accepted(at: now)
        standing.answered(after: .seconds(10), isAccepted: true)
        #expect(standing.isResponsive(at: now))
        standing.answered(after: .seconds(11), isAccepted: true)
        #expect(!standing.isResponsive(at: now))
        // Neither an error nor what other nodes know makes up for it.
        standing.answered(after: .seconds(1), isAccepted: false)
        let isNews = standing.acceptedBefore(at: now)
        #expect(!isNews && !standing.isResponsive(at: now))
        standing.answered(after: .seconds(1), isAccepted: true)
        #expect(standing.isResponsive(at: now))
        standing.answered(after: nil, isAccepted: false)
        #expect(!standing.isResponsive(at: now) && standing.isProven(at: now))
    }

    @Test(
        "The domain of a service is the end of its host name, and all addresses have the same",
        arguments: [
            ("https://a.b.example/x", "b.example"), ("https://example:8443/x", "example"), ("https://b.example:8443/x", "b.example"),
            ("https://9.9.9.9/x", ""), ("https://9.9.9.8:8443/x", ""), ("https://[2a00::1]:8443/x", ""),
        ])
    func domain(endpoint: String, domain: String) throws {
        #expect(try #require(WebPushOrigin(endpoint: endpoint)).domain == domain)
    }

    @Test("A service that leaves the line for a place takes none")
    func leftLine() throws {
        var configuration = OriginQueues.Configuration()
        configuration.openLimit = 1
        var table = DeliveryTable([DeliveryQueue()], webPush: configuration)
        let now = Self.start
        func add(_ id: Int64) throws {
            table.add([try Self.arrival(id, at: Int(id))], isAwaited: false, clock: now, now: now)
        }
        func posts() -> [(place: EndpointID, batch: DeliveryQueue.Batch)] {
            table.step(now: now).actions.compactMap { if case (let place, .post(let batch)) = $0 { (place, batch) } else { nil } }
        }
        try add(1)
        let first = try #require(posts().first)
        _ = table.sent(first.batch, count: 1, by: first.place, now: now)
        try add(2)
        #expect(posts().isEmpty)
        let figures = table.origins.figures(now: now)
        #expect(figures.postingCount == 1 && figures.otherCount == 1 && figures.unavailableCount == 0)
        // Given up while it waits for the place of the first.
        _ = table.end(2, as: .failed)
        #expect(posts().isEmpty)
        _ = table.answered(first.batch, .accepted, by: first.place, now: now)
        _ = table.finished(first.batch, .accepted, by: first.place, now: now)
        #expect(posts().isEmpty && table.origins.openCount == 0)
        try add(3)
        #expect(posts().map(\.batch.deliveries) == [[3]])
    }

    @Test("A delivery expires at its time, although its service never has a place")
    func expiry() throws {
        var configuration = OriginQueues.Configuration()
        configuration.openLimit = 0
        var table = DeliveryTable([DeliveryQueue()], webPush: configuration)
        let end = Self.start + .seconds(600)
        table.add([try Self.arrival(1, at: 1)], isAwaited: false, clock: Self.start, now: Self.start)
        let atOnce = table.step(now: Self.start).actions
        #expect(atOnce.isEmpty)
        let last = table.step(now: end).actions
        #expect(last.map(\.action) == [.expire([1])])
    }

    @Test("Services without deliveries leave nothing behind, and their places are used again")
    func idle() throws {
        let arrivals = (0..<500).map { (at: Duration.seconds($0), origin: $0) }
        let (result, table) = try Self.run(Array(repeating: .honest, count: 500), arrivals: arrivals)
        #expect(result.accepted.count == 500)
        #expect(table.origins.services.isEmpty && table.origins.waitingCount == 0 && table.origins.openCount == 0)
        #expect(result.maximumPlaceCount <= 4)
    }

    @Test("A service that refuses 50 subscriptions in a row is paused for 10 minutes")
    func refusals() throws {
        let arrivals = (0..<200).map { (at: Duration.milliseconds($0 * 100), origin: 0) }
        let (result, table) = try Self.run([.refusing], arrivals: arrivals, until: .seconds(300))
        #expect((50...57).contains(result.refused))
        #expect(result.posts.values.reduce(0, +) == result.refused)
        #expect(table.origins.figures(now: Self.start + .seconds(300)).unavailableCount == 1)
    }

    @Test("The 50th refused subscription pauses a service, unless it accepted one lately")
    func lastRefusal() {
        var standing = OriginStanding(OriginStanding.Configuration())
        let pauses = (1...50).filter { standing.refused(endpoint: $0, at: Self.start) }
        #expect(pauses == [50])
        var proven = OriginStanding(OriginStanding.Configuration())
        proven.accepted(at: Self.start)
        let pausesOfProven = (1...50).filter { proven.refused(endpoint: $0, at: Self.start) }
        #expect(pausesOfProven.isEmpty)
    }

    @Test("A service gets its burst at once, and then its rate")
    func rate() throws {
        let arrivals = (0..<1500).map { _ in (at: Duration.zero, origin: 0) }
        let (soon, _) = try Self.run([.honest], arrivals: arrivals, until: .seconds(1))
        #expect(soon.accepted.count <= 1100)
        let (later, _) = try Self.run([.honest], arrivals: arrivals, until: .seconds(60))
        #expect(later.accepted.count == 1500)
    }

    @Test("The next post may go out when the allowance says, although a third of a second is no whole number of nanoseconds")
    func resumption() throws {
        var configuration = OriginStanding.Configuration()
        (configuration.rate, configuration.burst) = (3, 1)
        var standing = OriginStanding(configuration)
        standing.posted(1, at: Self.start)
        let used = standing.allowance(at: Self.start)
        let again = standing.allowance(at: try #require(used.resumes))
        #expect(used.count == 0 && again.count == 1)
    }

    @Test("Many names of one address share a pace, in turns, and give it few posts at once")
    func sharedAddress() throws {
        // 50 names, of which one has a queue as long as all others together.
        let arrivals = (0..<6000).map { (at: Duration.zero, origin: $0.isMultiple(of: 2) ? 0 : 1 + $0 / 2 % 49) }
        let manners = Array(repeating: Manner.honest, count: 50)
        let (result, table) = try Self.run(manners, arrivals: arrivals, until: .seconds(30), address: { _ in 0 })
        // The burst of 1,000, the rate of 100/s, and a post of each name before its address is known.
        #expect((3800...4100).contains(result.accepted.count), "\(result.accepted.count)")
        #expect(result.maximumInFlight <= AddressPace.sharedInFlightLimit + 50)
        let posts = try (1..<50).map { result.posts[try Self.origin($0), default: 0] }
        #expect(posts.allSatisfy { $0 >= 50 }, "\(posts)")
        #expect(table.origins.addresses.count == 1)
        // Of 50 addresses each has its own.
        let (apart, _) = try Self.run(manners, arrivals: arrivals.filter { $0.origin > 0 }, until: .seconds(30))
        #expect(apart.accepted.count == 3000)
    }

    @Test("A service at another address is not held up by names that strangers gave to one")
    func otherAddress() throws {
        let arrivals = (0..<6000).map { (at: Duration.milliseconds($0), origin: $0 % 100) }
        let manners = Array(repeating: Manner.honest, count: 100)
        let (result, _) = try Self.run(manners, arrivals: arrivals, until: .seconds(10), address: { $0 == 0 ? 1 : 0 })
        #expect(result.posts[try Self.origin(0), default: 0] == 60)
    }

    @Test("Turns are given in order, one to a service, and the allowance returns after the last")
    func addressTurns() {
        var pace = AddressPace(rate: 10, burst: 2, now: Self.start)
        var none: Timestamp?
        let atOnce = pace.allowance(turn: &none, ownInFlight: 0, at: Self.start).count
        #expect(atOnce == 2 && none == nil)
        pace.posted(2, turn: &none, at: Self.start)
        var turns: [Timestamp?] = [nil, nil, nil]
        for index in turns.indices {
            let count = pace.allowance(turn: &turns[index], ownInFlight: 0, at: Self.start).count
            #expect(count == 0)
        }
        let delays = turns.compactMap { $0?.since(Self.start) }
        #expect(delays.count == 3 && zip(delays, [100, 200, 300]).allSatisfy { $0 >= .milliseconds($1) && $0 < .milliseconds($1 + 1) })
        // The first turn comes; the next is behind the others.
        let first = Self.start + .milliseconds(101)
        let inTurn = pace.allowance(turn: &turns[0], ownInFlight: 0, at: first).count
        #expect(inTurn == 1)
        pace.posted(1, turn: &turns[0], at: first)
        #expect(turns[0] == nil)
        let afterTurn = pace.allowance(turn: &turns[0], ownInFlight: 0, at: first).count
        #expect(afterTurn == 0 && turns[0].map { $0.since(Self.start) >= .milliseconds(400) } == true)
        let isForgettable = pace.isForgettable(at: Self.start + .seconds(1))
        #expect(isForgettable)
        // With many posts in flight, a service has one at a time.
        pace.inFlight = AddressPace.sharedInFlightLimit
        let late = Self.start + .seconds(1)
        let another = pace.allowance(turn: &none, ownInFlight: 1, at: late)
        let only = pace.allowance(turn: &none, ownInFlight: 0, at: late).count
        #expect(another == DeliveryQueue.Allowance(count: 0) && only == 1)
    }

    @Test("The allowance of an address returns with time, also while none of its services looks")
    func addressPause() {
        var pace = AddressPace(rate: 10, burst: 2, now: Self.start)
        var turn: Timestamp?
        pace.posted(2, turn: &turn, at: Self.start)
        let count = pace.allowance(turn: &turn, ownInFlight: 0, at: Self.start + .seconds(1)).count
        #expect(count == 2 && turn == nil)
    }

    @Test("Beyond the limit of the outbox, the longest queue loses deliveries, unless they are inherited")
    func eviction() throws {
        var configuration = OriginQueues.Configuration()
        configuration.waitingLimit = 100
        var table = DeliveryTable([DeliveryQueue()], webPush: configuration)
        let (long, short) = (try Self.origin(0), try Self.origin(1))
        func arrival(_ id: Int64, _ origin: WebPushOrigin, isInherited: Bool = false) -> DeliveryTable.Arrival {
            let device = DeviceID(ProtocolNumber(rawValue: 1), row: id)
            let waiting = WaitingDelivery(
                id: id, delivery: DeliveryID(hashing: withUnsafeBytes(of: id, Array.init)), device: device,
                expires: Self.start + .seconds(600 + id))
            return DeliveryTable.Arrival(waiting: waiting, endpoint: .webPush(origin), isInherited: isInherited)
        }
        func evicted() -> [Int64] {
            table.step(now: Self.start).actions.flatMap { _, action -> [Int64] in
                if case .evict(let ids) = action { ids } else { [] }
            }
        }
        table.add((1...90).map { arrival($0, long) }, isAwaited: false, clock: Self.start, now: Self.start)
        table.add((91...120).map { arrival($0, short) }, isAwaited: false, clock: Self.start, now: Self.start)
        #expect(table.origins.waitingCount == 100)
        #expect(evicted() == Array(1...20))

        table.add((121...160).map { arrival($0, short, isInherited: true) }, isAwaited: false, clock: Self.start, now: Self.start)
        #expect(table.origins.waitingCount == 140 && evicted().isEmpty)
        table.add((161...165).map { arrival($0, long) }, isAwaited: false, clock: Self.start, now: Self.start)
        #expect(table.origins.waitingCount == 140 && evicted().count == 5)
    }

    @Test(
        "Many names of one server, or that never answer, do not shorten the queue of a service at another address",
        arguments: [
            Manner.slow, .dead, .honest,
        ])
    func evictionByAddress(manner: Manner) throws {
        // The honest service answers, then has 300 deliveries at once. Each name of the attacker has fewer: 10,000 for 1,000 places.
        let names = 200
        var arrivals = (0...names).map { (at: Duration.zero, origin: $0) }
        arrivals += (0..<300).map { _ in (at: Duration.seconds(1), origin: 0) }
        arrivals += (0..<10_000).map { (at: Duration.seconds(1) + .microseconds($0 * 100), origin: 1 + $0 % names) }
        let manners = [Manner.honest] + Array(repeating: manner, count: names)
        let (result, table) = try Self.run(
            manners, arrivals: arrivals, waitingLimit: 1000, until: .seconds(10), address: { $0 == 0 ? 1 : 0 })
        #expect(result.evicted[0] == nil)
        #expect(result.posts[try Self.origin(0)] == 301)
        #expect(result.evicted.values.reduce(0, +) > 5_000)
        #expect(table.origins.waitingCount <= 1000 && table.origins.room.serverCount <= 2)
    }

    @Test("Pauses double up to a day, and an acceptance rules them out for a day")
    func pauses() {
        var standing = OriginStanding(OriginStanding.Configuration())
        var now = Self.start
        /// The endpoints whose refusal pauses the service.
        func pausing(_ endpoints: Range<Int>) -> [Int] { endpoints.filter { standing.refused(endpoint: $0, at: now) } }
        var pauses: [Duration] = []
        for _ in 0..<10 {
            #expect(pausing(0..<50) == [49])
            let paused = standing.allowance(at: now)
            let resumes = paused.resumes ?? now
            pauses.append(resumes.since(now))
            #expect(paused.count == 0 && standing.isPaused(at: now))
            now = resumes
            let resumed = standing.allowance(at: now)
            #expect(resumed.count > 0 && !standing.isPaused(at: now))
        }
        #expect(pauses == [600, 1200, 2400, 4800, 9600, 19_200, 38_400, 76_800, 86_400, 86_400].map { .seconds($0) })
        // The same endpoint counts once, and an acceptance starts anew.
        for _ in 0..<200 { #expect(pausing(1..<2).isEmpty) }
        #expect(pausing(2..<50).isEmpty)
        standing.accepted(at: now)
        // It is proven for a day.
        now = now + .seconds(86_399)
        #expect(pausing(100..<200).isEmpty)
        now = now + .seconds(1)
        #expect(pausing(100..<150) == [149])
        #expect(standing.allowance(at: now).resumes == now + .seconds(600))
    }
}
