import CurlClient
import Delivery
import NodeAssembly
import NodeMetrics
import PushNode
import StatusV01Server
import WakuCrypto

/// Measures one kind of message: a node with a data folder, fed as fast as it accepts messages, then at half that rate.
struct MessageBench: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case registration = "registration new"
        case update = "registration update"
        case stale = "registration stale"
        case query = "query"
        case request = "request"
        case v01Register = "v0.1 register"
        case v01Query = "v0.1 query"
        case v01Request = "v0.1 request"

        /// Whether the message is of version 0.1, which the node then enables.
        var isV01: Bool { rawValue.hasPrefix("v0.1 ") }

        var floor: Floor {
            switch self {
            case .registration: .registration
            case .update: .update
            case .stale: .stale
            case .query: .query
            case .request: .request
            case .v01Register: .v01Register
            case .v01Query: .v01Query
            case .v01Request: .v01Request
            }
        }

        /// Whether each message is of a new registrant.
        var isOfStrangers: Bool { self == .registration || self == .v01Register }

        /// The number of registrants that messages come from or are about.
        ///
        /// - Parameter stored: the number of registrations that are stored in advance.
        func clientCount(stored: Int) -> Int {
            switch self {
            case .registration, .v01Register: 0
            // Deriving the key of a query topic takes about 7 ms.
            case .query: min(stored, 32)
            // Each holds its keys in memory.
            case .update, .stale, .request: min(stored, 100_000)
            // They are stored by messages.
            case .v01Query, .v01Request: min(stored, 2_000)
            }
        }
    }

    let kind: Kind
    let settings: BenchSettings

    /// Runs `body` with gorush as a process of its own, to which notifications are posted over HTTP; or in this process.
    private func withGorush<R: Sendable>(in folder: String, _ body: (any NotificationPosting) async throws -> R) async throws -> R {
        guard settings.startsGorush else { return try await body(PostingStandIn(latency: settings.gorushLatency)) }
        let process = try BenchChild(
            ["run", "--gorush-sink", "--gorush-latency", "\(Int(settings.gorushLatency.seconds * 1000))ms"],
            output: folder + "/gorush")
        defer { process.end() }
        return try await body(try GorushClient(client: CurlClient(), url: try await process.line { $0 }))
    }

    func run() async throws -> [BenchResult] {
        try await settings.withStore { bareFolder, bareStore in
            let meter = PrimitiveMeter(folder: bareFolder, slice: settings.slice, store: bareStore)
            try await onThread { try meter.prepare() }
            return try await settings.withStore { folder, store in
                settings.progress("\(kind.rawValue): registrants", 0)
                let identity = PrivateKey.generate()
                let maker = await QuestionMaker(kind, identity: identity, cores: settings.cores, stored: settings.storedCount)
                if !kind.isV01 {
                    try await BenchNode.seed(
                        maker.clients, strangers: settings.storedCount - maker.clients.count, identity: identity, folder: folder, at: store)
                }
                var configuration = BenchNode.configuration(identity, folder)
                configuration.store = store
                if settings.isTraced { configuration.tracer = MessageTracer(TraceBuffer.Configuration()) }
                if kind.isV01 { configuration.statusV01 = StatusPushV01.Configuration() }
                return try await withGorush(in: folder) { gorush in
                    try await BenchNode.running(configuration, gorush: gorush) { [settings, kind] node in
                        // Version 0.1 records are registered by messages.
                        if kind.isV01, !maker.clients.isEmpty { try await maker.registerAll(at: node.relay, batch: settings.batch) }
                        var run = MessageRun(kind: kind, settings: settings, meter: meter, maker: maker, relay: node.relay)
                        return try await run.measure()
                    }
                }
            }
        }
    }
}
