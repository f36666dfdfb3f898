import Foundation
import TestSupport
import Testing

/// Tests that all benchmarks run and print results, not how fast.
@Suite(.timeLimit(.minutes(5)))
struct BenchTests {
    private static let tiny = [
        "--seconds", "0.02", "--rounds", "1", "--rate", "20", "--poll-interval", "20ms", "--stored", "300", "--latencies", "32", "--json",
    ]

    /// The short form leaves out what takes long to set up.
    @Test("Every benchmark in its shortest form: all messages are answered, all figures printed, nothing left on disk")
    func everything() async throws {
        let folder = try TemporaryFolder()
        let messages = ["registration new", "registration update", "registration stale", "query", "request"]
        let parts = LongTests.areEnabled ? [] : ["registration", "query", "request"]
        let ended = try await run(
            parts + ["--registrations", "300", "--duration", "1s", "--data", folder.path] + Self.tiny)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.errors == "")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
        let results = try Self.results(ended)
        #expect(
            results.compactMap { $0["name"] as? String }.filter { !$0.contains(",") && !$0.hasPrefix("S") }
                == (LongTests.areEnabled
                    ? ["recover", "verify", "key generation"] + messages + ["foreign message", "start with 300 registrations"] : messages))
        for result in results {
            let name = result["name"] as? String ?? ""
            for key in ["rate", "cpuMicroseconds", "floorMicroseconds", "ratioToFloor"] {
                #expect(result[key] is Double || result[key] is NSNull, "\(name) \(key)")
            }
            guard let messages = result["messages"] as? Int else { continue }
            #expect(messages > 0, "\(name)")
            #expect((result["unanswered"] as? Int ?? 0) == 0, "\(name)")
        }
        for name in messages {
            let result = try #require(results.first { $0["name"] as? String == name })
            let positive = [
                "rate", "cpuMicroseconds", "floorMicroseconds", "limitMicroseconds", "ratioToFloor", "p50Microseconds", "p99Microseconds",
                "p999Microseconds", "latencyRate",
            ]
            for key in positive { #expect(result[key] as? Double ?? 0 > 0, "\(name) \(key)") }
            #expect((result["floor"] as? [Any])?.isEmpty == false)
        }
        guard LongTests.areEnabled else { return }
        for attachment in ["libp2p", "REST"] {
            let toGorush = try #require(results.first { $0["name"] as? String == "relay to gorush, \(attachment)" })
            #expect(toGorush["messages"] as? Int == 20)
        }
        // The standard limits keep a flood from the others: `unanswered` is 0 above.
        for name in ["request, nobody floods", "request, one key floods"] {
            let flood = try #require(results.first { $0["name"] as? String == name })
            #expect(flood["messages"] as? Int == 32 && flood["p99Microseconds"] as? Double ?? 0 > 0)
        }
        let start = try #require(results.first { $0["name"] as? String == "start with 300 registrations" })
        for key in ["readyMilliseconds", "firstAnswerMilliseconds", "residentBytes", "bytesPerRegistrationBeyondItsOwn"] {
            #expect(start[key] as? Double ?? 0 > 0, "\(key)")
        }
    }

    @Test("The price of each kind of work is printed beside the table in code")
    func costs() async throws {
        let folder = try TemporaryFolder()
        let ended = try await run(["costs", "--data", folder.path] + Self.tiny)
        #expect(ended.status == 0, "\(ended.errors)")
        let results = try Self.results(ended)
        let names = results.compactMap { $0["name"] as? String }
        #expect(
            names.starts(with: [
                "cost: open_message", "cost: open_message + registration", "cost: open_message + query + answer",
                "cost: open_message + request + notification",
                "cost: derive_topic_key",
            ]), "\(names)")
        for result in results { #expect(result["cpuMicrosecondsInTable"] as? Double ?? 0 > 0) }
        for name in ["cost: open_message + registration", "cost: open_message + request + notification"] {
            let result = try #require(results.first { $0["name"] as? String == name })
            #expect(result["storedBytes"] as? Double ?? 0 > 100)
        }
    }

    @Test("The output is a table")
    func table() async throws {
        let ended = try await run(["foreign", "--seconds", "0.02", "--rounds", "1"])
        #expect(ended.status == 0)
        #expect(ended.errors == "")
        #expect(ended.rows.contains { $0.first == "foreign message" })
        #expect(!ended.output.contains("\u{1B}"))
    }

    @Test("A missing folder is reported in one line")
    func noFolder() async throws {
        let ended = try await run(["foreign", "--data", "/no/such/folder"])
        #expect(ended.status == 73)
        #expect(ended.errors.contains("--data"))
    }

    @Test("An interrupted benchmark leaves nothing behind")
    func interrupted() async throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            ["end-to-end", "--duration", "1h", "--data", folder.path], program: ChildProcess.built("waku-push-bench"))
        try await eventually { try !FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty || !child.isRunning }
        child.send(SIGINT)
        #expect(await child.status == 130)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    }

    @Test("On PostgreSQL all messages are answered, and an interruption leaves no schema behind")
    func postgreSQL() async throws {
        let store = try await PostgreSQLServer.shared().makeDatabase()
        let ended = try await run(["query", "v0.1", "--store", store] + Self.tiny)
        #expect(ended.status == 0, "\(ended.errors)")
        let names = ["query", "query, first on its topic", "v0.1 register", "v0.1 query", "v0.1 request"]
        #expect(try Self.results(ended).compactMap { $0["name"] as? String } == names.map { $0 + ", PostgreSQL" })
        for result in try Self.results(ended) { #expect(result["floorServerMicroseconds"] as? Double ?? 0 > 0) }

        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            ["registration", "--rounds", "100", "--seconds", "2", "--data", folder.path, "--store", store],
            program: ChildProcess.built("waku-push-bench"))
        // One for the floor, one for the node.
        try await eventually { try await Self.schemaCount(store) == "2" || !child.isRunning }
        child.send(SIGINT)
        #expect(await child.status == 130)
        #expect(try await Self.schemaCount(store) == "0")
    }

    private func run(_ arguments: [String]) async throws -> Ended {
        try await CommandLineTests.run(arguments, program: ChildProcess.built("waku-push-bench"))
    }

    /// Its output is that of `waku-push-bench`, so that scripts can read it.
    @Test func benchOfTheDaemonHandsOver() async throws {
        let folder = try ChildProcess.built("waku-push-bench").deletingLastPathComponent().path
        let ended = try await CommandLineTests.run(
            ["bench", "foreign", "--seconds", "0.02", "--rounds", "1", "--json"], environment: ["PATH": "/usr/bin:" + folder])
        #expect(ended.status == 0)
        #expect(ended.errors.hasPrefix("waku-push: running /") && ended.errors.hasSuffix("/waku-push-bench\n"), "\(ended.errors)")
        #expect(try Self.results(ended).first?["name"] as? String == "foreign message")
    }

    private static func schemaCount(_ database: String) async throws -> String {
        let sql = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'waku%'"
        let ended = try await ExternalTool.run("psql", ["-qXtA", "-d", database, "-c", sql])
        return ended.output.filter(\.isNumber)
    }

    private static func results(_ ended: Ended) throws -> [[String: Any]] {
        let report = try #require(try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any])
        #expect((report["machine"] as? [String: Any])?["cores"] as? Int ?? 0 > 0)
        return try #require(report["results"] as? [[String: Any]])
    }
}
