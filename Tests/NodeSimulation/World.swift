import CSimulation
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
    /// What can be out of order.
    enum Trouble: String, CaseIterable {
        case relay, gorush, store, process, clock, swarms
    }

    enum Engine: String, CaseIterable {
        case sqlite
        /// A model: see `PostgreSQLModel`.
        case postgresql
    }

    struct Options {
        var seed: UInt64
        var duration: Duration
        var isPrinting = false
        var mistake: Mistake?
        /// nil: drawn; two thirds of the seeds have SQLite.
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

    // The node.
    /// Changes when a run of the node begins or ends.
    private(set) var life = 0
    private(set) var startCount = 0
    private(set) var relay: SimulatedRelay?
    private(set) var node: NodeService?
    /// Answers the bodies of Session's clients.
    var sessionAnswer: AnswerSession?
    private var services: ServiceGroup?
    private var store: SQLiteStore?
    private(set) var disk: StoreFaults?
    private var isStopping = false
    private(set) var crashCount = 0
    private(set) var stopCount = 0
    /// The step at which the node crashes next.
    var crashStep: Int?

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

    // The clients and what they know.
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
    /// Posts whose acceptance was answered in this run of the node.
    var unrecorded: [(key: PushKey, time: Int64)] = []
    var postCount = 0

    init(_ options: Options, in folder: String, sodium: Sodium) {
        self.sodium = sodium
        self.options = options
        self.folder = folder
        simulation_set_wall_offset(Self.wallStart)
        scheduler = Scheduler.start(seed: options.seed)
        generator = SeededGenerator(seed: options.seed ^ 0x5EED)
        let drawn = generator.pick([Engine.sqlite, .sqlite, .postgresql])
        engine = options.engine ?? (options.mistake == .lostLog ? .sqlite : drawn)
        identity = .generate()
        scheduler.latency = { [unowned self] in latency(of: $0) }
        scheduler.stepped = { [unowned self] in stepped() }
    }

    // MARK: Running

    /// - Returns: whether all invariants held.
    func run() -> Bool {
        makeClients()
        startNode()
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
        scheduler.run(until: scheduler.now + Duration.seconds(125).nanoseconds)
        endTroubles()
        if chance(0.5) { crash(losesPower: chance(0.5)) } else { stopNode() }
        scheduler.run(until: scheduler.now + Duration.seconds(125).nanoseconds)
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

    // MARK: The node

    /// Of the current run, or the last one.
    private var lifeFolder: String { "\(folder)/\(startCount)" }

    func startNode() {
        // Exits, and is started again.
        if !databaseFault.isReachable(at: scheduler.now) { return scheduler.after(random(1...5)) { [self] in startNode() } }
        let former = lifeFolder
        life += 1
        startCount += 1
        isStopping = false
        do {
            try FileManager.default.createDirectory(atPath: lifeFolder, withIntermediateDirectories: true)
            // Another folder has other locks than the one of the crashed node, which nobody releases.
            for suffix in ["", "-wal"] {
                let (from, to) = (DataFolder.databasePath(in: former) + suffix, DataFolder.databasePath(in: lifeFolder) + suffix)
                if FileManager.default.fileExists(atPath: from) { try FileManager.default.moveItem(atPath: from, toPath: to) }
            }
            if startCount > 1 { try? FileManager.default.removeItem(atPath: former) }
            let disk = StoreFaults(in: lifeFolder)
            disk.seed(generator.next())
            disk.trackSyncs()
            self.disk = disk
            let relay = SimulatedRelay(self)
            self.relay = relay
            let service = try makeNode(relay)
            node = service
            let group = ServiceGroup(services: [service], logger: logger)
            services = group
            note("node starts: number \(startCount)")
            // Sometimes the next start does not get far either.
            if startCount > 1, options.troubles.contains(.process), !isEnding, chance(0.15) {
                crashStep = scheduler.stepCount + Int.random(in: 1...300, using: &generator)
            }
            Task.detached { [life] in
                do {
                    try await group.run()
                    self.ended(life, nil)
                } catch {
                    self.ended(life, "\(error)")
                }
            }
        } catch {
            fail("the node did not start: \(error)")
        }
    }

    private func makeNode(_ relay: SimulatedRelay) throws -> NodeService {
        var configuration = NodeConfiguration(identity: identity, dataPath: lifeFolder)
        var status = StatusPush.Configuration()
        // On a thread of its own, which is not simulated.
        status.deriveAheadLimit = nil
        status.requestAgeLimit = configuration.maximumRequestAge
        var statusV01 = StatusPushV01.Configuration()
        statusV01.requestAgeLimit = configuration.maximumRequestAge
        options.mistake?.change(&configuration, &status, &statusV01)
        let posting: any NotificationPosting = options.mistake?.posting(SimulatedGorush(world: self)) ?? SimulatedGorush(world: self)
        let session: [any NodeProtocol] = makeSession(ageLimit: configuration.maximumRequestAge).map { [$0] } ?? []
        return try NodeService(
            configuration,
            protocols: [StatusPush(identity: identity, status), StatusPushV01(identity: identity, statusV01)] + session,
            knownParts: NodeAssembly.protocols.map(\.part),
            gorush: [GorushEndpoint(posting)], logger: logger, now: options.mistake?.clock ?? Timestamp.now,
            openStore: { parts in
                let store = try SQLiteStore(folder: lifeFolder, storageKey: Sealer.storageKey(of: identity), parts: parts)
                self.store = store
                let engine: any Store = engine == .sqlite ? store : PostgreSQLModel(store, database)
                return options.mistake?.store(engine) ?? engine
            },
            makeRelay: { _ in relay })
    }

    /// Warnings and errors of the node are a part of the log, without metadata that name the folder.
    private var logger: Logger {
        var logger = Logger(label: "node") { _ in NodeLog(world: self) }
        logger.logLevel = .warning
        return logger
    }

    /// The node listens to the relay.
    func attached(_ life: Int) {
        note("node runs")
        ended(.process)
        let missed = recentMessages.filter { $0.time > scheduler.now - Duration.seconds(120).nanoseconds }
        // Caught up from the relay's store.
        for entry in missed where chance(0.8) {
            scheduler.after(random(0.01...2)) { [self] in
                if relay?.deliver(entry.message) == true { entry.delivered() }
            }
        }
    }

    /// Ends the process in the midst of things. The power may fail too: then unsynced writes are lost, wholly or in part.
    func crash(losesPower: Bool) {
        guard relay != nil else { return }
        crashCount += 1
        note("node \(losesPower ? "loses power" : "is killed")")
        began(.process)
        scheduler.dropNode()
        life += 1
        excusePosts()
        // The server of PostgreSQL goes on.
        if engine == .sqlite { disk?.kill() }
        try? store?.close()
        disk?.clear()
        if losesPower, engine == .sqlite { disk?.cutPower() }
        disk?.revive()
        options.mistake?.restore(DataFolder.databasePath(in: lifeFolder))
        forgetNode()
        scheduler.after(random(0.05...15)) { [self] in startNode() }
    }

    /// Stops the node as a restart of the service does.
    func stopNode() {
        guard relay != nil, !isStopping, let services else { return }
        note("node stops")
        stopCount += 1
        isStopping = true
        began(.process)
        Task.detached { await services.triggerGracefulShutdown() }
        let stopped = life
        scheduler.after(.seconds(15)) { [self] in
            if life == stopped, isStopping, relay != nil { fail("the node did not stop within 15 s") }
        }
    }

    private func ended(_ life: Int, _ error: String?) {
        guard life == self.life, relay != nil else { return }
        note("node ended: \(error ?? "as it was told")")
        guard isStopping, error == nil else { return fail("the node ended by itself: \(error ?? "without an error")") }
        excusePosts()
        self.life += 1
        forgetNode()
        scheduler.after(random(0.05...15)) { [self] in startNode() }
    }

    private func forgetNode() {
        (relay, services, node, store, disk, sessionAnswer) = (nil, nil, nil, nil, nil, nil)
        swarms?.connections = nil
    }

    private func stepped() {
        guard let step = crashStep, scheduler.stepCount >= step else { return }
        crashStep = nil
        crash(losesPower: chance(0.5))
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

/// The lines of a run, of which only a hash is kept: FNV-1a, 64 bits.
struct EventLog {
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var lineCount = 0

    mutating func add(_ line: String, isPrinted: Bool) {
        for byte in line.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        lineCount += 1
        if isPrinted { print(line) }
    }
}

/// What a run did.
struct Counts {
    var registrations = 0
    var queries = 0
    var requests = 0
    var answers = 0
    var posts = 0
    var checks = 0
}
