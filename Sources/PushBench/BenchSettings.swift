import Foundation

/// How long and how hard to measure.
public struct BenchSettings: Sendable {
    /// For each measurement of each round, about.
    public var seconds: Double
    /// Middles are taken of so many.
    public var rounds = 3
    public var cores = ProcessInfo.processInfo.activeProcessorCount
    /// Messages that the relay hands over at once.
    public var batch = 200
    /// Where data folders are made, each for as long as it is needed.
    public var folder: String
    public var gorushLatency = Duration.milliseconds(1)
    /// Told what is being done, and which part of it is done.
    public var progress: @Sendable (String, Double) -> Void = { _, _ in }

    public init(seconds: Double, folder: String) {
        self.seconds = seconds
        self.folder = folder
    }

    /// For each primitive of a floor.
    var slice: Duration { .seconds(min(max(seconds / 25, 0.002), 0.05)) }

    /// A folder that is gone when `body` ends.
    func withFolder<R>(_ body: (String) async throws -> R) async throws -> R {
        let path = folder + "/waku-push-bench-" + UUID().uuidString
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        } catch {
            throw BenchError(code: .disk, message: "no folder can be made in \(folder): is it there? Choose another by --data")
        }
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }
}
