import NodeAssembly
import ArgumentParser
import Foundation
import StorePostgreSQL
import UnixSignals
import WakuPushCommands

struct Bench: ReportingCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Measures the throughput and latency of a node on this machine, against the cost of the library calls alone.",
        discussion: """
            Keys and messages are generated first. Then a real node with a data folder is fed as fast as it accepts messages, then at a quarter and \
            at half of that rate, for the cost of a lighter load and for latencies. FLOOR is the CPU time of the library calls that such a message \
            needs, measured before and after each round on as many cores; LIMIT is the same with keys and rows of known clients in memory and one \
            appended row. RATIO is FLOOR divided by CPU, with its spread over the rounds: 1 is as fast as the libraries alone.

            EXAMPLES
              waku-push-bench
              waku-push-bench registration request --seconds 5
              waku-push-bench registration query --store postgresql://push@/push
              waku-push-bench nodes --store postgresql://push@/push --seconds 5
              waku-push-bench primitives --json
              waku-push-bench startup --registrations 1000000 --data /var/lib/waku-push
              waku-push-bench end-to-end --rate 100 --duration 1m --gorush-latency 1ms
              waku-push-bench shard --seconds 5 --rate 500
              waku-push-bench first-query --seconds 5
              waku-push-bench costs --seconds 3
              waku-push-bench session session-start session-renewals --seconds 5
              waku-push-bench web-push --seconds 5 --rate 1500 --duration 10m
              waku-push-bench session-demo

            EXIT CODES
              0   measured
              64  wrong usage
              65  messages went unanswered: the printed figures are invalid
              69  a port, a process or the store is unavailable
              73  the data folder can't be used
              77  the role may not create schemas in the store
              130 interrupted
            """)

    private static func names(_ parts: [BenchPart]) -> String { parts.map(\.rawValue).joined(separator: ", ") }

    @Argument(
        help: ArgumentHelp(
            "What to measure: \(Self.names(BenchPart.allCases)). [default: all but \(Self.names(BenchPart.allCases.filter(\.isLong)))]"))
    var parts: [BenchPart] = []

    @Option(help: "Approximate duration of each measurement in each round.")
    var seconds: Double = 0.5

    @Option(help: "Number of rounds; the median is reported.")
    var rounds: Int = 3

    @Option(help: "Where temporary data folders are created: on the disk that is to be measured.")
    var data: String = NSTemporaryDirectory()

    @Option(
        help:
            "Keep registrations and notifications in a PostgreSQL database instead, in temporary schemas: a connection string of libpq, without a password, such as postgresql://user@host/database?sslmode=verify-full. For \(Self.names(BenchPart.allCases.filter(\.canUseStore)))."
    )
    var store: String?

    @Option(
        help:
            "Number of registrations that are stored before registration, query and request are measured. Messages are about up to 100,000 of them, in random order; queries about 32."
    )
    var stored: Int = 20_000

    @Option(help: "Least number of messages of which latencies are measured, for registration, query, request and v0.1.")
    var latencies: Int = 20_000

    @Option(help: "Number of messages that the relay delivers at once.")
    var batch: Int = 200

    @Option(help: "Response time of gorush for a post.")
    var gorushLatency = DurationArgument("1ms")

    @Option(help: "Number of stored registrations for startup.")
    var registrations: Int = 100_000

    @Option(
        help:
            "Messages per second for end-to-end, flood, nodes, shard and the latencies of web-push. [default: 100, 100, 500, 100 to 1,000, and half of the maximum rate]"
    )
    var rate: Double?

    @Option(help: "Poll interval of the node attached over REST, for end-to-end.")
    var pollInterval = DurationArgument("300ms")

    @Option(help: "Duration of end-to-end, and of the latencies of web-push. [default: 5s, and --seconds]")
    var duration: DurationArgument?

    @Flag(help: "Trace the messages of registration, query and request, as waku-push serve --otlp does; nothing is exported.")
    var traces = false

    @Flag(help: "Print JSON.")
    var json = false

    /// Runs gorush for the benchmark of requests, as a second process of this program.
    @Flag(help: .hidden)
    var gorushSink = false

    /// Runs the second process of the shard benchmark, with this many peers.
    @Option(help: .hidden)
    var shardPeers: Int?

    /// Runs the second process of the Web Push benchmark, with this many push services.
    @Option(help: .hidden)
    var webPushOrigins: Int?

    func validate() throws {
        guard seconds > 0, seconds <= 3600 else { throw ValidationError("--seconds must be above 0 and at most 3600") }
        guard (1...100).contains(rounds) else { throw ValidationError("--rounds must be 1 to 100") }
        guard (1...100_000_000).contains(registrations) else { throw ValidationError("--registrations must be 1 to 100000000") }
        guard (1...100_000_000).contains(stored) else { throw ValidationError("--stored must be 1 to 100000000") }
        guard (1...10_000_000).contains(latencies) else { throw ValidationError("--latencies must be 1 to 10000000") }
        guard rate.map({ $0 > 0 && $0 <= 10_000 }) ?? true else { throw ValidationError("--rate must be above 0 and at most 10000") }
        guard (1...10_000).contains(batch) else { throw ValidationError("--batch must be 1 to 10000") }
        guard store != nil || !parts.contains(.nodes) else {
            throw ValidationError("nodes needs a PostgreSQL database that nodes can share: name one with --store")
        }
        guard store == nil || (!parts.isEmpty && parts.allSatisfy(\.canUseStore)) else {
            throw ValidationError("--store is only for \(Self.names(BenchPart.allCases.filter(\.canUseStore))): name those to measure")
        }
    }

    func execute() async throws {
        if gorushSink {
            return try await GorushStandIn.running(latency: gorushLatency.duration) { url in
                Output.line(url)
                try await Task.sleep(for: .seconds(24 * 3600))
            }
        }
        if let shardPeers { return try await ShardPeers(count: shardPeers, rate: rate ?? 100).run() }
        if let webPushOrigins { return try await WebPushOrigins(folder: data, count: webPushOrigins).run() }
        let location = try store.map { StoreLocation.postgreSQL(try PostgreSQLAddress($0)) } ?? .dataFolder
        let progress = ProgressBar()
        defer { progress.clear() }
        let results = try await untilInterrupted { try await measure(progress, location) }
        progress.clear()
        let report = BenchReport(machine: Machine(), results: results)
        try report.print(asJSON: json)
        if let unanswered = report.unanswered { throw unanswered }
    }

    /// Cancels the tasks on SIGINT or SIGTERM, so that they remove their data folders and end their processes.
    private func untilInterrupted(_ body: @escaping @Sendable () async throws -> [BenchResult]) async throws -> [BenchResult] {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        return try await withThrowingTaskGroup(of: [BenchResult].self) { group in
            group.addTask { try await body() }
            group.addTask {
                for await _ in signals { throw ExitCode(130) }
                throw CancellationError()
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
    }

    private func measure(_ progress: ProgressBar, _ store: StoreLocation) async throws -> [BenchResult] {
        var settings = BenchSettings(seconds: seconds, folder: data)
        settings.rounds = rounds
        settings.batch = batch
        settings.store = store
        settings.storedCount = stored
        settings.latencyCount = latencies
        settings.startsGorush = true
        settings.gorushLatency = gorushLatency.duration
        settings.isTraced = traces
        settings.progress = { progress.show($0, $1) }
        var results: [BenchResult] = []
        for part in BenchPart.allCases where parts.contains(part) || (parts.isEmpty && !part.isLong) {
            results += try await measure(part, settings)
        }
        return results
    }

    private func measure(_ kinds: [MessageBench.Kind], _ settings: BenchSettings) async throws -> [BenchResult] {
        var results: [BenchResult] = []
        for kind in kinds { results += try await MessageBench(kind: kind, settings: settings).run() }
        return results
    }

    private func measure(_ part: BenchPart, _ settings: BenchSettings) async throws -> [BenchResult] {
        switch part {
        case .primitives: return try await PrimitiveBench(settings: settings).run()
        case .registration: return try await measure([.registration, .update, .stale], settings)
        case .query: return try await measure([.query], settings)
        case .firstQuery:
            // Each query takes 7 ms of a core to generate, and as long again in the node.
            let count = min(5_000, max(50, Int(settings.seconds * 1_000)))
            return try await FirstQueryBench(settings: settings, registrantCount: count).run()
        case .request: return try await measure([.request], settings)
        case .v01: return try await measure(MessageBench.Kind.allCases.filter(\.isV01), settings)
        case .nodes: return try await NodesBench(settings: settings, rate: rate ?? 500).run()
        case .foreign: return try await ForeignBench(settings: settings).run()
        case .endToEnd:
            var load = EndToEndBench.Load()
            if let rate { load.rate = rate }
            load.pollInterval = pollInterval.duration
            if let duration { load.duration = duration.duration }
            return try await EndToEndBench(settings: settings, load: load).run()
        case .flood: return try await FloodBench(settings: settings, rate: rate ?? 100).run()
        case .shard: return try await ShardBench(settings: settings, rate: rate).run()
        case .startup: return try await StartupBench(settings: settings, registrationCount: registrations).run()
        case .session: return try await SessionBench(settings: settings).measureRequests()
        case .sessionStart: return [try await SessionBench(settings: settings).measureStart()]
        case .sessionRenewals: return [try await SessionBench(settings: settings).measureRenewals()]
        case .webPush:
            return try await WebPushBench(settings: settings, duration: duration?.duration, rate: rate).run()
        case .costs: return try await CostBench(settings: settings).run()
        }
    }
}

enum BenchPart: String, CaseIterable, ExpressibleByArgument {
    case primitives, registration, query
    case firstQuery = "first-query"
    case request
    case v01 = "v0.1"
    case nodes
    case foreign
    case endToEnd = "end-to-end"
    case shard
    case flood
    case startup
    case session
    case sessionStart = "session-start"
    case sessionRenewals = "session-renewals"
    case webPush = "web-push"
    case costs

    /// Whether it can be measured with a store other than SQLite.
    var canUseStore: Bool { [.registration, .query, .request, .v01, .nodes].contains(self) }

    /// Whether it runs only when it is named.
    var isLong: Bool {
        [.firstQuery, .nodes, .shard, .session, .sessionStart, .sessionRenewals, .webPush, .costs].contains(self)
    }
}
