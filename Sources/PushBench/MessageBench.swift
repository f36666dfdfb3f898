import WakuCrypto

/// Measures one kind of message: a node with a data folder, fed as fast as it accepts messages, then at half that rate.
package struct MessageBench: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case registration = "registration new"
        case update = "registration update"
        case stale = "registration stale"
        case query = "query"
        case request = "request"

        var floor: Floor {
            switch self {
            case .registration, .update: .registration
            case .stale: .stale
            case .query: .query
            case .request: .request
            }
        }

        /// Number of registrants stored in advance. Deriving the key of a query topic takes about 12 ms.
        var seedCount: Int {
            switch self {
            case .registration: 0
            case .query: 32
            case .update, .stale, .request: 2_000
            }
        }
    }

    let kind: Kind
    let settings: BenchSettings

    package init(_ kind: Kind, settings: BenchSettings) {
        self.kind = kind
        self.settings = settings
    }

    package func run() async throws -> [BenchResult] {
        try await settings.withFolder { bareFolder in
            let meter = PrimitiveMeter(folder: bareFolder, slice: settings.slice)
            try meter.prepare()
            return try await settings.withFolder { folder in
                settings.progress("\(kind.rawValue): registrants", 0)
                let identity = PrivateKey.generate()
                let maker = await QuestionMaker(kind, identity: identity, cores: settings.cores)
                if !maker.clients.isEmpty { try await BenchNode.seed(maker.clients, identity: identity, folder: folder) }
                return try await BenchNode.running(
                    identity: identity, folder: folder, gorush: PostingStandIn(latency: settings.gorushLatency)
                ) { [settings, kind] node in
                    var run = MessageRun(kind: kind, settings: settings, meter: meter, maker: maker, relay: node.relay)
                    return try await run.measure()
                }
            }
        }
    }
}
