@testable import Cluster
import Core
import TestSupport

/// Nodes, a database with its standbys, gorush and a message network, in virtual time. The nodes run the state machines under test with a driver that
/// meets the requirements of the article. The invariants are checked at each step (`ClusterSimulation+Invariants.swift`).
///
/// A failure prints its seed: the same seed gives the same run everywhere.
struct ClusterSimulation {
    enum Event {
        case wake(node: Int, process: Int)
        case send(SimulatedMessage)
        case hear(node: Int, SimulatedMessage, isRepeated: Bool)
        case arrive(
            server: Int, node: Int, process: Int, request: Int, SimulatedDatabase.Request, row: Int, began: Milliseconds, isDelayed: Bool)
        case reply(node: Int, process: Int, request: Int, SimulatedDatabase.Request, SimulatedDatabase.Reply)
        case postArrives(node: Int, process: Int, row: Int, post: Int)
        case postEnds(node: Int, process: Int, row: Int, post: Int, isAccepted: Bool)
        case notify(NodeID)
        case fault
        case restart(node: Int)
        case undrain(node: Int)
        case failOver
        case databaseReturns
        case check
    }

    struct Server {
        var database: SimulatedDatabase
        let timeline: UInt32
        var clockError: Milliseconds = 0
        /// The server answers from this time until `answersUntil`.
        var answersFrom: Milliseconds = 0
        var answersUntil: Milliseconds = .max
    }

    struct Post {
        let node: Int
        let process: Int
        let mark: DeliveryMark?
        let startedAt: Milliseconds
        var isAccepted = false
        /// The node knows that the post was not accepted, or that its outcome can't be known.
        var hasFailed = false
    }

    struct MessageRecord {
        let message: SimulatedMessage
        var hearings: [(node: Int, process: Int, at: Milliseconds, rank: Int)] = []
        var isRepeated = false
        var handledCount = 0
        var answeredAt: Milliseconds?
        var isAcknowledged = false
        var isRefused = false
    }

    let plan: SimulationPlan
    let configuration: ClusterConfiguration
    var random: SplitMix64
    var events = EventQueue<Milliseconds, Event>()
    var now: Milliseconds = 0
    var nodes: [SimulatedNode] = []
    var servers: [Server]
    var primary = 0
    /// Known in advance: transactions committed shortly before may be lost without having been acknowledged.
    var failoverAt: Milliseconds?
    var doomed: [(SimulatedDatabase.Request, row: Int, began: Milliseconds)] = []
    var lastRequest = 0
    var lastRow = 0
    var lastProcess = 0
    var lastPost = 0
    var gorushTroubleUntil: Milliseconds = 0
    var databaseHealthySince: Milliseconds = 0
    var lastFault: Milliseconds = 0
    var messages: [MessageRecord] = []
    var numbers: [MessageKey: Int] = [:]
    var posts: [Int: [Post]] = [:]
    var postPlaces: [Int: (row: Int, place: Int)] = [:]
    /// The time since which each partition has no owner.
    var unownedSince: [Milliseconds?]
    var disturbances: [[(from: Milliseconds, to: Milliseconds)]]
    var databaseDisturbances: [(from: Milliseconds, to: Milliseconds)] = []
    /// Times at which nodes started or stopped draining: for a moment the other nodes compute different ranks.
    var rankChanges: [Milliseconds] = []
    var violations: [Violation] = []
    var figures = SimulationFigures()

    init(_ plan: SimulationPlan) {
        self.plan = plan
        var configuration = ClusterConfiguration()
        configuration.partitionCount = 8
        self.configuration = configuration
        random = SplitMix64(seed: plan.seed)
        var database = SimulatedDatabase(configuration, mutation: plan.mutation)
        database.claimWindow = ClaimWindow(firstHour: -3)
        servers = [Server(database: database, timeline: 1)]
        unownedSince = [Milliseconds?](repeating: 0, count: configuration.partitionRowCount)
        disturbances = [[(from: Milliseconds, to: Milliseconds)]](repeating: [], count: plan.nodeCount)
    }

    /// gorush's timeout, regardless of the node's own configuration.
    static let gorushTimeout: Milliseconds = 8000
    /// `--unknown-hold`.
    static let unknownHold: Milliseconds = 5000

    /// Whether a device shows a repetition in place of the first.
    static func showsOnce(_ device: Int) -> Bool { device % 4 == 3 }

    mutating func run() {
        for index in 0..<plan.nodeCount {
            nodes.append(newProcess())
            events.add(.wake(node: index, process: nodes[index].process), at: random(0...400))
        }
        for number in 0..<plan.messageCount {
            let kind: SimulatedMessage.Kind =
                switch random(0...9) {
                case 0...3: .request
                case 4...5: .registration
                case 6...7: .query
                default: .junk
                }
            let message = SimulatedMessage(
                number: number, key: MessageKey(prefix: random.next(), second: random.next()), kind: kind,
                device: random(0...(plan.deviceCount - 1)),
                sentAt: random(2000...max(plan.faultsEnd + 5000, 8000)))
            numbers[message.key] = number
            messages.append(MessageRecord(message: message))
            events.add(.send(message), at: message.sentAt)
        }
        if plan.faultInterval > 0 { events.add(.fault, at: random(3000...(3000 + 2 * plan.faultInterval))) }
        events.add(.check, at: 500)
        while let (at, event) = events.pop(), at <= plan.end, violations.count < 3 {
            now = at
            handle(event)
        }
        if violations.isEmpty { checkEnd() }
    }

    private mutating func handle(_ event: Event) {
        switch event {
        case .wake(let index, let process):
            guard isAwake(index, process, event) else { return }
            if let wakeAt = nodes[index].wakeAt, wakeAt <= now { nodes[index].wakeAt = nil }
            act(index)
        case .send(let message): send(message)
        case .hear(let index, let message, let isRepeated):
            if isAwake(index, nodes[index].process, event) { hear(index, message, isRepeated: isRepeated) }
        case .arrive(let server, let index, let process, let number, let request, let row, let began, let isDelayed):
            arrive(at: server, from: index, process, number, request, row: row, began: began, isDelayed: isDelayed)
        case .reply(let index, let process, let number, let request, let reply):
            guard isAwake(index, process, event), nodes[index].outstanding.remove(number) != nil else { return }
            receive(index, request, reply)
            act(index)
        case .postArrives(let index, let process, let row, let post): postArrives(index, process, row, post)
        case .postEnds(let index, let process, let row, let post, let isAccepted):
            guard isAwake(index, process, event) else { return }
            postEnded(index, row, post, isAccepted: isAccepted)
            act(index)
        case .notify(let id):
            if let index = nodes.firstIndex(where: { $0.member.id == id }), isAwake(index, nodes[index].process, event) {
                nodes[index].nextPoll = now
                act(index)
            }
        case .fault: beginFault()
        case .restart(let index):
            let last = nodes[index]
            nodes[index] = newProcess()
            nodes[index].cutUntil = last.cutUntil
            nodes[index].deafUntil = last.deafUntil
            nodes[index].clockError = last.clockError
            nodes[index].healthySince = max(now, last.cutUntil + 2500)
            act(index)
        case .undrain(let index):
            nodes[index].member.isDraining = false
            rankChanges.append(now)
        case .failOver: failOver()
        case .databaseReturns: databaseHealthySince = max(databaseHealthySince, now)
        case .check:
            checkPartitions()
            events.add(.check, at: now + 500)
        }
    }

    /// Whether the process runs now. Events for a stopped process are delivered when it continues.
    private mutating func isAwake(_ index: Int, _ process: Int, _ event: Event) -> Bool {
        guard nodes[index].isRunning, nodes[index].process == process else { return false }
        let pausedUntil = nodes[index].pausedUntil
        guard pausedUntil > now else { return true }
        events.add(event, at: pausedUntil)
        return false
    }

    mutating func newProcess() -> SimulatedNode {
        lastProcess += 1
        var configuration = configuration
        // The node has one of two releases.
        var releases = SplitMix64(seed: plan.seed &+ UInt64(lastProcess) << 32)
        configuration.hashingRules = Bool.random(using: &releases) ? [.first] : [.first, .second]
        return SimulatedNode(process: lastProcess, id: NodeID(rawValue: random.next()), configuration: configuration, at: now)
    }

    // MARK: Faults

    private mutating func beginFault() {
        guard now < plan.faultsEnd else { return }
        events.add(.fault, at: now + random(1...(2 * plan.faultInterval)))
        figures.faults += 1
        lastFault = max(lastFault, now)
        let index = random(0...(plan.nodeCount - 1))
        switch plan.faults[random(0...(plan.faults.count - 1))] {
        case .kill:
            guard nodes[index].isRunning else { return }
            let back = now + random(200...10_000)
            nodes[index].isRunning = false
            disturb(index, until: back + 1000)
            events.add(.restart(node: index), at: back)
        case .pause:
            guard nodes[index].isRunning, nodes[index].pausedUntil <= now else { return }
            let length = random(300...(chance(30) ? 20_000 : 9000))
            switch random(0...3) {
            case 0: nodes[index].pauseAtMark = length
            case 1: nodes[index].pauseAtPost = length
            default: pause(index, length)
            }
        case .cutFromDatabase:
            nodes[index].cutUntil = max(nodes[index].cutUntil, now + random(300...14_000))
            disturb(index, until: nodes[index].cutUntil + 2500)
        case .deafen:
            nodes[index].deafUntil = now + random(500...10_000)
        case .drain:
            nodes[index].member.isDraining = true
            rankChanges.append(now)
            events.add(.undrain(node: index), at: now + random(500...12_000))
        case .stepNodeClock:
            nodes[index].clockError += random(-30_000...30_000)
        case .stepDatabaseClock:
            servers[primary].clockError = random(-60_000...60_000) / (chance(50) ? 10 : 1)
        case .databaseOutage:
            guard failoverAt == nil else { return }
            let from = now
            let to = now + random(200...7000)
            servers[primary].answersFrom = to
            disturbDatabase(from, to)
            events.add(.databaseReturns, at: to)
        case .failover:
            guard failoverAt == nil else { return }
            failoverAt = now + 300
            disturbDatabase(now, now + 300)
            events.add(.failOver, at: now + 300)
        case .gorushTrouble:
            gorushTroubleUntil = now + random(500...15_000)
        }
    }

    mutating func pause(_ index: Int, _ length: Milliseconds) {
        lastFault = max(lastFault, now)
        nodes[index].pausedUntil = now + length
        nodes[index].suspended += length
        (nodes[index].pauseAtMark, nodes[index].pauseAtPost) = (0, 0)
        disturb(index, until: now + length + 500)
    }

    /// The standby is promoted. Until then the primary continues; for a while longer it answers nodes that do not know the new one yet.
    private mutating func failOver() {
        figures.failovers += 1
        // The commits of the last moments do not reach the standby. None of them was acknowledged.
        var old = servers[primary]
        let new = Server(
            database: old.database, timeline: old.timeline + 1, clockError: random(-8000...8000), answersFrom: now + random(200...5000))
        for (request, row, began) in doomed {
            _ = old.database.execute(request, row: row, began: began, at: now, clock: now + old.clockError)
        }
        doomed = []
        old.answersUntil = chance(60) ? now + random(500...15_000) : now
        servers[primary] = old
        servers.append(new)
        failoverAt = nil
        disturbDatabase(now, new.answersFrom)
        primary = servers.count - 1
        for index in nodes.indices { disturb(index, until: max(new.answersFrom, min(old.answersUntil, now + 15_000)) + 2500) }
        events.add(.databaseReturns, at: new.answersFrom)
        checkAcknowledged()
    }

    mutating func disturb(_ index: Int, until time: Milliseconds) {
        disturbances[index].append((now, time))
        nodes[index].healthySince = max(nodes[index].healthySince, time)
    }

    private mutating func disturbDatabase(_ from: Milliseconds, _ to: Milliseconds) {
        // Connections are reopened, and requests in progress are repeated.
        databaseDisturbances.append((from, to + 2500))
        databaseHealthySince = max(databaseHealthySince, to + 2500)
    }

    // MARK: Chance

    mutating func random(_ range: ClosedRange<Int>) -> Int { range.lowerBound + Int(random.next() % UInt64(range.count)) }

    mutating func chance(_ percent: Int) -> Bool { random(0...99) < percent }

    mutating func chance(perMille: Int) -> Bool { random(0...999) < perMille }
}
