import Core
@testable import SessionProtocol
import TestSupport

/// Storage servers and accounts in virtual time. The servers record the subscriptions requested of them; the monitor's invariants are checked
/// during the run.
struct SwarmSimulation {
    struct Plan {
        var seed: UInt64 = 1
        var servers = 100
        var swarms = 10
        var accounts = 500
        var days = 1
        /// Seconds between changes of the map.
        var mapInterval = 40 * 60
        /// Seconds between checks of every pair of account and server.
        var checkInterval = 30 * 60
    }

    struct Figures {
        var asked = 0
        var requests = 0
        var connections = 0
        var losses = 0
        var mapChanges = 0
        var moves = 0
        var refusals = 0
        var mapRequests = 0
        var subscriberChanges = 0
        var checkedPairs = 0
        var longestGap = Duration.zero
    }

    enum Event {
        case answered(ConnectionNumber, isUp: Bool)
        case replied(RequestTag, [MonitorOutcome])
        case lose(server: Int)
        case stop(server: Int)
        case start(server: Int)
        case changeSubscriber
        case changeMap
        case adoptMap(server: Int)
        case deliverMap
        case check
    }

    struct Asked {
        var version: Int
        var at: Instant
        var isSuccess: Bool
        /// Whether a repeated request within 45 minutes is allowed: after a refusal, or a change of the server's or account's swarm.
        var mayRepeat: Bool
    }

    struct ModelServer {
        var server: StorageServer
        var latency: Duration
        /// The swarm in the server's own view: it learns of a new map a little later.
        var swarm: UInt64
        var ring: SwarmRing
        var isListed = true
        var isUp = true
        var connection: ConnectionNumber?
        var isGreeted = false
        var asked: [SubscriptionID: Asked] = [:]
        /// Consecutive failures, as the monitor must count them.
        var failures = 0
        var failedAt: Instant?
        /// The time since which it can be connected: up, listed, and not cut off.
        var steadySince = Instant.zero
        var adoptedAt = Instant.zero
    }

    let plan: Plan
    var random: SeededGenerator
    var monitor: MonitorStateMachine
    var events = EventQueue<Instant, Event>()
    var now = Instant.zero
    var models: [ModelServer] = []
    var byKey: [[UInt8]: Int] = [:]
    var byConnection: [ConnectionNumber: Int] = [:]
    var ring = SwarmRing([])
    var accounts: [SubscriptionID: (account: AccountID, version: Int)] = [:]
    var ids: [SubscriptionID] = []
    var lastID: Int64 = 0
    var lastMapRequest: Instant?
    var figures = Figures()
    var violations: [String] = []
    private let entryByteCount = 220

    init(_ plan: Plan) {
        self.plan = plan
        random = SeededGenerator(seed: plan.seed)
        monitor = MonitorStateMachine(seed: plan.seed)
    }

    // MARK: Events

    mutating func run() {
        let swarmIDs = (0..<plan.swarms).map { _ in random.next() >> 1 }
        for index in 0..<plan.servers { addServer(swarm: swarmIDs[index % swarmIDs.count]) }
        for _ in 0..<plan.accounts { subscribe() }
        monitor.update(models.map(\.server), at: now)
        ring = SwarmRing(models.map(\.server.swarm))
        for index in models.indices { models[index].ring = ring }
        events.add(.changeMap, at: now + .seconds(plan.mapInterval))
        events.add(.changeSubscriber, at: now + .seconds(1))
        events.add(.check, at: now + .seconds(300))
        for _ in 0..<max(plan.servers / 20, 1) { events.add(.lose(server: randomServer()), at: soon(3600)) }
        for _ in 0..<max(plan.servers / 50, 1) { events.add(.stop(server: randomServer()), at: soon(3600)) }
        perform()
        let end = Instant.zero + .seconds(plan.days * 86_400)
        while now < end, violations.count < 10 {
            let wake = monitor.nextWakeUp
            if let wake, events.next.map({ wake < $0 }) ?? true {
                now = max(now, wake)
                monitor.advance(to: now)
            } else if let (at, event) = events.pop() {
                now = at
                handle(event)
            } else {
                break
            }
            perform()
        }
        check()
    }

    private mutating func handle(_ event: Event) {
        switch event {
        case .answered(let number, let isUp): answered(number, isUp: isUp)
        case .replied(let tag, let outcomes): monitor.replied(tag, outcomes, at: now)
        case .lose(let index):
            lose(index)
            events.add(.lose(server: randomServer()), at: soon(7200))
        case .stop(let index):
            if models[index].isUp {
                models[index].isUp = false
                lose(index)
                events.add(.start(server: index), at: soon(3600))
            }
        case .start(let index):
            models[index].isUp = true
            models[index].steadySince = now
            events.add(.stop(server: randomServer()), at: soon(7200))
        case .changeSubscriber:
            changeSubscriber()
            // Each account changes about once a day.
            events.add(.changeSubscriber, at: now + .seconds(86_400) / plan.accounts)
        case .changeMap:
            changeMap()
            events.add(.changeMap, at: now + .seconds(plan.mapInterval))
        case .adoptMap(let index): adopt(index)
        case .deliverMap: deliverMap()
        case .check:
            check()
            events.add(.check, at: now + .seconds(plan.checkInterval))
        }
    }

    // MARK: The monitor's actions

    private mutating func perform() {
        for action in monitor.takeActions() {
            switch action {
            case .connect(let number, let server): begin(number, server)
            case .close(let number): closed(number)
            case .ask(let number, let tag, let ids): ask(number, tag, ids)
            case .requestMap:
                figures.mapRequests += 1
                if let last = lastMapRequest, now - last < .seconds(60) { violations.append("\(now): the map is wanted too often") }
                lastMapRequest = now
                events.add(.deliverMap, at: now + .seconds(1))
            }
        }
    }

    private mutating func begin(_ number: ConnectionNumber, _ server: StorageServer) {
        figures.connections += 1
        guard let index = byKey[server.publicKey] else { return violations.append("\(now): connects to an unknown server") }
        let pauses = [0, 10, 30, 60, 120]
        if let last = models[index].failedAt, now - last < .seconds(pauses[min(models[index].failures, 4)]) {
            violations.append("\(now): no pause before connecting to \(index)")
        }
        if models[index].connection != nil { violations.append("\(now): connects to \(index) twice") }
        models[index].connection = number
        models[index].isGreeted = false
        byConnection[number] = index
        if byConnection.values.lazy.filter({ [models] in !models[$0].isGreeted }).count > 500 {
            violations.append("\(now): more than 500 connections in the making")
        }
        // Some servers that are down do not refuse the connection, but never answer.
        let isUp = models[index].isUp
        if isUp || Bool.random(using: &random) { events.add(.answered(number, isUp: isUp), at: now + models[index].latency * 4) }
    }

    private mutating func answered(_ number: ConnectionNumber, isUp: Bool) {
        guard let index = byConnection[number] else { return }
        if isUp, models[index].isUp {
            models[index].isGreeted = true
            models[index].failures = 0
            models[index].failedAt = nil
            monitor.connected(number, at: now)
        } else {
            forget(index)
            monitor.failed(number, at: now)
        }
    }

    private mutating func closed(_ number: ConnectionNumber) {
        guard let index = byConnection[number] else { return }
        if models[index].isListed, models[index].isGreeted { violations.append("\(now): closes the connection to \(index), which works") }
        let isListed = models[index].isListed
        forget(index)
        if !isListed { models[index].failedAt = nil }
    }

    private mutating func lose(_ index: Int) {
        models[index].steadySince = now
        guard let number = models[index].connection else { return }
        figures.losses += 1
        forget(index)
        monitor.failed(number, at: now)
    }

    private mutating func forget(_ index: Int) {
        if let number = models[index].connection { byConnection[number] = nil }
        models[index].connection = nil
        models[index].isGreeted = false
        models[index].asked = [:]
        models[index].failures += 1
        models[index].failedAt = now
    }

    private mutating func ask(_ number: ConnectionNumber, _ tag: RequestTag, _ asked: [SubscriptionID]) {
        figures.requests += 1
        figures.asked += asked.count
        guard let index = byConnection[number], models[index].isGreeted else {
            return violations.append("\(now): asks on a connection that is not made")
        }
        if asked.isEmpty || asked.count * entryByteCount + 2 > 500_000 { violations.append("\(now): asks for \(asked.count)") }
        var outcomes: [MonitorOutcome] = []
        outcomes.reserveCapacity(asked.count)
        for id in asked {
            guard let subscription = accounts[id] else {
                violations.append("\(now): asks for a subscription that is gone")
                continue
            }
            let known = models[index].asked[id]
            if let known, known.version == subscription.version, known.isSuccess {
                let gap = now - known.at
                if !known.mayRepeat { figures.longestGap = max(figures.longestGap, gap) }
                if gap < .seconds(45 * 60), !known.mayRepeat { violations.append("\(now): asks \(index) again after \(gap)") }
                if gap > .seconds(65 * 60), !known.mayRepeat { violations.append("\(now): asks \(index) after \(gap), when it had lapsed") }
            }
            let isSuccess = models[index].ring.swarm(at: subscription.account.swarmPosition) == models[index].swarm
            if !isSuccess { figures.refusals += 1 }
            let isRetry = known.map { $0.version == subscription.version && !$0.isSuccess } ?? false
            models[index].asked[id] = Asked(version: subscription.version, at: now, isSuccess: isSuccess, mayRepeat: isRetry)
            outcomes.append(isSuccess ? .success : .refused(.wrongSwarm))
        }
        monitor.sent(tag, at: now)
        events.add(.replied(tag, outcomes), at: now + models[index].latency)
    }

    // MARK: Changes

    private mutating func subscribe() {
        lastID += 1
        let id = SubscriptionID(rawValue: lastID)
        // Every tenth account has two devices.
        let account: AccountID
        if let other = ids.last, lastID % 10 == 0, let known = accounts[other] {
            account = known.account
        } else {
            guard let made = AccountID([5] + random.bytes(32)) else { return }
            account = made
        }
        accounts[id] = (account, 1)
        ids.append(id)
        monitor.set(id, account: account, entryByteCount: entryByteCount, at: now)
    }

    private mutating func changeSubscriber() {
        figures.subscriberChanges += 1
        let place = Int.random(in: ids.indices, using: &random)
        let id = ids[place]
        guard let known = accounts[id] else { return }
        if Int.random(in: 0..<10, using: &random) < 8 {
            accounts[id] = (known.account, known.version + 1)
            monitor.set(id, account: known.account, entryByteCount: entryByteCount, at: now)
        } else {
            accounts[id] = nil
            ids.swapAt(place, ids.count - 1)
            ids.removeLast()
            monitor.remove(id)
            for index in models.indices { models[index].asked[id] = nil }
            subscribe()
        }
    }

    private mutating func addServer(swarm: UInt64) {
        let index = models.count
        let key = [UInt8(truncatingIfNeeded: index), UInt8(truncatingIfNeeded: index >> 8), UInt8(truncatingIfNeeded: index >> 16)]
        let server = StorageServer(publicKey: key + random.bytes(29), ip: "10.0.0.1", port: 22, swarm: swarm)
        let latency = Duration.milliseconds(Int.random(in: 5...400, using: &random))
        models.append(ModelServer(server: server, latency: latency, swarm: swarm, ring: ring, steadySince: now, adoptedAt: now))
        byKey[server.publicKey] = index
    }

    /// A server leaves, joins or changes its swarm; sometimes a swarm is created or removed.
    private mutating func changeMap() {
        figures.mapChanges += 1
        let listed = models.indices.filter { models[$0].isListed }
        let swarms = Set(listed.map { models[$0].server.swarm }).sorted()
        // A server added now has no swarm before.
        let swarmsBefore = models.map(\.server.swarm) + [0]
        func move(_ index: Int, to swarm: UInt64) {
            let old = models[index].server
            models[index].server = StorageServer(publicKey: old.publicKey, ip: old.ip, port: old.port, swarm: swarm)
        }
        switch Int.random(in: 0..<5, using: &random) {
        case 0:
            if listed.count > plan.servers / 2 { models[random.pick(listed)].isListed = false }
        case 1: addServer(swarm: random.pick(swarms))
        case 2: move(random.pick(listed), to: random.pick(swarms))
        case 3:
            let fresh = random.next() >> 1
            for _ in 0..<max(plan.servers / plan.swarms / 2, 1) { move(random.pick(listed), to: fresh) }
        default:
            guard swarms.count > max(plan.swarms / 2, 2) else { break }
            let ended = random.pick(swarms)
            let others = swarms.filter { $0 != ended }
            for index in listed where models[index].server.swarm == ended { move(index, to: random.pick(others)) }
        }
        let list = models.filter(\.isListed).map(\.server)
        let new = SwarmRing(list.map(\.swarm))
        if new != ring {
            let positions = accounts.values.lazy.map(\.account.swarmPosition)
            figures.moves += positions.filter { [ring] in ring.swarm(at: $0) != new.swarm(at: $0) }.count
        }
        for index in models.indices where models[index].isGreeted {
            let isMoved = models[index].server.swarm != swarmsBefore[index]
            guard isMoved || new != ring else { continue }
            for (id, asked) in models[index].asked {
                guard let position = accounts[id]?.account.swarmPosition else { continue }
                let mayRepeat = asked.mayRepeat || isMoved || ring.swarm(at: position) != new.swarm(at: position)
                models[index].asked[id]?.mayRepeat = mayRepeat
            }
        }
        ring = new
        deliverMap()
        perform()
        // Connected servers were asked immediately for accounts that moved to them.
        check(isAtMapChange: true)
        for index in models.indices where models[index].isListed { events.add(.adoptMap(server: index), at: soon(60)) }
    }

    private mutating func adopt(_ index: Int) {
        guard models[index].swarm != models[index].server.swarm || models[index].ring != ring else { return }
        let isOther = models[index].swarm != models[index].server.swarm
        models[index].swarm = models[index].server.swarm
        models[index].ring = ring
        models[index].adoptedAt = now
        // A server that changes its swarm keeps the accounts that it still serves, and refuses others from then on.
        if isOther { models[index].asked = models[index].asked.filter { $0.value.at > now - .seconds(3600) } }
    }

    private mutating func deliverMap() {
        monitor.update(models.filter(\.isListed).map(\.server), at: now)
    }

    /// Whether the server has had the latest map long enough for refused accounts to have been requested again.
    private func isSettled(_ index: Int) -> Bool {
        let model = models[index]
        return model.ring == ring && model.swarm == model.server.swarm && now - model.adoptedAt > .seconds(240)
    }

    // MARK: Invariants

    /// Every account is monitored at every reachable server of its swarm.
    private mutating func check(isAtMapChange: Bool = false) {
        var members: [UInt64: [SubscriptionID]] = [:]
        for (id, subscription) in accounts {
            guard let swarm = ring.swarm(at: subscription.account.swarmPosition) else { continue }
            members[swarm, default: []].append(id)
        }
        for index in models.indices where models[index].isListed {
            let model = models[index]
            guard let connection = model.connection, model.isGreeted else {
                // Allows for a pause and one connection attempt.
                if model.isUp, now - model.steadySince > .seconds(200) { violations.append("\(now): \(index) is not connected") }
                continue
            }
            for id in members[model.server.swarm] ?? [] {
                figures.checkedPairs += 1
                guard let subscription = accounts[id] else { continue }
                guard let asked = model.asked[id], asked.version == subscription.version, now - asked.at <= .seconds(65 * 60) else {
                    violations.append("\(now): \(id) is not monitored at \(index)")
                    break
                }
                if !asked.isSuccess, !isAtMapChange, isSettled(index) {
                    violations.append("\(now): \(id) was refused by \(index), and not asked for again")
                    break
                }
            }
            checkAcceptance(of: index, connection, members)
        }
        if monitor.figures.subscriptions != accounts.count { violations.append("\(now): \(monitor.figures)") }
        let listed = Set(models.indices.filter { models[$0].isListed && models[$0].isGreeted })
        if monitor.figures.connectedServers != listed.count { violations.append("\(now): counts other connections") }
    }

    /// Checks a few reports of each server.
    private mutating func checkAcceptance(of index: Int, _ connection: ConnectionNumber, _ members: [UInt64: [SubscriptionID]]) {
        guard let own = members[models[index].server.swarm], !ids.isEmpty else { return }
        for id in [random.pick(own), random.pick(ids)] {
            guard let account = accounts[id]?.account else { continue }
            let isMember = ring.swarm(at: account.swarmPosition) == models[index].server.swarm
            let isAccepted = monitor.accepts(account, from: connection)
            if isAccepted, !isMember { violations.append("\(now): a report of \(index) about another swarm's account is accepted") }
            let isSuccess = models[index].asked[id]?.isSuccess ?? false
            if !isAccepted, isMember, isSuccess, isSettled(index) { violations.append("\(now): a report of \(index) is not accepted") }
        }
    }

    private mutating func soon(_ seconds: Int) -> Instant { now + .milliseconds(Int.random(in: 1...(seconds * 1000), using: &random)) }

    private mutating func randomServer() -> Int { Int.random(in: models.indices, using: &random) }
}

extension MonitorStateMachine {
    mutating func set(_ id: SubscriptionID, account: AccountID, entryByteCount: Int, at now: Instant) {
        set([MonitoredSubscription(id: id, account: account, entryByteCount: entryByteCount)], at: now)
    }
}
