import Foundation
import NodeAssembly
import StatusServer
import Storage
import StorePostgreSQL
import TestSupport
import Testing
import WakuCrypto

/// The store of a daemon with default options on its way to PostgreSQL and back.
@Suite(.timeLimit(.minutes(5)))
struct MovedStoreTests {
    private struct Report: Decodable {
        let rows, leftBehind: [String: Int]
    }

    /// Both directions, after the daemon was killed: keys of topics are derived without anything being asked for.
    @Test func thereAndBack() async throws {
        let node = try OperatedNode()
        let database = try await PostgreSQLServer.shared().makeDatabase()
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        #expect(try await node.query(daemon).status == 0)
        try await eventually { try keyCount(NodeAssembly.existingStore(in: node.data, of: nil)) > 0 }
        _ = await daemon.stop(SIGKILL)

        try await move(node, ["--data", node.data, "--to", database])
        let moved = try await node.start("--store", database)
        let address = try PostgreSQLAddress(database)
        // The folder still has the rows of before. Without --store, commands use the database of the daemon.
        let removed = try await node.admin("registrations", "remove", node.bob.publicKey, "--yes")
        #expect(removed.status == 0 && removed.errors == "", "\(removed.errors)")
        let removedStore = try PostgreSQLStore(existing: address, storageKey: nil, parts: NodeAssembly.parts)
        #expect(try removedStore.read(StatusServer.Registrations.statistics()).registrants == 0)
        try removedStore.close()
        #expect(try await node.admin("backup", node.data + "/backup").status == 64)
        #expect(try await node.register(moved, version: 2).status == 0)
        #expect(try await node.query(moved).status == 0)
        try await eventually { try keyCount(PostgreSQLStore(existing: address, storageKey: nil, parts: NodeAssembly.parts)) > 0 }
        _ = await moved.stop(SIGKILL)
        let former = try await node.admin("check", identified: true)
        #expect(former.status == 0 && former.errors.contains("warning: this store was moved to "), "\(former.errors)")

        try await move(node, ["--store", database, "--to", node.data])
        let back = try await node.start()
        #expect(try await node.query(back).status == 0)
        #expect(await back.stop().status == 0)
        let whole = try await node.admin("check", identified: true)
        #expect(whole.status == 0 && whole.errors == "", "\(whole.errors)")
    }

    private func keyCount(_ store: any TransferableStore) throws -> Int {
        defer { try? store.close() }
        let table = try #require(StatusStorage.part.tables.first { $0.name == "topic_key" })
        return try store.read(.find(Query(table, [.count])()) { .done(Int(try $0[0].integer(0))) })
    }

    private func move(_ node: OperatedNode, _ arguments: [String]) async throws {
        var ended = try await run(["admin", "migrate", "--identity", node.server.path, "--json"] + arguments)
        // The session of a killed daemon may still hold its lock.
        try await eventually {
            if ended.status == 69 { ended = try await run(["admin", "migrate", "--identity", node.server.path, "--json"] + arguments) }
            return ended.status != 69
        }
        try #require(ended.status == 0, "\(ended.errors)")
        let report = try ended.json(Report.self)
        #expect(report.rows["registration"] == 1)
        #expect(try #require(report.leftBehind["topic_key"]) > 0)
    }
}
