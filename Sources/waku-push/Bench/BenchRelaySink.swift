import ArgumentParser
import PushBench

/// The second process of `bench relay`.
struct BenchRelaySink: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "bench-relay-sink", shouldDisplay: false)

    func run() async throws {
        try await reportingFailures { try await RelayBenchSink().run() }
    }
}
