@testable import Cluster
import Foundation
import Storage
import StorePostgreSQL
import TestSupport
import WakuCrypto

/// A schema of its own with an outbox, in which the databases of nodes are opened.
struct ClusterFixture {
    static let device = Column("device", .integer)
    static let payload = Column("payload", .bytes)
    static let delivery = Column("delivery", .bytes, isOptional: true)
    static let markedAt = Column("marked_at", .integer, isOptional: true)
    static let outbox = Table("outbox", columns: [device, payload, delivery, markedAt], unique: [delivery])
    static let accepted = Table("accepted", columns: [delivery], unique: [delivery])
    static let shared = Outbox(table: outbox, accepted: accepted, device: device, delivery: delivery, markedAt: markedAt)
    static let insert = Storage.Mutation(outbox, .insert([device, payload]))
    static let mark = Storage.Mutation(MarkTable.table, .upsert([MarkTable.row, MarkTable.node, MarkTable.epoch]))

    let server: PostgreSQLServer
    let schema = "s" + UUID().uuidString.lowercased().filter { $0 != "-" }
    let store: PostgreSQLStore
    let configuration: ClusterConfiguration

    init(_ server: PostgreSQLServer? = nil, configuration: ClusterConfiguration = ClusterConfiguration()) throws {
        let server = try server ?? PostgreSQLServer.shared()
        self.server = server
        self.configuration = configuration
        let plain = try PostgreSQLConnection.open(PostgreSQLAddress(server.address), name: "test")
        _ = try plain.run(Statement("CREATE SCHEMA \(schema)", isPrepared: false))
        store = try PostgreSQLStore(
            PostgreSQLAddress(server.address + " options=-csearch_path=\(schema)"), storageKey: .random(),
            parts: [StorePart("deliveries", tables: [Self.outbox, Self.accepted])])
    }

    func address(host: String? = nil) throws -> PostgreSQLAddress {
        try PostgreSQLAddress("host=\(host ?? server.folder) dbname=postgres user=postgres options=-csearch_path=\(schema)")
    }

    func database(host: String? = nil, configuration: ClusterConfiguration? = nil) throws -> ClusterDatabase {
        try ClusterDatabase(
            address(host: host), configuration: configuration ?? self.configuration,
            outbox: Self.shared, version: "1.2")
    }

    /// With its tables.
    func prepared(host: String? = nil, notices: [Notice] = []) throws -> ClusterDatabase {
        let database = try database(host: host)
        try database.prepare(notices: notices)
        return database
    }

    /// Runs statements beside the nodes.
    @discardableResult
    func run(_ sql: String...) throws -> [Row] {
        let connection = try PostgreSQLConnection.open(address(), name: "test")
        return try connection.run(sql.map { Statement($0, isPrepared: false) }).last?.rows ?? []
    }

    /// A session that has read all tables of the schema in its transaction, as that of a `pg_dump` does.
    func dump() throws -> PostgreSQLConnection {
        let connection = try PostgreSQLConnection.open(address(), name: "pg_dump")
        let tables = try run("SELECT string_agg(tablename, ', ') FROM pg_tables WHERE schemaname = current_schema()").first?.text(0) ?? ""
        _ = try connection.run(["BEGIN", "LOCK TABLE \(tables) IN ACCESS SHARE MODE"].map { Statement($0, isPrepared: false) })
        return connection
    }

    func count(_ sql: String) throws -> Int64? {
        try run("SELECT count(*) FROM " + sql).first?.integer(0)
    }

    /// Returns the ids.
    @discardableResult
    func enqueue(_ devices: Int64...) async throws -> [Int64] {
        let changes = devices.map { Self.insert(.integer($0), .bytes([1, 2])) }
        return try await store.commit(StoreCommand<[Int64]>.apply(changes) { $0 })
    }
}
