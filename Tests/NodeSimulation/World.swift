import CSimulation
import Cluster
import Core
import Delivery
import Foundation
import Logging
import NodeAPI
import NodeAssembly
import PostgreSQLModel
import PushNode
import ServiceLifecycle
import SessionProtocol
import SessionServer
import StatusServer
import StatusV01Server
import Storage
import StoreSQLite
import TestSupport
import Waku
import WakuCrypto

/// Everything around the node, under one seed: clients, relay, gorush, disk and clocks, their faults, and the record of all acknowledgements.
///
/// It runs on the scheduler's thread, so its state needs no lock. It is never freed, as the runs of the node that crashed are not.
final class World: @unchecked Sendable {
    /// The parts that can fail.
    enum Trouble: String, CaseIterable {
        case relay, gorush, store, process, clock, swarms
    }

    enum Engine: String, CaseIterable {
        case sqlite
        /// A model: see `PostgreSQLModel`.
        case postgresql
        /// Three nodes on the model of PostgreSQL: see ``SharedServer``.
        case cluster
    }

    struct Options {
        var seed: UInt64
        var duration: Duration
        var isPrinting = false
        var mistake: Mistake?
        /// nil: drawn; half of the seeds have SQLite, a third PostgreSQL, and a sixth three nodes, but only for mistakes that need them.
        var engine: Engine?
        /// None: everything works throughout.
        var troubles = Trouble.allCases
    }

    /// The wall clock's time at the start of the virtual clock.
    static let wallStart: Int64 = 1_800_000_000_000_000_000

    let options: Options
    let scheduler: Scheduler
    let engine: Engine
    let identity: PrivateKey
    let sodium: Sodium
    let folder: String
    var generator: SeededGenerator
    private(set) var log = EventLog()
    private(set) var violation: String?
    /// By the virtual clock.
    let startTime: Int64

    // The nodes.
    let nodes: [NodeProcess]
    /// The database of several nodes.
    private(set) var server: SharedServer?
    private(set) var crashCount = 0
    private(set) var stopCount = 0

    // Faults.
    var active: Set<Trouble> = []
    /// When it last began or ended.
    var lastTrouble: [Trouble: Int64] = [:]
    var storeTrouble: (start: Int64, end: Int64) = (0, 0)
    var relayFault = RelayFault()
    var gorushFault = GorushFault.none
    var diskDelay = Duration.zero
    var databaseFault = DatabaseFault()
    var swarms: SimulatedSwarms?

    // The clients and their knowledge.
    var devices: [Device] = []
    var accounts: [V01Client] = []
    var subscribers: [SessionSubscriber] = []
    var registrants: [Registrant] { devices + accounts + subscribers }
    var inboxes: [TopicTag: [Int: Inbox]] = [:]
    var inboxCount = 0
    var askers: [PrivateKey] = []
    var queryKeys: [KeyHashKey: SymmetricKey] = [:]
    var queries: [[UInt8]: AskedQuery] = [:]
    var requests: [[UInt8]: SentRequest] = [:]
    var v01Queries: [PublicKey: V01AskedQuery] = [:]
    var sessionMessages: [String: SessionMessage] = [:]
    var v01Requests: [[UInt8]: V01SentRequest] = [:]
    var recentMessages: [(time: Int64, message: ReceivedMessage, delivered: () -> Void)] = []
    var counts = Counts()

    // gorush's record.
    var accepted: [PushKey: Int] = [:]
    var excused: [PushKey: Int] = [:]
    var inFlight: [Int: Post] = [:]
    /// Posts whose acceptance was answered in the present runs of the nodes.
    var unrecorded: [(key: PushKey, life: Int, time: Int64)] = []
    var postCount = 0
    /// By device.
    var waitingPosts: [Int: [WaitingPost]] = [:]

    init(_ options: Options, in folder: String, sodium: Sodium) {
        self.sodium = sodium
        self.options = options
        self.folder = folder
        simulation_set_wall_offset(Self.wallStart)
        scheduler = Scheduler.start(seed: options.seed)
        startTime = scheduler.now
        generator = SeededGenerator(seed: options.seed ^ 0x5EED)
        let single = [Engine.sqlite, .sqlite, .sqlite, .postgresql, .postgresql]
        let drawn = generator.pick(single + [options.mistake == nil ? .cluster : .sqlite])
        engine = options.engine ?? options.mistake?.engine ?? drawn
        nodes = (0..<(engine == .cluster ? 3 : 1)).map { NodeProcess(number: $0, in: folder) }
        identity = .generate()
        scheduler.latency = { [unowned self] in latency(of: $0) }
        scheduler.stepped = { [unowned self] in stepped() }
        if engine == .cluster { scheduler.isServer = { ["waku-push.store", "waku-push.store.checkpoint"].contains($0) } }
    }

    // MARK: Running

    /// - Returns: whether all invariants held.
    func run() -> Bool {
        makeClients()
        for node in nodes { start(node) }
        watchPartitions()
        beginActivity()
        beginTroubles()
        scheduler.run(until: scheduler.now + options.duration.nanoseconds)
        if violation == nil { finish() }
        note("end")
        return violation == nil
    }

    /// A last calm period, after which everything must be in order; then a restart with a full outbox.
    private func finish() {
        isEnding = true
        endTroubles()
        scheduler.run(until: scheduler.now + Duration.seconds(300).nanoseconds)
        if violation == nil { checkEnd() }
        scheduler.run(until: scheduler.now + Duration.seconds(60).nanoseconds)
        if violation == nil { restartWithWaitingNotifications() }
    }

    /// The notifications that wait at a restart are posted afterwards without another request: a relay's store returns none that is older than two
    /// minutes.
    private func restartWithWaitingNotifications() {
        began(.gorush)
        gorushFault = .down
        requestAll()
        // Others behind them, so that their order matters.
        scheduler.run(until: scheduler.now + Duration.seconds(20).nanoseconds)
        requestAll()
        scheduler.run(until: scheduler.now + Duration.seconds(125).nanoseconds)
        endTroubles()
        for node in nodes where nodes.count == 1 || chance(0.7) {
            if chance(0.5) { crash(node, losesPower: chance(0.5)) } else { stop(node) }
        }
        scheduler.run(until: scheduler.now + Duration.seconds(165).nanoseconds)
    }

    /// Whether no new trouble begins.
    private(set) var isEnding = false

    func note(_ line: String) {
        log.add("\(scheduler.now) \(line)", isPrinted: options.isPrinting)
    }

    /// Ends the simulation, since the node broke an invariant.
    func fail(_ reason: String) {
        guard violation == nil else { return }
        note("violation: \(reason)")
        violation = reason
        scheduler.isStopped = true
    }

    /// Suspends a task of the node. False if it is cancelled; after a crash it does not return.
    @discardableResult
    func pause(_ duration: Duration) async -> Bool {
        (try? await Task.sleep(for: duration)) != nil
    }

    /// The time by clocks that are right.
    var wallTime: Timestamp { Timestamp(rawValue: scheduler.now + Self.wallStart) }

    func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &generator) < probability }
    func random(_ range: ClosedRange<Double>) -> Duration { .seconds(Double.random(in: range, using: &generator)) }

    // MARK: The nodes

    /// The only node, whose disk is simulated; with several nodes the first one.
    var first: NodeProcess { nodes[0] }

    func start(_ node: NodeProcess) {
        // Exits, and is started again.
        if !isReachable(from: node) { return scheduler.after(random(1...5)) { [self] in start(node) } }
        let former = node.lifeFolder
        node.life = scheduler.beginLife()
        node.startCount += 1
        node.isStopping = false
        do {
            try FileManager.default.createDirectory(atPath: node.lifeFolder, withIntermediateDirectories: true)
            // Another folder has other locks than the one of the crashed node, which nobody releases.
            for suffix in ["", "-wal"] {
                let (from, to) = (DataFolder.databasePath(in: former) + suffix, DataFolder.databasePath(in: node.lifeFolder) + suffix)
                if FileManager.default.fileExists(atPath: from) { try FileManager.default.moveItem(atPath: from, toPath: to) }
            }
            if node.startCount > 1 { try? FileManager.default.removeItem(atPath: former) }
            if engine != .cluster {
                let disk = StoreFaults(in: node.lifeFolder)
                disk.seed(generator.next())
                disk.trackSyncs()
                node.disk = disk
            }
            try scheduler.within(node.life) { try run(node) }
            note("\(node.name) starts: number \(node.startCount)")
            // Sometimes the next start does not get far either.
            if node.startCount > 1, options.troubles.contains(.process), !isEnding, chance(0.15) {
                node.crashStep = scheduler.stepCount + Int.random(in: 1...300, using: &generator)
            }
        } catch {
            fail("\(node.name) did not start: \(error)")
        }
    }

    private func run(_ node: NodeProcess) throws {
        let relay = SimulatedRelay(self, of: node)
        node.relay = relay
        let service = try makeNode(node, relay)
        node.service = service
        let group = ServiceGroup(services: [service], logger: logger)
        node.services = group
        Task.detached { [life = node.life] in
            do {
                try await group.run()
                self.ended(node, life, nil)
            } catch {
                self.ended(node, life, "\(error)")
            }
        }
    }

    private func makeNode(_ node: NodeProcess, _ relay: SimulatedRelay) throws -> NodeService {
        var configuration = NodeConfiguration(identity: identity, dataPath: node.lifeFolder)
        var status = StatusPush.Configuration()
        // On a thread of its own, which is not simulated.
        status.deriveAheadLimit = nil
        status.requestAgeLimit = configuration.maximumRequestAge
        var statusV01 = StatusPushV01.Configuration()
        statusV01.requestAgeLimit = configuration.maximumRequestAge
        options.mistake?.change(&configuration, &status, &statusV01)
        let gorush = SimulatedGorush(world: self, process: node)
        let posting: any NotificationPosting = options.mistake?.posting(gorush) ?? gorush
        let session: [any NodeProtocol] = makeSession(of: node, ageLimit: configuration.maximumRequestAge).map { [$0] } ?? []
        return try NodeService(
            configuration,
            protocols: [StatusPush(identity: identity, status), StatusPushV01(identity: identity, statusV01)] + session,
            knownParts: NodeAssembly.protocols.map(\.part),
            gorush: [GorushEndpoint(posting)], logger: logger, now: options.mistake?.clock ?? Timestamp.now,
            openStore: { parts in
                let engine = try openStore(parts, of: node)
                return options.mistake?.store(engine) ?? engine
            },
            makeCluster: { needs in
                guard let server else { return SoleMembership() }
                var configuration = ClusterNode.Configuration(name: node.name)
                configuration.times = SharedServer.times
                let database: any SharedDatabase = SharedServer.Connection(server, of: node)
                return try ClusterNode(configuration, on: options.mistake?.database(database) ?? database, for: needs)
            },
            makeRelay: { _ in relay })
    }

    private func openStore(_ parts: [StorePart], of node: NodeProcess) throws -> any Store {
        func open(_ folder: String, _ parts: [StorePart]) throws -> SQLiteStore {
            try SQLiteStore(folder: folder, storageKey: Sealer.storageKey(of: identity), parts: parts)
        }
        switch engine {
        case .sqlite, .postgresql:
            let store = try open(node.lifeFolder, parts)
            node.store = store
            return engine == .sqlite ? store : PostgreSQLModel(store, database(of: node))
        case .cluster:
            let server = try server ?? SharedServer(self, in: "\(folder)/server") { try open($0, parts + [SharedServer.part]) }
            self.server = server
            return PostgreSQLModel(server.store, database(of: node), isShared: true)
        }
    }

    /// Warnings and errors of the nodes are a part of the log, without metadata that name the folder.
    private var logger: Logger {
        var logger = Logger(label: "node") { _ in NodeLog(world: self) }
        logger.logLevel = .warning
        return logger
    }

    /// The node listens to the relay.
    func attached(_ node: NodeProcess, _ life: Int) {
        note("\(node.name) runs")
        endProcessTrouble()
        let missed = recentMessages.filter { $0.time > scheduler.now - Duration.seconds(120).nanoseconds }
        // Caught up from the relay's store.
        for entry in missed where chance(0.8) {
            scheduler.after(random(0.01...2)) {
                if node.relay?.deliver(entry.message) == true { entry.delivered() }
            }
        }
    }

    private func endProcessTrouble() {
        if nodes.allSatisfy({ $0.relay?.isAttached == true && !$0.isSuspended }) { ended(.process) }
    }

    /// Kills the process. The power may fail too: then unsynced writes are lost, wholly or in part.
    func crash(_ node: NodeProcess, losesPower: Bool) {
        guard node.isRunning else { return }
        crashCount += 1
        note("\(node.name) \(losesPower ? "loses power" : "is killed")")
        began(.process)
        scheduler.end(node.life)
        server?.forget(node.life)
        excusePosts(of: node)
        // The PostgreSQL server continues.
        if engine == .sqlite { node.disk?.kill() }
        try? node.store?.close()
        node.disk?.clear()
        if losesPower, engine == .sqlite { node.disk?.cutPower() }
        node.disk?.revive()
        options.mistake?.restore(DataFolder.databasePath(in: node.lifeFolder))
        node.forget()
        scheduler.after(random(0.05...15)) { [self] in start(node) }
    }

    /// Stops a node as a restart of the service does.
    func stop(_ node: NodeProcess) {
        guard node.isRunning, !node.isStopping, let services = node.services else { return }
        note("\(node.name) stops")
        stopCount += 1
        node.isStopping = true
        node.stopTime = scheduler.now
        began(.process)
        scheduler.within(node.life) { _ = Task.detached { await services.triggerGracefulShutdown() } }
        let stopped = node.life
        scheduler.after(.seconds(15)) { [self] in
            guard node.life == stopped, node.isStopping, node.isRunning else { return }
            if !node.wasSuspended(since: node.stopTime) { fail("\(node.name) did not stop within 15 s") }
        }
    }

    /// Suspends a node, as SIGSTOP does, and resumes it.
    func suspend(_ node: NodeProcess, for duration: Duration) {
        guard node.isRunning, !node.isSuspended else { return }
        note("\(node.name) is suspended for \(duration)")
        began(.process)
        (node.isSuspended, node.suspensionChanged) = (true, scheduler.now)
        scheduler.suspend(node.life)
        excusePosts(of: node)
        let suspended = node.life
        scheduler.after(duration) { [self] in
            guard node.life == suspended, node.isRunning else { return }
            note("\(node.name) resumes")
            (node.isSuspended, node.suspensionChanged) = (false, scheduler.now)
            scheduler.resume(suspended)
            endProcessTrouble()
        }
    }

    private var stopLimit: Duration { NodeConfiguration(identity: identity, dataPath: folder).stopLimit }

    private func ended(_ node: NodeProcess, _ life: Int, _ error: String?) {
        guard life == node.life, node.isRunning else { return }
        note("\(node.name) ended: \(error ?? "as it was told")")
        guard node.isStopping, error == nil else { return fail("\(node.name) ended by itself: \(error ?? "without an error")") }
        // At the limit it exits although something is left to do.
        let isAbandoned = scheduler.now - node.stopTime >= stopLimit.nanoseconds
        if isAbandoned, !node.wasSuspended(since: node.stopTime), !hasStoreTrouble(since: node.stopTime) {
            return fail("\(node.name) abandoned its stop")
        }
        excusePosts(of: node)
        scheduler.end(life)
        server?.forget(life)
        node.forget()
        scheduler.after(random(0.05...15)) { [self] in start(node) }
    }

    private func stepped() {
        for node in nodes {
            guard let step = node.crashStep, scheduler.stepCount >= step else { continue }
            node.crashStep = nil
            crash(node, losesPower: chance(0.5))
        }
    }
}

/// The node's log, as far as an operator must see it.
private struct NodeLog: LogHandler {
    let world: World
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        world.note("log \(event.level): \(event.message)")
    }
}

/// The lines of a run: a hash of all, FNV-1a, 64 bits, and the latest, which explain most violations.
struct EventLog {
    private static let latestCount = 400

    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var lineCount = 0
    private var kept: [String] = []

    var latest: ArraySlice<String> { kept.suffix(Self.latestCount) }

    mutating func add(_ line: String, isPrinted: Bool) {
        for byte in line.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        lineCount += 1
        if kept.count == 2 * Self.latestCount { kept.removeFirst(Self.latestCount) }
        kept.append(line)
        if isPrinted { print(line) }
    }
}

/// The result of a run.
struct Counts {
    var registrations = 0
    var queries = 0
    var requests = 0
    var answers = 0
    var posts = 0
    var checks = 0
}
