import CSimulation
import Core
import PostgreSQLModel
import TestSupport
import Waku

/// The faults of the network.
struct RelayFault {
    var loss = 0.0
    var repetition = 0.0
    /// The maximum, in seconds: it also reorders.
    var delay = 0.15
    /// Publications that are not accepted.
    var refusal = 0.0
    /// The maximum time of a publication, in seconds.
    var publication = 0.05
}

/// The faults of the PostgreSQL server and of the network to it.
struct DatabaseFault {
    /// The probability that a reply to `COMMIT` is lost with the connection, and that of a refusal.
    var unanswered = 0.0
    var refused = 0.0
    /// Whether the next lost reply is due to a failover: a standby takes over after a while. It has all that was acknowledged.
    var isFailover = false
    var unreachableUntil: Int64 = 0
    /// One of several nodes that is cut off from the server until a time, by its number.
    var cutOff: (node: Int, until: Int64)?

    func isReachable(from node: Int, at now: Int64) -> Bool {
        now >= unreachableUntil && cutOff.map { $0.node != node || now >= $0.until } ?? true
    }
}

enum GorushFault: CaseIterable {
    case none
    /// Posts fail, and nothing is accepted.
    case down
    /// Some posts fail although their notifications are accepted.
    case unclear
    /// Answers take up to 20 s.
    case slow
    /// Posts are not answered, until the client gives up after 60 s.
    case hanging
    /// Some notifications of a post are dropped, and gorush says so.
    case full
}

/// Faults: periods in which some parts work badly, with calm in between.
extension World {
    /// Whether everything has worked since a time, and works, except for some parts.
    ///
    /// - Parameter swarms: whether the storage servers matter.
    func isCalm(since time: Int64, besides ignored: Set<Trouble> = [], swarms: Bool = false) -> Bool {
        let ignored = swarms ? ignored : ignored.union([.swarms])
        return active.isSubset(of: ignored) && lastTrouble.allSatisfy { $0.value <= time || ignored.contains($0.key) }
    }

    func began(_ trouble: Trouble) {
        if trouble == .store, !active.contains(.store) { storeTrouble.start = scheduler.now }
        active.insert(trouble)
        lastTrouble[trouble] = scheduler.now
    }

    func ended(_ trouble: Trouble) {
        active.remove(trouble)
        lastTrouble[trouble] = scheduler.now
        if trouble == .store { storeTrouble.end = scheduler.now }
    }

    /// Whether the disk worked badly at any time since.
    func hasStoreTrouble(since time: Int64) -> Bool {
        active.contains(.store) || storeTrouble.end >= time
    }

    func beginTroubles() {
        guard !options.troubles.isEmpty else { return }
        scheduler.after(random(20...300)) { [self] in
            guard !isEnding else { return }
            let count = Int.random(in: 1...3, using: &generator)
            for _ in 0..<count { begin(generator.pick(options.troubles)) }
            scheduler.after(random(1...120)) { [self] in
                endTroubles()
                beginTroubles()
            }
        }
    }

    private func begin(_ trouble: Trouble) {
        note("trouble: \(trouble)")
        switch trouble {
        case .relay:
            began(.relay)
            relayFault = RelayFault(
                loss: Double.random(in: 0...0.4, using: &generator), repetition: Double.random(in: 0...0.5, using: &generator),
                delay: Double.random(in: 0.2...8, using: &generator), refusal: Double.random(in: 0...0.5, using: &generator),
                publication: Double.random(in: 0.1...5, using: &generator))
        case .gorush:
            began(.gorush)
            gorushFault = generator.pick([.down, .unclear, .slow, .hanging, .full])
            note("gorush: \(gorushFault)")
        case .store:
            began(.store)
            if engine == .sqlite { breakDisk() } else { breakDatabase() }
        case .process: disturb(nodes.count == 1 ? first : generator.pick(nodes))
        case .clock:
            began(.clock)
            let step = Int64.random(in: -200_000...200_000, using: &generator) * 1_000_000
            simulation_set_wall_offset(Self.wallStart + step)
            note("clock steps by \(step)")
        case .swarms:
            began(.swarms)
            swarms?.fault = SwarmFault(
                refusal: Double.random(in: 0...0.8, using: &generator), loss: Double.random(in: 0...0.3, using: &generator),
                repetition: Double.random(in: 0...0.5, using: &generator), delay: Double.random(in: 0.2...8, using: &generator))
            let probability = Double.random(in: 0...1, using: &generator)
            for node in nodes { node.connections?.cut(probability) }
            if chance(0.3) { swarms?.changeMap() }
        }
    }

    private func disturb(_ node: NodeProcess) {
        // The mistake about leases takes effect after a suspension only: its runs are to be short.
        if nodes.count > 1, chance(options.mistake == .ignoredLease ? 1 : 0.3) {
            // A lease lasts for 5 s.
            let pause = random(0.5...20)
            scheduler.after(random(0...20)) { [self] in suspend(node, for: pause) }
        } else if chance(0.3) {
            scheduler.after(random(0...20)) { [self] in stop(node) }
        } else {
            scheduler.after(random(0...20)) { [self] in
                node.crashStep = scheduler.stepCount + Int.random(in: 1...3_000, using: &generator)
            }
        }
    }

    private func breakDisk() {
        let disk = first.disk
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: disk?.add(.code(13), to: .write, of: .log, permille: 300)
        case 1: disk?.add(.code(778), to: .write, permille: 300)
        case 2: disk?.add(.code(1034), to: .sync, permille: 400)
        case 3: disk?.add(.code(5), to: .lock, permille: 200)
        case 4: disk?.add(.code(266), to: .read, permille: 300)
        default: diskDelay = random(0.05...4)
        }
    }

    private func breakDatabase() {
        switch Int.random(in: 0..<(nodes.count > 1 ? 7 : 5), using: &generator) {
        case 0: databaseFault.unanswered = Double.random(in: 0.05...0.5, using: &generator)
        // With more than ten refusals in a row, commands fail.
        case 1: databaseFault.refused = Double.random(in: 0.1...0.9, using: &generator)
        case 2: loseConnection()
        case 3:
            databaseFault.isFailover = true
            databaseFault.unanswered = 1
        case 4: diskDelay = random(0.05...4)
        default: cutOff(generator.pick(nodes))
        }
        note("database: \(databaseFault)")
    }

    /// The server can't be reached by a node, again and again, for up to four leases; the others can reach it.
    private func cutOff(_ node: NodeProcess) {
        guard active.contains(.store) else { return }
        databaseFault.cutOff = (node.number, scheduler.now + random(0.5...20).nanoseconds)
        server?.connectionsLost(by: node.life)
        scheduler.after(random(5...40)) { [self] in cutOff(node) }
    }

    /// The server can't be reached for seconds, again and again.
    private func loseConnection() {
        guard active.contains(.store) else { return }
        databaseFault.unreachableUntil = scheduler.now + random(0.5...10).nanoseconds
        server?.connectionsLost()
        scheduler.after(random(5...30)) { [self] in loseConnection() }
    }

    /// A node's database while ``databaseFault`` decides about it.
    func database(of node: NodeProcess) -> PostgreSQLModel.Server {
        PostgreSQLModel.Server { [self] in
            decideTransaction(of: node)
        } isReachable: { [self] in
            isReachable(from: node)
        } applied: { [self] in
            server?.notifyOfChanges()
        }
    }

    /// Whether a node can reach the database.
    func isReachable(from node: NodeProcess) -> Bool { databaseFault.isReachable(from: node.number, at: scheduler.now) }

    func decideTransaction(of node: NodeProcess) -> PostgreSQLModel.Fate {
        guard isReachable(from: node) else { return .unreachable }
        if chance(databaseFault.unanswered) {
            databaseFault.unreachableUntil = scheduler.now + random(databaseFault.isFailover ? 2...30 : 0.01...5).nanoseconds
            if databaseFault.isFailover {
                (databaseFault.isFailover, databaseFault.unanswered) = (false, 0)
                server?.promote()
            }
            server?.connectionsLost()
            return .unanswered(isCommitted: chance(0.5))
        }
        return chance(databaseFault.refused) ? .refused : .committed
    }

    func endTroubles() {
        note("troubles end")
        // A planned crash may still happen.
        let kept: Set<Trouble> = nodes.contains { !$0.isRunning || $0.isSuspended } ? [.process] : []
        for trouble in Trouble.allCases where active.contains(trouble) && !kept.contains(trouble) { ended(trouble) }
        relayFault = RelayFault()
        gorushFault = .none
        swarms?.fault = SwarmFault()
        first.disk?.clear()
        diskDelay = .zero
        databaseFault = DatabaseFault()
        simulation_set_wall_offset(Self.wallStart)
    }

    /// Of blocks on the store's queues; other queues have none.
    func latency(of label: String) -> Int64 {
        let isStore = label.hasPrefix("waku-push.store")
        guard isStore || label.hasPrefix("waku-push.cluster") else { return 0 }
        let seconds = Double.random(in: 0.000_1...0.004, using: &generator)
        guard isStore || label == "waku-push.cluster.heartbeat" else { return Duration.seconds(seconds).nanoseconds }
        return (Duration.seconds(seconds) + diskDelay * Double.random(in: 0...1, using: &generator)).nanoseconds
    }

    // MARK: Messages

    /// Sends a message to the node, on a network that may lose, repeat, delay and reorder.
    func send(_ message: WakuMessage, delivered: @escaping () -> Void = {}) {
        let received = ReceivedMessage(message: message, pubsubTopic: .statusDefault)
        if recentMessages.count > 400 { recentMessages.removeFirst(200) }
        recentMessages.append((scheduler.now, received, delivered))
        transmit { [self] in arrive(received, delivered) }
    }

    /// A copy arrives at all nodes; at several nodes not at once, and only some may get it.
    private func arrive(_ message: ReceivedMessage, _ delivered: @escaping () -> Void) {
        guard nodes.count > 1 else {
            if first.relay?.deliver(message) == true { delivered() }
            return
        }
        var isDelivered = false
        for node in nodes where !chance(relayFault.loss / 2) {
            scheduler.after(random(0.001...relayFault.delay)) {
                guard node.relay?.deliver(message) == true, !isDelivered else { return }
                isDelivered = true
                delivered()
            }
        }
    }

    /// Calls `arrive` for each copy that arrives.
    func transmit(_ arrive: @escaping () -> Void) {
        let copies = (chance(relayFault.loss) ? 0 : 1) + (chance(relayFault.repetition) ? 1 : 0)
        for _ in 0..<copies { scheduler.after(random(0.005...relayFault.delay), arrive) }
    }

    /// The outcome of a publication of the node.
    func publication(of message: WakuMessage) -> (delay: Duration, isAccepted: Bool) {
        (random(0.001...relayFault.publication), !chance(relayFault.refusal))
    }

    func published(_ message: WakuMessage) {
        note("published \(message.contentTopic.rawValue)")
        transmit { [self] in receive(message) }
    }
}
