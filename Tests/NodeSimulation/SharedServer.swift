import Cluster
import Core
import Delivery
import Dispatch
import Foundation
import GRDB
import NodeAPI
import Storage
import StoreSQLite
import WakuCrypto

private typealias Row = Storage.Row
private typealias Column = Storage.Column
private typealias Table = Storage.Table

/// The database of several nodes: rows of the stores, claims and marks in SQLite, and leases, partitions, finished messages and logged changes in
/// memory. It works throughout; ``World/databaseFault`` decides which replies the nodes get.
///
/// Transactions run one after the other, so there are no conflicts between them, and none waits for a lock of another one.
///
/// Everything runs on one thread, so its state needs no lock.
final class SharedServer: @unchecked Sendable {
    static let part = StorePart("cluster", tables: [ClaimTable.table, MarkTable.table])
    /// Fewer than a daemon's 256: each heartbeat looks at all, which would take half of a run.
    static let times: ClusterConfiguration = {
        var times = ClusterConfiguration()
        times.partitionCount = 16
        return times
    }()

    struct Lease {
        var row: LeaseRow
        var endedAt: Int64?
    }

    struct Change {
        let time: Int64
        let channel: String
        let payload: String
    }

    let world: World
    let store: SQLiteStore
    /// Another connection to the store's file.
    let rows: DatabaseQueue

    var leases: [NodeID: Lease] = [:]
    var partitions = Array(repeating: PartitionRow(), count: times.partitionRowCount)
    var finished: [NodeID: [(row: FinishedRow, time: Int64)]] = [:]
    var changes: [Change] = []
    var window: ClaimWindow
    private(set) var timeline: UInt32 = 1

    // Of the tables whose changes are notified.
    private var notices: [Notice] = []
    private var lastVersion: Int64?
    private var lastIDs: [String: Int64] = [:]
    private var known: [String: [Int64: [DatabaseValue]]] = [:]
    private var lastMark: Int64 = 0
    /// When a row of the outbox was first marked.
    private(set) var markTimes: [Int64: Int64] = [:]
    private var listeners: [Listener] = []

    init(_ world: World, in folder: String, open: (String) throws -> SQLiteStore) throws {
        self.world = world
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        store = try open(folder)
        var configuration = GRDB.Configuration()
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = OFF") }
        rows = try DatabaseQueue(path: DataFolder.databasePath(in: folder), configuration: configuration)
        window = ClaimWindow(firstHour: .min)
        window = ClaimWindow(firstHour: window.maintain(now: world.wallTime.rawValue / 1_000_000_000).dropBefore)
        maintainClaims()
    }

    /// By the server's clock, which is right.
    var now: Int64 { world.wallTime.rawValue }

    func maintainClaims() {
        let plan = window.maintain(now: now / 1_000_000_000)
        window = ClaimWindow(firstHour: plan.dropBefore, lastHour: plan.create.upperBound)
    }

    func promote() { timeline += 1 }

    // MARK: Notifications

    func prepare(_ wanted: [Notice]) {
        notices = wanted
    }

    /// Notifies the listeners of rows that were inserted or updated since the last call, and remembers the times of new marks.
    func notifyOfChanges() {
        do {
            // Not `read`: it sets a pragma, after which SQLite compiles all statements again.
            try rows.unsafeRead { db in
                // Another number after each transaction of the store that has changed something.
                let version = try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA data_version"))
                guard version != lastVersion else { return }
                lastVersion = version
                for notice in notices {
                    let (table, column) = (notice.table.name, notice.column.name)
                    if notice.includesUpdates {
                        var current: [Int64: [DatabaseValue]] = [:]
                        let statement = try db.cachedStatement(sql: "SELECT id, \"\(column)\", * FROM \"\(table)\" ORDER BY id")
                        for row in try GRDB.Row.fetchAll(statement) {
                            let id: Int64 = row[0]
                            current[id] = Array(row.databaseValues)
                            if known[table]?[id] != current[id] { send(notice, row[1]) }
                        }
                        known[table] = current
                    } else {
                        let statement = try db.cachedStatement(sql: "SELECT id, \"\(column)\" FROM \"\(table)\" WHERE id > ? ORDER BY id")
                        for row in try GRDB.Row.fetchAll(statement, arguments: [lastIDs[table] ?? 0]) {
                            lastIDs[table] = row[0]
                            send(notice, row[1])
                        }
                    }
                }
                let marks = try db.cachedStatement(sql: "SELECT id, row_id FROM cluster_mark WHERE id > ? ORDER BY id")
                for row in try GRDB.Row.fetchAll(marks, arguments: [lastMark]) {
                    lastMark = row[0]
                    markTimes[row[1]] = now
                }
            }
        } catch {
            world.fail("the server can't be read: \(error)")
        }
    }

    private func send(_ notice: Notice, _ value: DatabaseValue) {
        let payload =
            switch value.storage {
            case .blob(let data): hexString(data)
            case .int64(let integer): "\(integer)"
            default: "\(value)"
            }
        if notice.isLogged { changes.append(Change(time: now, channel: notice.channel, payload: payload)) }
        send(notice.channel, [payload])
    }

    func send(_ channel: String, _ payloads: [String]) {
        world.scheduler.after(world.random(0.001...0.02)) { [self] in
            for listener in listeners { listener.receive(channel, payloads) }
        }
    }

    func add(_ listener: Listener) { listeners.append(listener) }

    /// The process ended.
    func forget(_ life: Int) { listeners.removeAll { $0.life == life } }

    /// - Parameter life: the run of a node; nil for all.
    func connectionsLost(by life: Int? = nil) {
        for listener in listeners where life == nil || listener.life == life { listener.connectionLost() }
    }
}

/// A connection on which notifications arrive.
///
/// Everything runs on one thread, so its state needs no lock.
final class Listener: NoticeListener, @unchecked Sendable {
    typealias Answer = Result<ClusterListener.Event, StoreError>

    let life: Int
    private let world: World
    private let node: NodeProcess
    private let channels: Set<String>
    private var isConnected = false
    private var isClosed = false
    private var waiting: [String: [String]] = [:]
    private var continuation: CheckedContinuation<Answer, Never>?
    private var number = 0

    init(_ world: World, of node: NodeProcess, life: Int, _ channels: [String]) {
        (self.world, self.node, self.life, self.channels) = (world, node, life, Set(channels))
    }

    func next(timeout: Duration, on thread: DispatchQueue) async -> Answer {
        if isClosed { return .success(.closed) }
        if !isConnected {
            guard world.isReachable(from: node) else { return .failure(SharedServer.unreachable) }
            isConnected = true
            return .success(.reconnected)
        }
        if !waiting.isEmpty { return .success(takeWaiting()) }
        number += 1
        let awaited = number
        world.scheduler.after(timeout) { [self] in if number == awaited { answer(.success(.notified([:]))) } }
        return await withCheckedContinuation { continuation = $0 }
    }

    func receive(_ channel: String, _ payloads: [String]) {
        guard isConnected, channels.contains(channel) else { return }
        waiting[channel, default: []] += payloads
        if continuation != nil { answer(.success(takeWaiting())) }
    }

    func connectionLost() {
        (isConnected, waiting) = (false, [:])
        answer(.failure(SharedServer.unreachable))
    }

    func close() {
        isClosed = true
        answer(.success(.closed))
    }

    private func takeWaiting() -> ClusterListener.Event {
        defer { waiting = [:] }
        return .notified(waiting)
    }

    private func answer(_ answer: Answer) {
        guard let continuation else { return }
        self.continuation = nil
        world.scheduler.within(life) { continuation.resume(returning: answer) }
    }
}
