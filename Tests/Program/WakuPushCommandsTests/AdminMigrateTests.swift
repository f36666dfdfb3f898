import Cluster
import Delivery
import Foundation
import NodeAssembly
import Core
import PushNode
import StatusProtocol
import Storage
import StorePostgreSQL
import TestSupport
import Testing
import WakuCrypto

@testable import StatusServer

/// A stopped node's store on its way to PostgreSQL and back.
@Suite(.timeLimit(.minutes(5)))
struct AdminMigrateTests {
    private struct Report: Decodable {
        let from, to: String
        let rows, leftBehind: [String: Int]
    }

    private struct DoctorFinding: Decodable {
        let check, verdict, text: String
    }

    private let fixture: AdminFixture
    private let database: String

    init() async throws {
        fixture = try await AdminFixture()
        database = try await PostgreSQLServer.shared().makeDatabase()
    }

    private var postgreSQL: StoreLocation { get throws { .postgreSQL(try PostgreSQLAddress(database)) } }

    private func open(_ location: StoreLocation, _ folder: String? = nil) throws -> any TransferableStore {
        try location.openForTransfer(
            in: folder ?? fixture.data, storageKey: Sealer.storageKey(of: fixture.server.key), parts: NodeAssembly.parts)
    }

    private func migrate(to target: String, from store: String? = nil) async throws -> Ended {
        try await run(
            ["admin", "migrate", "--identity", fixture.server.path, "--to", target, "--json"]
                + (store.map { ["--store", $0] } ?? ["--data", fixture.data]))
    }

    @Test(arguments: [[], ["--to", "data", "--finish"]])
    func eitherMovesOrFinishes(arguments: [String]) async throws {
        let ended = try await run(["admin", "migrate"] + arguments)
        #expect(ended.status == 64 && ended.errors.contains("give one of --to and --finish"), "\(ended.errors)")
    }

    @Test func finishingWaitsForNodesOfOtherReleases() async throws {
        struct Report: Decodable {
            let finished: [String]
        }
        func finish() async throws -> Ended { try await run("admin", "migrate", "--finish", "--store", database, "--json") }
        // Not the daemon's yet.
        #expect(try await finish().status == 65)
        let address = try PostgreSQLAddress(database)
        try PostgreSQLStore(address, storageKey: Sealer.storageKey(of: fixture.server.key), parts: NodeAssembly.parts).close()
        let unneeded = try await finish()
        #expect(try unneeded.json(Report.self).finished == [] && unneeded.errors == "", "\(unneeded.errors)")

        let older = ClusterDatabase(address, configuration: ClusterConfiguration(), outbox: ClusterNode.outbox, version: "0.0.1")
        defer { older.close() }
        try older.prepare(notices: [])
        var member = ClusterMember(NodeID(rawValue: 1), name: "node-1", configuration: ClusterConfiguration(), at: .now)
        let heartbeat = member.heartbeat(at: .now)
        _ = try older.heartbeat(try #require(heartbeat))
        let refused = try await finish()
        #expect(refused.status == 69 && refused.errors.contains("node-1 (0.0.1): upgrade or stop them first"), "\(refused.errors)")
        try older.leave(NodeID(rawValue: 1))
        #expect(try await finish().status == 0)
    }

    @Test func dataFoldersNeedNoFinish() async throws {
        let ended = try await run("admin", "migrate", "--finish", "--data", fixture.data)
        #expect(ended.status == 64 && ended.errors.contains("needs no --finish"), "\(ended.errors)")
    }

    /// Of all rows, opened, by table; and of all properties that are not a store's own.
    private func contents(_ store: any TransferableStore) throws -> [String: [[Value]]] {
        var contents: [String: [[Value]]] = [:]
        for table in store.tables where !table.isCache {
            let columns = [.id] + table.columns
            try store.scan(Query(table, columns, order: [.ascending(.id)])()) { row in
                var values = row.values
                if let sealed = SealedRows(table), let index = columns.firstIndex(where: { $0.name == sealed.column.name }),
                    !row.isNull(index)
                {
                    let binding = sealed.boundColumns.map { bound in values[columns.firstIndex { $0.name == bound.name } ?? 0] }
                    values[index] = .bytes(try store.sealer.open(try row.bytes(index), in: table, boundTo: binding))
                }
                contents[table.name, default: []].append(values)
                return true
            }
        }
        contents["property"] = try store.read(Properties.all()).filter { !$0.name.hasPrefix("storage key") && $0.name != "transfer" }
            .sorted { $0.name < $1.name }.map { [.text($0.name), .bytes($0.value)] }
        return contents
    }

    @Test func thereAndBack() async throws {
        var source = try open(.dataFolder)
        try await source.commit(RelayCursors.begin(at: Timestamp(rawValue: 5)))
        // The next notification gets a higher id than any before, though the last row is gone.
        let waiting = DeliveryStorage.enqueue(
            DeliveryID(messageID: [2], key: fixture.bob.key), for: DeviceID(StatusStorage.protocolNumber, row: 1), payload: [1],
            expires: Timestamp(rawValue: 1_800_000_000_000_000_000), by: source.sealer)
        let removed = try await source.commit(StoreCommand.apply([waiting]) { $0[0] })
        try await source.commit(DeliveryStorage.drop([removed], of: DeliverySources([]), at: .now()))
        let expected = try contents(source)
        let last = try source.lastIDs()
        try source.close()
        #expect(expected["outbox"]?.count == 1 && expected["property"]?.isEmpty == false)

        let moved = try await migrate(to: database)
        #expect(moved.status == 0, "\(moved.errors)")
        let report = try moved.json(Report.self)
        #expect(report.rows["outbox"] == 1)
        #expect(report.from == "data folder \(fixture.data)" && report.to.hasPrefix("PostgreSQL (database "))
        let target = try open(try postgreSQL)
        #expect(try contents(target) == expected)
        #expect(last["outbox"] == removed)
        for (table, id) in last { #expect(try #require(try target.lastIDs()[table]) >= id, "\(table)") }
        try target.close()

        // The old store is refused, so that it is not used by mistake.
        let rotated = try await fixture.admin("registrations", "import", "/nonexistent", identified: true)
        #expect(rotated.status == 65)
        #expect(rotated.failure?.hasPrefix("this store was moved to PostgreSQL (database ") == true, "\(rotated.errors)")
        #expect(try await migrate(to: database).failure?.hasPrefix("this store was moved to") == true)

        let doctor = try await run("doctor", "--identity", fixture.server.path, "--data", fixture.data, "--json")
        let findings = try doctor.json([DoctorFinding].self)
        let finding = try #require(findings.first { $0.check == "database" })
        #expect(finding.verdict == "fail" && finding.text.hasPrefix("this store was moved to"), "\(finding)")
        let status = try await fixture.admin("status")
        #expect(status.errors.contains("warning: this store was moved to"), "\(status.errors)")
        let listed = try await fixture.admin("registrations", "list")
        #expect(listed.status == 0 && listed.errors.contains("warning: this store was moved to"), "\(listed.errors)")
        for arguments in [["registrations", "remove", fixture.bob.keyHash.hex, "--yes"], ["outbox", "drop", "--all", "--yes"]] {
            let changed = try await run(["admin"] + arguments + ["--data", fixture.data])
            #expect(changed.status == 65 && changed.errors.contains("this store was moved to"), "\(arguments) \(changed.errors)")
        }
        let reencrypted = try await fixture.admin("rotate-storage-key", identified: true)
        #expect(reencrypted.status == 65, "\(reencrypted.output)")
        #expect(reencrypted.failure?.hasPrefix("this store was moved to PostgreSQL (database ") == true, "\(reencrypted.errors)")
        let backup = fixture.folder.path + "/backup"
        let backedUp = try await fixture.admin("backup", backup)
        #expect(backedUp.status == 0 && backedUp.failure?.contains("this store was moved to") == true, "\(backedUp.errors)")
        let restored = try await run(
            "admin", "restore", backup, "--data", fixture.folder.path + "/restored", "--identity", fixture.server.path)
        #expect(restored.status == 0 && restored.failure?.contains("this store was moved to") == true, "\(restored.errors)")
        #expect(!restored.errors.contains("was replaced"))
        let replaced = try await fixture.admin("restore", backup, identified: true)
        #expect(replaced.status == 0, "\(replaced.errors)")
        #expect(replaced.errors.contains("the database that was replaced was not the one in use: this store was moved to"))

        // Back into the same folder, whose rows it replaces.
        let back = try await migrate(to: fixture.data, from: database)
        #expect(back.status == 0, "\(back.errors)")
        source = try open(.dataFolder)
        #expect(try contents(source) == expected)
        for (table, id) in last { #expect(try #require(try source.lastIDs()[table]) >= id, "\(table)") }
        #expect(try source.read(StoreTransfer.obstacle()) == nil)
        try source.close()
        #expect(try await fixture.admin("check", identified: true).status == 0)
    }

    /// Nodes that share a database have the marks of posted notifications in a table of their own.
    @Test func marksOfSeveralNodesAreMoved() async throws {
        #expect(try await migrate(to: database).status == 0)
        let address = try PostgreSQLAddress(database)
        let cluster = ClusterDatabase(address, configuration: ClusterConfiguration(), outbox: ClusterNode.outbox)
        try cluster.prepare(notices: [])
        cluster.close()
        let mark = "INSERT INTO cluster_mark (row_id, node, epoch, marked_at) SELECT id, 1, 1, to_timestamp(1700000000) FROM outbox"
        _ = try PostgreSQLConnection.open(address, name: "test").run(Statement(mark, isPrepared: false))
        let back = try await migrate(to: fixture.data, from: database)
        #expect(back.status == 0, "\(back.errors)")
        let store = try open(.dataFolder)
        #expect(try contents(store)["outbox"]?.map { $0.contains(.integer(1_700_000_000_000_000_000)) } == [true])
        try store.close()
    }

    @Test func anInterruptedMoveContinues() async throws {
        let source = try open(.dataFolder)
        let expected = try contents(source)
        // As a move leaves it that was killed after some rows; and then the source was used once more.
        let target = try open(try postgreSQL)
        let unfinished = StoreTransfer(from: InterruptedStore(source, reads: 12), to: target, named: "there")
        await #expect(throws: StoreError.self) { try await unfinished.run() }
        #expect(try target.read(StoreTransfer.obstacle())?.hasPrefix("a move into this store was interrupted") == true)
        try target.close()
        try source.close()
        let refused = try await run([
            "admin", "registrations", "import", "/nonexistent", "--data", fixture.folder.path + "/x", "--store", database, "--identity",
            fixture.server.path,
        ])
        #expect(refused.failure?.hasPrefix("a move into this store was interrupted") == true, "\(refused.errors)")
        let reencrypted = try await fixture.admin("rotate-storage-key", "--store", database, identified: true)
        #expect(reencrypted.status == 65, "\(reencrypted.output)")
        #expect(reencrypted.failure?.hasPrefix("a move into this store was interrupted") == true, "\(reencrypted.errors)")

        let moved = try await migrate(to: database)
        #expect(moved.status == 0, "\(moved.errors)")
        let found = try open(try postgreSQL)
        #expect(try contents(found) == expected)
        #expect(try found.read(StoreTransfer.obstacle()) == nil)
        try found.close()
    }

    /// A second target that was begun earlier does not become a second store.
    @Test func dataMovedElsewhereIsNotMovedAgain() async throws {
        let earlier = try await PostgreSQLServer.shared().makeDatabase()
        let (source, target) = (try open(.dataFolder), try open(.postgreSQL(try PostgreSQLAddress(earlier))))
        let unfinished = StoreTransfer(from: InterruptedStore(source, reads: .max, fails: true), to: target, named: "there")
        await #expect(throws: StoreError.self) { try await unfinished.run() }
        try target.close()
        try source.close()
        #expect(try await migrate(to: database).status == 0)
        let again = try await migrate(to: earlier)
        #expect(again.status == 65)
        #expect(again.failure?.hasPrefix("this store was moved to") == true, "\(again.errors)")
        let left = try open(.postgreSQL(try PostgreSQLAddress(earlier)))
        #expect(try left.read(StoreTransfer.obstacle())?.hasPrefix("a move into this store was interrupted") == true)
        try left.close()
    }

    /// Killed before the last step: both are marked, and the same move ends it.
    @Test func theLastStepIsRepeated() async throws {
        let (source, target) = (try open(.dataFolder), try open(try postgreSQL))
        // The mark, the caches, a page of each table, the properties: the next change fails.
        let count = try contents(source).keys.count { $0 != "property" } + 2 + source.tables.count(where: \.isCache)
        let unfinished = StoreTransfer(from: source, to: InterruptedStore(target, changes: count), named: "there")
        await #expect(throws: StoreError.self) { try await unfinished.run() }
        #expect(try source.read(StoreTransfer.obstacle())?.hasPrefix("this store was moved to there") == true)
        #expect(try target.read(StoreTransfer.obstacle())?.hasPrefix("a move into this store was interrupted") == true)
        try target.close()
        try source.close()
        let moved = try await migrate(to: database)
        #expect(moved.status == 0, "\(moved.errors)")
        let (left, found) = (try open(.dataFolder), try open(try postgreSQL))
        #expect(try left.read(StoreTransfer.obstacle())?.hasPrefix("this store was moved to") == true)
        #expect(try found.read(StoreTransfer.obstacle()) == nil)
        try found.close()
        try left.close()
    }

    /// Between an interrupted move and its repetition the node ran: its changes are moved too.
    @Test func changesInBetweenAreMoved() async throws {
        let (source, target) = (try open(.dataFolder), try open(try postgreSQL))
        // All rows are there, but not the end.
        let unfinished = StoreTransfer(from: InterruptedStore(source, reads: .max, fails: true), to: target, named: "there")
        await #expect(throws: StoreError.self) { try await unfinished.run() }
        try target.close()
        try await source.commit(Registrations.unregister(fixture.bob.key, version: 9, at: .now()))
        let expected = try contents(source)
        try source.close()
        let moved = try await migrate(to: database)
        #expect(moved.status == 0, "\(moved.errors)")
        let found = try open(try postgreSQL)
        #expect(try contents(found) == expected)
        try found.close()
    }

    @Test func refusals() async throws {
        #expect(try await run("admin", "migrate", "--to", database, "--data", fixture.data).status == 64)
        #expect(try await migrate(to: fixture.folder.path + "/other").failure?.hasPrefix("--to is a folder: give the") == true)
        #expect(try await migrate(to: database, from: database).failure?.hasPrefix("both stores are PostgreSQL") == true)
        let missing = try await run([
            "admin", "migrate", "--identity", fixture.server.path, "--to", database, "--data", fixture.folder.path + "/missing",
        ])
        #expect(missing.status == 65)
        // A store with rows of its own stays as it is.
        let other = try await AdminFixture(store: database)
        let stranger = try await migrate(to: database)
        #expect(stranger.status == 65)
        #expect(stranger.failure?.contains("another identity") == true, "\(stranger.errors)")
        let full = try await run("admin", "migrate", "--identity", other.server.path, "--store", database, "--to", fixture.data)
        #expect(full.status == 65)
        #expect(full.failure?.contains("another identity") == true, "\(full.errors)")
        let second = try await PostgreSQLServer.shared().makeDatabase()
        let own = try open(.postgreSQL(try PostgreSQLAddress(second)))
        try await own.commit(Registrations.unregister(fixture.bob.key, version: 1, at: .now()))
        try own.close()
        let used = try await migrate(to: second)
        #expect(used.status == 65)
        #expect(used.failure?.contains("has rows already") == true, "\(used.errors)")
        // The source is as it was.
        #expect(try await fixture.admin("registrations", "list").rows.count == 5)
        #expect(try await fixture.admin("check", identified: true).status == 0)
    }
}

/// A store that fails after a number of reads or changes, or does not return its ids.
private final class InterruptedStore: TransferableStore {
    private let store: any TransferableStore
    private let left: Counter
    private let changesLeft: Counter
    private let fails: Bool

    private final class Counter: @unchecked Sendable {
        var count: Int
        init(_ count: Int) { self.count = count }
    }

    init(_ store: any TransferableStore, reads: Int = .max, changes: Int = .max, fails: Bool = false) {
        (self.store, left, changesLeft, self.fails) = (store, Counter(reads), Counter(changes), fails)
    }

    private static let interruption = StoreError(code: .unavailable, message: "interrupted")

    var sealer: Sealer { store.sealer }
    var tables: [Table] { store.tables }
    func requireNothingAdded() throws(StoreError) { try store.requireNothingAdded() }
    var failure: String? { store.failure }
    var byteCount: Int { store.byteCount }

    func lastIDs() throws(StoreError) -> [String: Int64] {
        if fails { throw Self.interruption }
        return try store.lastIDs()
    }

    func continueIDs(after last: [String: Int64]) throws(StoreError) { try store.continueIDs(after: last) }

    func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        changesLeft.count -= 1
        guard changesLeft.count >= 0 else { return completion(commands.map { _ in .failure(Self.interruption) }) }
        store.submit(commands, completion: completion)
    }

    func afterCommits(_ body: @escaping @Sendable () -> Void) { store.afterCommits(body) }

    func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
        left.count -= 1
        guard left.count >= 0 else { throw Self.interruption }
        return try store.readEach(commands)
    }

    func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) { try store.scan(read, visit) }
    func onReader(_ body: @escaping @Sendable () -> Void) { store.onReader(body) }
    func maintain() async { await store.maintain() }
    func recheck() async { await store.recheck() }
    func close() throws { try store.close() }
}
