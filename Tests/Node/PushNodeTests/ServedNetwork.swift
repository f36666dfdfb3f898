import CurlClient
import Logging
import LoopbackRelay
import LoopbackServer
import Core
import PushNode
import Synchronization
import Waku

@testable import NwakuRelay

/// A Waku node's REST API over a loopback network, on one port of 127.0.0.1, that can be stopped and started again.
actor ServedNetwork {
    let network: LoopbackNetwork
    private(set) var port = 0
    private var serving: Task<Void, Never>?
    private let attached = Mutex<NwakuRESTRelay?>(nil)

    init(_ network: LoopbackNetwork) {
        self.network = network
    }

    /// Returns once it listens.
    func start() async throws {
        let (ports, bound) = AsyncStream.makeStream(of: Int.self)
        let server = LoopbackServer(network: network, port: port)
        serving = Task {
            try? await server.run { bound.yield($0) }
            bound.finish()
        }
        for await port in ports {
            self.port = port
            return
        }
        throw NotServed()
    }

    struct NotServed: Error {}

    /// Simulates a crash: subscriptions and cache are lost, the store's messages are kept.
    func stop() async {
        serving?.cancel()
        await serving?.value
        network.restart()
    }

    /// Runs it while `body` runs.
    static func run<R: Sendable>(_ network: LoopbackNetwork, _ body: (ServedNetwork) async throws -> R) async throws -> R {
        let served = ServedNetwork(network)
        try await served.start()
        do {
            let result = try await body(served)
            await served.stop()
            return result
        } catch {
            await served.stop()
            throw error
        }
    }

    /// A relay attached to it, with shorter intervals than by default.
    nonisolated func relay(port: Int, _ needs: RelayNeeds, settling: Duration = .milliseconds(20)) throws -> NwakuRESTRelay {
        let short = ExponentialBackoff(initial: .milliseconds(10), maximum: .milliseconds(50))
        let address = try NodeAddress("http://127.0.0.1:\(port)")
        var configuration = NwakuRESTRelay.Configuration(
            address: address, pubsubTopics: needs.pubsubTopics, pollInterval: .milliseconds(20), catchUpTopics: needs.ownTopics,
            lastSeen: needs.seenUntil, wants: needs.wants, report: needs.report)
        configuration.learnedTopics = needs.learnedTopics
        let relay = try NwakuRESTRelay(
            configuration: configuration,
            api: NwakuAPI(address: address, client: client, minimumTimeout: .seconds(60)), logger: quiet,
            timing: NwakuRESTRelay.Timing(
                nodeBackoff: short, storeBackoff: short, catchUpPeriod: .milliseconds(20), settling: settling))
        attached.withLock { $0 = relay }
        return relay
    }

    /// Whether the relay that was made last listens.
    nonisolated var isAttached: Bool { attached.withLock { $0?.state == .attached } }
}

let client = CurlClient()
let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
