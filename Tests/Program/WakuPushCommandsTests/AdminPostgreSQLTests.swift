import Cluster
import Foundation
import Core
import NodeAssembly
import StatusProtocol
import Storage
import StorePostgreSQL
import TestSupport
import Testing
import WakuCrypto

/// Commands on a node whose store is PostgreSQL.
@Suite(.timeLimit(.minutes(5)))
struct AdminPostgreSQLTests {
    private struct Inspection: Decodable {
        struct Rows: Decodable, Equatable {
            let count, unreadable: Int
        }
        let problems: [String]
        let registrations, notifications: Rows?
    }

    private func fixture() async throws -> (AdminFixture, address: String) {
        let address = try await PostgreSQLServer.shared().makeDatabase()
        return (try await AdminFixture(store: address), address)
    }

    @Test func registrationsAndOutboxAreListed() async throws {
        let (fixture, _) = try await fixture()
        let status = try await fixture.admin("status")
        #expect(status.status == 69)
        #expect(status.field("registrants") == "2" && status.field("notifications waiting") == "1")
        #expect(try await fixture.admin("registrations", "list").rows.count == 5)
        let found = try await fixture.admin("registrations", "show", fixture.bob.keyHash.hex, identified: true)
        #expect(found.status == 0, "\(found.errors)")
        #expect(try await fixture.admin("outbox", "list").rows.count == 2)
        #expect(try await fixture.admin("outbox", "drop", "--all", "--yes").status == 0)
        #expect(try await fixture.admin("outbox", "list").rows.count == 1)
        // Nothing was kept in the data folder.
        #expect(!FileManager.default.fileExists(atPath: fixture.data + "/waku-push.sqlite"))
    }

    /// They hold waiting notifications in memory.
    @Test(arguments: [PostgreSQLStore.Access.shared, .exclusive])
    func nothingIsDroppedWhileNodesOfOtherFoldersRun(access: PostgreSQLStore.Access) async throws {
        let (fixture, address) = try await fixture()
        let node = try PostgreSQLStore(
            PostgreSQLAddress(address), storageKey: Sealer.storageKey(of: fixture.server.key), parts: NodeAssembly.parts, access: access)
        let refused = try await fixture.admin("outbox", "drop", "--all", "--yes")
        #expect(refused.status == 69 && refused.failure?.contains("run the command with their data folders") == true, "\(refused.errors)")
        #expect(try await fixture.admin("outbox", "list").rows.count == 2)
        try node.close()
        #expect(try await fixture.admin("outbox", "drop", "--all", "--yes").output.hasPrefix("1 notifications dropped"))
    }

    @Test func registrationsAreExportedAndImported() async throws {
        let (fixture, _) = try await fixture()
        let file = fixture.folder.path + "/registrations"
        let exported = try await fixture.admin("registrations", "export", file, identified: true)
        #expect(exported.status == 0, "\(exported.errors)")
        let other = try await PostgreSQLServer.shared().makeDatabase()
        let imported = try await run([
            "admin", "registrations", "import", file, "--data", fixture.folder.path + "/other", "--store", other, "--identity",
            fixture.server.path,
        ])
        #expect(imported.status == 0, "\(imported.errors)")
        let listed = try await run("admin", "registrations", "list", "--data", fixture.folder.path + "/other", "--store", other)
        #expect(listed.rows.count == 5)
    }

    @Test func checkAndRotation() async throws {
        let (fixture, _) = try await fixture()
        for _ in 0..<2 {
            let checked = try await fixture.admin("check", "--json", identified: true)
            #expect(checked.status == 0, "\(checked.errors)")
            let inspection = try checked.json(Inspection.self)
            #expect(inspection.problems.isEmpty)
            #expect(inspection.registrations == Inspection.Rows(count: 3, unreadable: 0))
            #expect(inspection.notifications == Inspection.Rows(count: 1, unreadable: 0))
            let rotated = try await fixture.admin("rotate-storage-key", identified: true)
            #expect(rotated.status == 0, "\(rotated.errors)")
            #expect(rotated.output.hasPrefix("4 rows are encrypted with a new storage key."))
        }
        #expect(try await fixture.admin("check").field("sealed rows")?.contains("--identity") == true)
        let other = try KeyFile(in: fixture.folder, "other.key")
        let wrong = try await fixture.admin("check", "--identity", other.path)
        #expect(wrong.status == 65)
        #expect(wrong.failure?.contains("another identity") == true)
    }

    @Test func backupAndRestoreNamePostgreSQLsOwnTools() async throws {
        let (fixture, _) = try await fixture()
        let file = fixture.folder.path + "/backup"
        let backup = try await fixture.admin("backup", file)
        #expect(backup.status == 64)
        #expect(backup.failure?.contains("pg_dump") == true)
        let restore = try await fixture.admin("restore", file, identified: true)
        #expect(restore.status == 64)
        #expect(restore.failure?.contains("pg_restore") == true)
    }

    @Test func doctorLooksAtTheDatabase() async throws {
        let (fixture, address) = try await fixture()
        func database(_ store: String) async throws -> Substring? {
            let ended = try await run(["doctor", "--data", fixture.data, "--identity", fixture.server.path, "--store", store])
            return ended.output.split(separator: "\n").first { $0.hasPrefix("database ") }
        }
        #expect(try await database(address)?.contains("intact, all rows decrypted, 3 installations") == true)
        let weak = try await database(address + " options=-csynchronous_commit=off")
        #expect(weak?.contains("fail") == true && weak?.contains("synchronous_commit") == true)
        let server = try PostgreSQLServer.shared()
        let empty = try await server.makeDatabase()
        #expect(try await database(empty)?.contains("none yet") == true)
        let role = "guest\(UInt32.random(in: 0...UInt32.max))"
        try await server.run("CREATE ROLE \(role) LOGIN")
        let forbidden = try await database(empty.replacingOccurrences(of: "user=postgres", with: "user=\(role)"))
        #expect(forbidden?.contains("fail") == true && forbidden?.contains("may not use or create tables") == true)
        #expect(try await database(empty)?.contains("none yet") == true)
    }

    /// Each attempt to connect takes its time limit.
    @Test func doctorConnectsOnceToADatabaseThatDoesNotAnswer() async throws {
        let fixture = try await AdminFixture()
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        defer { close(listener) }
        let port = try LoopbackAddress.bindFreePort(listener)
        try #require(listen(listener, 16) == 0)
        let ended = try await run(
            "doctor", "--data", fixture.data, "--identity", fixture.server.path, "--store",
            "host=127.0.0.1 port=\(port) dbname=push connect_timeout=1")
        let database = ended.output.split(separator: "\n").first { $0.hasPrefix("database ") }
        #expect(database?.contains("fail") == true, "\(ended.output)")
        var connections = 0
        while case let connection = accept(listener, nil, nil), connection >= 0 {
            connections += 1
            close(connection)
        }
        #expect(connections == 1)
    }

    @Test(
        "Addresses that can't be used",
        arguments: [
            ("postgresql://push:hunter2@db.example/push", 64, "passfile="), ("hunter2", 64, "not a connection string"),
            ("host=/nonexistent sslmode=verify_full", 64, "invalid sslmode value"), ("service=no-such", 64, "PGSERVICEFILE"),
            ("host=/nonexistent dbname=push", 69, "can't be reached"),
        ] as [(String, Int32, String)])
    func refusals(store: String, status: Int32, message: String) async throws {
        let folder = try TemporaryFolder()
        for arguments in [["admin", "registrations", "list"], ["admin", "check"]] {
            let ended = try await run(arguments + ["--data", folder.path, "--store", store])
            #expect(ended.status == status)
            #expect(ended.failure?.contains(message) == true, "\(ended.errors)")
            #expect(!ended.errors.contains("hunter2"))
        }
        let fromEnvironment = try await run(
            ["admin", "registrations", "list", "--data", folder.path], environment: ["WAKU_PUSH_STORE": store])
        #expect(fromEnvironment.status == status)
    }

    @Test func theConfigurationFileNamesTheStore() async throws {
        let (fixture, address) = try await fixture()
        let file = fixture.folder.path + "/waku-push.yaml"
        try Data("store: \"\(address)\"\ndata: \(fixture.data)\n".utf8).write(to: URL(fileURLWithPath: file))
        #expect(try await run("admin", "registrations", "list", "--config", file).rows.count == 5)
        #expect(try await run("config", "show", "--config", file).field("store")?.hasPrefix(address) == true)
    }

    @Test func aPasswordIsNotShown() async throws {
        let shown = try await run("config", "show", "--store", "postgresql://push:hunter2@db.example/push")
        #expect(shown.field("store")?.hasPrefix("… ") == true)
        #expect(!shown.output.contains("hunter2"))
    }

    @Test func nodesAreListed() async throws {
        struct Overview: Decodable {
            struct Node: Decodable {
                let name, state: String
                let partitions: Int
                let doesMaintenance: Bool
            }
            let nodes: [Node]
            let partitionsWithoutOwner: Int
        }
        let (fixture, address) = try await fixture()
        // Nobody shares it yet.
        let none = try await fixture.admin("nodes")
        #expect(none.status == 65 && none.errors.contains("--cluster"), "\(none.errors)")
        var member = ClusterMember(
            NodeID(rawValue: 1), name: "node-1", configuration: ClusterConfiguration(), at: .now)
        let database = ClusterDatabase(
            try PostgreSQLAddress(address), configuration: ClusterConfiguration(), outbox: ClusterNode.outbox, version: "1.2.3")
        defer { database.close() }
        try database.prepare(notices: [])
        let now = Instant.now
        for second in 0..<3 {
            let time = now + .seconds(second)
            if let heartbeat = member.heartbeat(at: time) {
                _ = member.heartbeatCommitted(try database.heartbeat(heartbeat), at: time)
            }
        }
        // Renewed for a day, so that a slow machine does not end the lease.
        let connection = try PostgreSQLConnection.open(PostgreSQLAddress(address), name: "test")
        _ = try connection.run(Statement("UPDATE cluster_node SET renewed_at = now() + interval '1 day'", isPrepared: false))
        let listed = try await fixture.admin("nodes")
        #expect(listed.status == 0, "\(listed.errors)")
        #expect(listed.output.contains("node-1") && listed.output.contains("1.2.3"), "\(listed.output)")
        let overview = try await fixture.admin("nodes", "--json").json(Overview.self)
        #expect(overview.nodes.map(\.name) == ["node-1"] && overview.nodes[0].state == "live")
        #expect(overview.nodes[0].partitions == 256 && overview.nodes[0].doesMaintenance && overview.partitionsWithoutOwner == 0)
        // It is killed, and no other node ends its lease.
        _ = try connection.run(Statement("UPDATE cluster_node SET renewed_at = now() - interval '90 seconds'", isPrepared: false))
        let killed = try await fixture.admin("nodes", "--json").json(Overview.self)
        #expect(killed.nodes[0].state == "not renewed" && killed.partitionsWithoutOwner == 256 && !killed.nodes[0].doesMaintenance)
        #expect(try await fixture.admin("nodes").output.contains("no node does maintenance"))
        let alone = try await run("admin", "nodes", "--data", fixture.data)
        #expect(alone.status == 64 && alone.errors.contains("--store"))
    }

    @Test(arguments: [
        (["--cluster", "a"], "--cluster needs a PostgreSQL database"),
        (["--cluster", "a b", "--store", "postgresql://push@127.0.0.1/push"], "--cluster must be a name"),
    ])
    func clusterOptions(arguments: [String], message: String) async throws {
        let (fixture, _) = try await fixture()
        let checked = try await run(["config", "check", "--identity", fixture.server.path] + arguments)
        #expect(checked.status == 64 && checked.errors.contains(message), "\(checked.errors)")
    }
}
