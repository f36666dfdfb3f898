import NodeAssembly
import Storage
import StorePostgreSQL
import TestSupport
import Testing

@testable import PushBench

/// Measurements in a real PostgreSQL server.
@Suite(.timeLimit(.minutes(5)))
struct PostgreSQLBenchTests {
    private let server: PostgreSQLServer
    private let database: String
    private let folder: TemporaryFolder

    init() async throws {
        server = try PostgreSQLServer.shared()
        database = try await server.makeDatabase()
        folder = try TemporaryFolder()
    }

    private func settings(_ database: String? = nil) throws -> BenchSettings {
        var settings = BenchSettings(seconds: 0.01, folder: folder.path)
        settings.rounds = 1
        settings.storedCount = 200
        settings.store = .postgreSQL(try PostgreSQLAddress(database ?? self.database))
        return settings
    }

    private func query(_ sql: String) async throws -> String {
        let ended = try await ExternalTool.run("psql", ["-qXtA", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql])
        #expect(ended.status == 0, "\(ended.errors)")
        return ended.output.split(separator: "\n").joined(separator: "\n")
    }

    private func schemas() async throws -> String {
        try await query("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'waku\\_push\\_bench\\_%'")
    }

    /// All kinds are measured in SQLite.
    @Test(arguments: [.update, .query, .v01Request] as [MessageBench.Kind])
    func messagesAreAnsweredAndNoSchemaIsLeft(kind: MessageBench.Kind) async throws {
        // Existing data is not used, and is kept.
        _ = try await query("CREATE TABLE registration (id integer); INSERT INTO registration VALUES (7)")
        let results = try await MessageBench(kind: kind, settings: settings()).run()
        let result = try #require(results.first)
        #expect(result.name == "\(kind.rawValue), PostgreSQL")
        #expect(result.messages ?? 0 >= 64 && result.unanswered == 0)
        let select = try #require(result.floor.first { $0.name == "PostgreSQL select, 100 a transaction" })
        #expect(select.microseconds > 0 && select.count > 0)
        #expect(!result.floor.contains { $0.name.contains("SQLite") })
        // The server's process is on this machine.
        let server = try #require(result.floorServerMicroseconds)
        #expect(server > 0 && server < result.floorMicroseconds ?? 0)
        #expect(try await schemas() == "0")
        #expect(
            try await query("SELECT string_agg(tablename, ',') FROM pg_tables WHERE schemaname = 'public'") == "registration")
        #expect(try await query("SELECT id FROM registration") == "7")
    }

    @Test func severalNodesAreMeasuredTogether() async throws {
        let results = try await NodesBench(settings: settings(), rate: 200).run()
        #expect(
            results.map(\.name).prefix(3) == [
                "registration update, nodes: 1", "registration update, nodes: 2", "registration update, nodes: 3",
            ])
        #expect(results.count == 9)
        for result in results {
            #expect(result.messages == 200 && result.unanswered == 0)
            #expect(result.cpuMicroseconds ?? 0 > 0 && result.details["serverMicroseconds"] ?? 0 > 0)
        }
        #expect(results.filter { $0.details["nodes"] == 1 }.allSatisfy { $0.details["cpuRatioToOneNode"] == 1 })
        #expect(try await schemas() == "0")
    }

    @Test func cancelledMeasurementLeavesNoSchema() async throws {
        var settings = try settings()
        settings.seconds = 5
        let running = Task { [settings] in try await MessageBench(kind: .registration, settings: settings).run() }
        // One for the floor, one for the node.
        try await eventually { try await schemas() == "2" }
        running.cancel()
        await #expect(throws: (any Error).self) { try await running.value }
        #expect(try await schemas() == "0")
    }

    @Test func roleThatMayNotCreateSchemasIsRefused() async throws {
        let role = "r" + database.filter(\.isHexDigit).suffix(24)
        try await server.run("CREATE ROLE \(role) LOGIN")
        let settings = try settings(database.replacing("user=postgres", with: "user=\(role)"))
        let error = await #expect(throws: StoreError.self) { try await MessageBench(kind: .registration, settings: settings).run() }
        #expect(error?.code == .permission)
        #expect(error?.message.contains("may not create schemas") == true && error?.message.contains("\n") == false)
    }

    @Test func bareCallsChangeAndFindRows() async throws {
        let schema = try TemporarySchema(prefix: "waku_push_bench_", in: PostgreSQLAddress(database))
        let name = try #require(schema.address.schema)
        let bare = try BarePostgreSQL(schema.address, isReader: false)
        func counts() async throws -> String {
            try await query(
                "SELECT count(*), count(DISTINCT key_hash), min(length(key_hash)), max(length(sealed)), max(changed_at) "
                    + "FROM \(name).registration")
        }
        #expect(try await counts() == "10000|10000|64|600|1700000000000000000")
        try bare.upsert(rowCount: 1)
        try bare.upsert(rowCount: 1000)
        #expect(try await counts() == "11001|11001|64|600|1700000000000000000")
        let before = bare.serverTime()
        let reader = try BarePostgreSQL(schema.address, isReader: true)
        try reader.select(rowCount: 100)
        try bare.select(rowCount: 100)
        #expect(bare.serverTime() > before)
        _ = try await query("DROP TABLE \(name).registration")
        #expect(throws: BenchError.self) { try bare.select(rowCount: 1) }
        try schema.drop()
        #expect(try await schemas() == "0")
    }

    /// The process's CPU time does not contain the server's either.
    @Test func shareOfTheProcessIsWithoutTheServer() async throws {
        let store = StoreLocation.postgreSQL(try PostgreSQLAddress(database))
        let costs: [Primitive: FloorCost] = [
            .select: FloorCost(cpuMicroseconds: 30, serverMicroseconds: 20), .recover: FloorCost(cpuMicroseconds: 15),
        ]
        let floor = Floor(items: [Floor.Item(.select, times: 2, "rows"), Floor.Item(.recover, "signature")])
        var rounds = try await FloorRounds { floor.measurement(costs, store: store) }
        try await rounds.add(FullSpeed(rate: 1, cpuMicroseconds: 100, count: 1, unanswered: 0))
        var result = BenchResult(name: "query")
        result.add(rounds, store: store)
        #expect(result.floorMicroseconds == 75 && result.floorServerMicroseconds == 40)
        #expect(result.ratioToFloor == 0.35)
        #expect(result.floor.map(\.name) == ["PostgreSQL select, 100 a transaction", "recover"])
    }

    @Test func floorContainsTheServersTime() async throws {
        let schema = try TemporarySchema(prefix: "waku_push_bench_", in: PostgreSQLAddress(database))
        let meter = PrimitiveMeter(folder: folder.path, slice: .milliseconds(5), store: .postgreSQL(schema.address))
        try meter.prepare()
        let costs = try await meter.costs(of: [.select, .upsert1, .upsert100, .sha256], cores: 2)
        for primitive in [Primitive.select, .upsert1, .upsert100] {
            let cost = try #require(costs[primitive])
            #expect(cost.serverMicroseconds > 0 && cost.cpuMicroseconds > cost.serverMicroseconds)
        }
        #expect(costs[.sha256]?.serverMicroseconds == 0)
        try schema.drop()
    }
}
