import ArgumentParser
import TestSupport
import Testing

@testable import PushBench
@testable import WakuPushCommands

/// Options that are refused before anything is measured.
struct BenchOptionTests {
    private static let store = "postgresql://push@db.example/push"

    @Test(arguments: [[], ["primitives"], ["registration", "startup"], ["session"], ["v0.1", "first-query"]])
    func storeIsRefusedForOtherParts(parts: [String]) async throws {
        let ended = try await run(parts + ["--store", Self.store])
        #expect(ended.status == 64)
        #expect(
            ended.errors.contains("--store is only for registration, query, request, v0.1, nodes: name those to measure"), "\(ended.errors)"
        )
        #expect(ended.output == "")
    }

    @Test(arguments: ["postgresql://push:secret@db.example/push", "host=db.example password=secret"])
    func passwordIsRefused(store: String) async throws {
        let ended = try await run(["registration", "--store", store])
        #expect(ended.status == 64)
        #expect(ended.errors.contains("has a password"), "\(ended.errors)")
        #expect(!ended.errors.contains("secret"))
    }

    @Test func malformedAddressIsRefused() async throws {
        let ended = try await run(["query", "--store", "postgres:/push"])
        #expect(ended.status == 64)
        #expect(ended.errors.contains("not a connection string"), "\(ended.errors)")
    }

    @Test func nodesNeedADatabase() async throws {
        let ended = try await run(["nodes"])
        #expect(ended.status == 64)
        #expect(ended.errors.contains("nodes needs a PostgreSQL database"), "\(ended.errors)")
    }

    @Test func storeIsAcceptedForMessages() throws {
        let bench = try Bench.parse(["registration", "query", "request", "v0.1", "--store", Self.store])
        #expect(bench.parts == [.registration, .query, .request, .v01] && bench.store == Self.store)
        #expect(try Bench.parse([]).store == nil)
    }

    @Test(arguments: [
        ["no-such-part"], ["--seconds", "0"], ["--seconds", "nan"], ["--rounds", "0"], ["--batch", "0"], ["--registrations", "0"],
        ["--rate", "-1"], ["--duration", "5"], ["run", "--rate", "0"], ["session-demo", "unexpected"],
    ])
    func wrongUsage(arguments: [String]) async throws {
        let ended = try await run(arguments)
        #expect(ended.status == 64)
        #expect(ended.errors.hasPrefix("waku-push-bench: ") && ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
        #expect(ended.output == "")
    }

    @Test(arguments: [[], ["run"], ["session-demo"]]) func help(command: [String]) async throws {
        let help = try await run(command + ["--help"])
        #expect(help.status == 0 && help.errors == "")
        #expect(help.output.contains("USAGE: " + (["waku-push-bench"] + command).joined(separator: " ")), "\(help.output)")
    }

    /// Runs the program in this process.
    private func run(_ arguments: [String]) async throws -> Ended {
        let (output, errors) = (TextSink(), TextSink())
        let invocation = Invocation(
            arguments: ["waku-push-bench"] + arguments, environment: [:], columns: 80, writeOutput: output.append, writeError: errors.append
        )
        let status = await Invocation.$current.withValue(invocation) { await BenchProgram.run() }
        return Ended(status: status, output: output.text, errors: errors.text)
    }
}
