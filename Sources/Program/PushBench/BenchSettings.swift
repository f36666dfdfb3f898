import Foundation
import NodeAssembly
import StorePostgreSQL

/// Settings of all benchmarks.
struct BenchSettings: Sendable {
    /// Approximate duration of each measurement in each round.
    var seconds: Double
    /// Number of rounds, of which medians are taken.
    var rounds = 3
    var cores = ProcessInfo.processInfo.activeProcessorCount
    /// Number of messages that the relay delivers at once.
    var batch = 200
    /// The number of registrations that are stored before messages are measured.
    var storedCount = 2_000
    /// The least number of messages of which latencies are measured.
    var latencyCount = 32
    /// Whether gorush runs in a process of its own, for ``MessageBench``.
    var startsGorush = false
    /// Where temporary data folders are created.
    var folder: String
    /// The node's store, for ``MessageBench``. In PostgreSQL each measurement has a schema of its own.
    var store = StoreLocation.dataFolder
    /// Whether nodes trace messages as `serve --otlp` does, for ``MessageBench``. The traces are not exported.
    var isTraced = false
    var gorushLatency = Duration.milliseconds(1)
    /// Called with the current step and the completed part of it, 0 to 1.
    var progress: @Sendable (String, Double) -> Void = { _, _ in }

    /// Duration of the measurement of each primitive of a floor.
    var slice: Duration { .seconds(min(max(seconds / 25, 0.002), 0.05)) }

    /// Runs `body` with a temporary folder.
    func withFolder<R>(_ body: (String) async throws -> R) async throws -> R {
        let path = folder + "/waku-push-bench-" + UUID().uuidString
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        } catch {
            throw BenchError(code: .disk, message: "no folder can be made in \(folder): is it there? Choose another with --data")
        }
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }

    /// Makes a data folder in a temporary folder.
    static func makeDataFolder(in folder: String) throws(BenchError) -> String {
        guard mkdir(folder + "/data", 0o755) == 0 else { throw .disk }
        return folder + "/data"
    }

    /// Runs `body` with a temporary folder and a store location: in the folder, or in a temporary schema of the PostgreSQL database.
    func withStore<R>(_ body: (_ folder: String, _ store: StoreLocation) async throws -> R) async throws -> R {
        try await withFolder { folder in
            guard case .postgreSQL(let address) = store else { return try await body(folder, .dataFolder) }
            let schema = try await onThread { try TemporarySchema(prefix: "waku_push_bench_", in: address) }
            let result: R
            do {
                result = try await body(folder, .postgreSQL(schema.address))
            } catch {
                // If the server is unavailable, the schema can't be dropped either: keep the first error, which is more useful.
                try? await onThread { try schema.drop() }
                throw error
            }
            try await onThread { try schema.drop() }
            return result
        }
    }
}

extension StoreLocation {
    /// The engine's name in floors and results.
    var engineName: String {
        switch self {
        case .dataFolder: "SQLite"
        case .postgreSQL: "PostgreSQL"
        }
    }

    /// The suffix of a result's name; empty for the default engine.
    var resultSuffix: String { self == .dataFolder ? "" : ", \(engineName)" }
}
