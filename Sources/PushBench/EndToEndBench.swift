import CurlClient
import Gorush
import Logging
import LoopbackRelay
import NIOCore
import NwakuRelay
import PushNode
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// Requests through real sockets: a node attached by REST to the loopback relay, and a loopback gorush over HTTP.
///
/// Relay and gorush run in this process and share its cores: the maximal rate is that of all three together.
public struct EndToEndBench: Sendable {
    public struct Load: Sendable {
        /// Requests a second, for the latencies.
        public var rate = 100.0
        public var duration = Duration.seconds(5)
        public var pollInterval = Duration.milliseconds(300)

        public init() {}
    }

    private static let clientCount = 2_000
    /// At once under way when the maximal rate is measured: the relay's cache holds them.
    private static let window = 2_000
    private static let cacheCapacity = 10_000

    let settings: BenchSettings
    let load: Load

    public init(settings: BenchSettings, load: Load) {
        self.settings = settings
        self.load = load
    }

    public func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            settings.progress("end to end: registrants", 0)
            let identity = PrivateKey.generate()
            let maker = await QuestionMaker(.request, identity: identity, cores: settings.cores, deviceToken: GorushLog.token)
            try await BenchNode.seed(maker.clients, identity: identity, folder: folder)
            let atRate = await maker.make(max(1, Int(load.rate * load.duration.seconds)), after: 0)
            let latencies = try await withNode(identity, folder, pollInterval: load.pollInterval) { network in
                try await measureLatencies(atRate, network)
            }
            let count = Int(min(max(2_000 * settings.seconds, 64), 20_000))
            let atOnce = await maker.make(count, after: atRate.count)
            // The interval would be all that is measured.
            let maximal = try await withNode(identity, folder, pollInterval: .milliseconds(5)) { network in
                try await measureRate(atOnce, network)
            }
            return latencies + [maximal]
        }
    }

    /// The network that a node is attached to by REST, with what is seen of its answers and posts.
    private final class Network: Sendable {
        let network = LoopbackNetwork(cacheCapacity: EndToEndBench.cacheCapacity, archiveCount: 1_000)
        let relay = Mutex<NwakuRelay?>(nil)
        let answers: AnswerLog
        let posts = GorushLog()

        init(server: PublicKey) {
            answers = AnswerLog(except: ContentTopic(TopicTag(of: StatusTopics.partitioned(server))))
        }

        var isAttached: Bool { relay.withLock { $0?.state == .attached } }

        func publish(_ question: Question) {
            network.publish(question.message.message, on: question.message.pubsubTopic)
        }
    }

    private func withNode<R: Sendable>(
        _ identity: PrivateKey, _ folder: String, pollInterval: Duration, _ body: @escaping @Sendable (Network) async throws -> R
    ) async throws -> R {
        let network = Network(server: identity.publicKey)
        return try await GorushLoopback.running(latency: settings.gorushLatency, received: network.posts.note) { gorush in
            try await LoopbackServer.running(network.network) { relayURL in
                let poster = try GorushClient(client: CurlClient(), url: gorush.url)
                let quiet = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
                return try await BenchNode.withNode(
                    NodeConfiguration(identity: identity, dataPath: folder), gorush: poster,
                    makeRelay: { needs in
                        let relay = try NwakuRelay(
                            configuration: NwakuRelay.Configuration(
                                address: try NodeAddress(relayURL), pubsubTopics: needs.pubsubTopics, pollInterval: pollInterval,
                                cacheCapacity: Self.cacheCapacity), client: CurlClient(), logger: quiet)
                        network.relay.withLock { $0 = relay }
                        return relay
                    }
                ) { _ in
                    let observer = network.network.relay()
                    let observing = Task { await observer.run { network.answers.note($0) } }
                    defer { observing.cancel() }
                    return try await body(network)
                }
            }
        }
    }

    private func measureLatencies(_ questions: [Question], _ network: Network) async throws -> [BenchResult] {
        try await waitUntilAttached(network)
        let start = Clock.uptime() + 10_000_000
        for (index, question) in questions.enumerated() {
            let due = start + UInt64(Double(index) * 1e9 / load.rate)
            let now = Clock.uptime()
            if due > now { try await Task.sleep(for: .nanoseconds(Int64(due - now)), tolerance: .zero) }
            network.posts.asked(index % Self.clientCount, at: due)
            network.answers.asked(question.answerTopic, at: due)
            network.publish(question)
            if index.isMultiple(of: 16) { settings.progress("end to end: latencies", Double(index) / Double(questions.count)) }
        }
        _ = try await network.answers.waitForAll()
        return [
            result("end to end, relay to gorush", network.posts.latencies, questions.count),
            result("end to end, relay to answer", network.answers.latencies, questions.count),
        ]
    }

    private func result(_ name: String, _ latencies: LatencyHistogram, _ count: Int) -> BenchResult {
        var result = BenchResult(name: name)
        result.latencies = latencies
        result.latencyRate = load.rate
        result.messages = count
        result.unanswered = max(0, count - Int(latencies.count))
        result.details["pollIntervalMilliseconds"] = load.pollInterval.seconds * 1000
        result.details["gorushMilliseconds"] = settings.gorushLatency.seconds * 1000
        return result
    }

    private func measureRate(_ questions: [Question], _ network: Network) async throws -> BenchResult {
        try await waitUntilAttached(network)
        let cpu = Clock.process()
        let start = Clock.uptime()
        for (index, question) in questions.enumerated() {
            var patience = 20_000
            while network.answers.waitingCount >= Self.window, patience > 0 {
                try await Task.sleep(for: .milliseconds(1))
                patience -= 1
            }
            network.answers.asked(question.answerTopic, at: Clock.uptime())
            network.publish(question)
            if index.isMultiple(of: 64) { settings.progress("end to end: maximal rate", Double(index) / Double(questions.count)) }
        }
        _ = try await network.answers.waitForAll()
        let end = network.answers.lastTime
        var result = BenchResult(name: "end to end, request")
        let answered = network.answers.latencies.count
        result.rate = answered > 0 && end > start ? Double(answered) * 1e9 / Double(end - start) : 0
        result.cpuMicroseconds = Double(Clock.process() - cpu) / 1000 / Double(questions.count)
        result.messages = questions.count
        result.unanswered = network.answers.waitingCount
        result.residentBytes = ProcessMemory.residentBytes()
        return result
    }

    /// Before, nothing reaches the node.
    private func waitUntilAttached(_ network: Network) async throws {
        let deadline = ContinuousClock.now + .seconds(30)
        while !network.isAttached {
            guard ContinuousClock.now < deadline else {
                throw BenchError(code: .unavailable, message: "the node does not attach to the loopback relay on 127.0.0.1")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
