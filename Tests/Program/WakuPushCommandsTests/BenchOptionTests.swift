import ArgumentParser
import TestSupport
import Testing

@testable import WakuPushCommands

/// Options of `bench` that are refused before anything is measured.
struct BenchOptionTests {
    private static let store = "postgresql://push@db.example/push"

    @Test(arguments: [[], ["primitives"], ["registration", "startup"], ["session"], ["v0.1", "first-query"]])
    func storeIsRefusedForOtherParts(parts: [String]) async throws {
        let ended = try await run(["bench"] + parts + ["--store", Self.store])
        #expect(ended.status == 64)
        #expect(
            ended.errors.contains("--store is only for registration, query, request, v0.1, nodes: name those to measure"), "\(ended.errors)"
        )
        #expect(ended.output == "")
    }

    @Test(arguments: ["postgresql://push:secret@db.example/push", "host=db.example password=secret"])
    func passwordIsRefused(store: String) async throws {
        let ended = try await run("bench", "registration", "--store", store)
        #expect(ended.status == 64)
        #expect(ended.failure?.contains("has a password") == true, "\(ended.errors)")
        #expect(!ended.errors.contains("secret"))
    }

    @Test func malformedAddressIsRefused() async throws {
        let ended = try await run("bench", "query", "--store", "postgres:/push")
        #expect(ended.status == 64)
        #expect(ended.failure?.contains("not a connection string") == true, "\(ended.errors)")
    }

    @Test func nodesNeedADatabase() async throws {
        let ended = try await run("bench", "nodes")
        #expect(ended.status == 64)
        #expect(ended.errors.contains("nodes needs a PostgreSQL database"), "\(ended.errors)")
    }

    @Test func storeIsAcceptedForMessages() throws {
        let bench = try Bench.parse(["registration", "query", "request", "v0.1", "--store", Self.store])
        #expect(bench.parts == [.registration, .query, .request, .v01] && bench.store == Self.store)
        #expect(try Bench.parse([]).store == nil)
    }
}
