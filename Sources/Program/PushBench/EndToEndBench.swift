import CurlClient
import Delivery
import LibP2P
import LoopbackRelay
import LoopbackServer
import NodeAssembly
import NwakuRelay
import PushNode
import Synchronization
import Waku
import WakuCrypto
import WakuP2P
import WakuPushCommands

/// Requests through real sockets: a node attached to another one by libp2p and by REST, and a gorush stand-in over HTTP.
///
/// The other node and gorush run in this process and share its cores: the maximum rate is that of all three together.
struct EndToEndBench: Sendable {
    struct Load: Sendable {
        /// Requests per second, for measuring latencies.
        var rate = 100.0
        var duration = Duration.seconds(5)
        /// Poll interval of a node that is attached by REST.
        var pollInterval = Duration.milliseconds(300)
    }

    /// Requests in flight when the maximum rate is measured: fewer than a peer's queue can hold.
    private static let window = 2_000
    private static let cacheCapacity = 10_000

    let settings: BenchSettings
    let load: Load

    func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            settings.progress("end to end: registrants", 0)
            let identity = PrivateKey.generate()
            let maker = await QuestionMaker(.request, identity: identity, cores: settings.cores, deviceToken: GorushLog.token)
            try await BenchNode.seed(maker.clients, identity: identity, folder: folder)
            let load = self.load
            var results: [BenchResult] = []
            for attachment in [Attachment.libp2p, .rest(pollInterval: load.pollInterval)] {
                let atRate = await maker.make(max(1, Int(load.rate * load.duration.seconds)), after: 0)
                results += try await withNode(identity, folder, attachment) {
                    try await measureLatencies(atRate, of: maker, attachment, $0)
                }
            }
            let atOnce = await maker.make(Int(min(max(2_000 * settings.seconds, 64), 20_000)), after: 0)
            return results + [try await withNode(identity, folder, .libp2p) { try await measureRate(atOnce, $0) }]
        }
    }

    /// How the node is attached.
    private enum Attachment {
        case libp2p
        case rest(pollInterval: Duration)

        var name: String {
            switch self {
            case .libp2p: "libp2p"
            case .rest: "REST"
            }
        }
    }

    /// The other node, which sends the requests, with logs of answers and posts.
    private final class Network: Sendable {
        let other: any Relay
        let relay = Mutex<(any Relay)?>(nil)
        let answers = AnswerLog()
        let posts: GorushLog

        init(_ other: any Relay, _ posts: GorushLog) {
            self.other = other
            self.posts = posts
        }

        var isAttached: Bool { other.state == .attached && relay.withLock { $0?.state == .attached } }

        func publish(_ question: Question) async throws {
            try await other.publish(question.message.sentNow().message, on: question.message.pubsubTopic)
        }
    }

    private typealias Body<R> = @Sendable (Network) async throws -> R

    private func withNode<R: Sendable>(
        _ identity: PrivateKey, _ folder: String, _ attachment: Attachment, _ body: @escaping Body<R>
    ) async throws -> R {
        let posts = GorushLog()
        return try await GorushStandIn.running(latency: settings.gorushLatency, received: posts.note) { gorush in
            let configuration = BenchNode.configuration(identity, folder)
            switch attachment {
            case .libp2p:
                let other = P2PRelay(
                    configuration: .init(key: .generate(), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")]), logger: .quiet)
                try await other.listen()
                let network = Network(other, posts)
                return try await withNode(configuration, gorush, network, body) { needs in
                    P2PRelay(
                        configuration: .init(key: .generate(), peers: other.listenAddresses, pubsubTopics: needs.pubsubTopics),
                        logger: .quiet)
                }
            case .rest(let pollInterval):
                let loopback = LoopbackNetwork(cacheCapacity: Self.cacheCapacity, archiveCount: 1_000)
                return try await LoopbackServer.running(loopback) { url in
                    try await withNode(configuration, gorush, Network(loopback.relay(), posts), body) { needs in
                        try NwakuRESTRelay(
                            configuration: NwakuRESTRelay.Configuration(
                                address: try NodeAddress(url), pubsubTopics: needs.pubsubTopics, pollInterval: pollInterval,
                                cacheCapacity: Self.cacheCapacity), client: CurlClient(), logger: .quiet)
                    }
                }
            }
        }
    }

    private func withNode<R: Sendable>(
        _ configuration: ServerConfiguration, _ gorush: String, _ network: Network, _ body: @escaping Body<R>,
        makeRelay: (RelayNeeds) throws -> any Relay
    ) async throws -> R {
        try await network.other.running(deliver: { network.answers.note($0) }) {
            try await BenchNode.withServer(
                configuration, gorush: try GorushClient(client: CurlClient(), url: gorush),
                makeRelay: { needs in
                    let relay = try makeRelay(needs)
                    network.relay.withLock { $0 = relay }
                    return relay
                }
            ) { _ in try await body(network) }
        }
    }

    private func measureLatencies(
        _ questions: [Question], of maker: QuestionMaker, _ attachment: Attachment, _ network: Network
    ) async throws -> [BenchResult] {
        try await waitUntilAttached(network)
        let start = Clock.uptime() + 10_000_000
        for (index, question) in questions.enumerated() {
            let due = start + UInt64(Double(index) * 1e9 / load.rate)
            let now = Clock.uptime()
            if due > now { try await Task.sleep(for: .nanoseconds(Int64(due - now)), tolerance: .zero) }
            network.posts.asked(maker.client(of: index), at: due)
            network.answers.asked(question.answerTopic, at: due)
            try await network.publish(question)
            if index.isMultiple(of: 16) { settings.progress("end to end: \(attachment.name)", Double(index) / Double(questions.count)) }
        }
        _ = try await network.answers.waitForAll()
        return [
            result("relay to gorush, \(attachment.name)", network.posts.latencies, questions.count, attachment),
            result("relay to answer, \(attachment.name)", network.answers.latencies, questions.count, attachment),
        ]
    }

    private func result(_ name: String, _ latencies: LatencyHistogram, _ count: Int, _ attachment: Attachment) -> BenchResult {
        var result = BenchResult(name: name)
        result.latencies = latencies
        result.latencyRate = load.rate
        result.messages = count
        result.unanswered = max(0, count - Int(latencies.count))
        if case .rest(let interval) = attachment { result.details["pollIntervalMilliseconds"] = interval.seconds * 1000 }
        result.details["gorushMilliseconds"] = settings.gorushLatency.seconds * 1000
        return result
    }

    private func measureRate(_ questions: [Question], _ network: Network) async throws -> BenchResult {
        try await waitUntilAttached(network)
        let cpu = Clock.process()
        let start = Clock.uptime()
        for (index, question) in questions.enumerated() {
            var attempts = 20_000
            while network.answers.waitingCount >= Self.window, attempts > 0 {
                try await Task.sleep(for: .milliseconds(1))
                attempts -= 1
            }
            network.answers.asked(question.answerTopic, at: Clock.uptime())
            try await network.publish(question)
            if index.isMultiple(of: 64) { settings.progress("end to end: maximum rate", Double(index) / Double(questions.count)) }
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

    /// Waits until messages reach the node.
    private func waitUntilAttached(_ network: Network) async throws {
        try await waitUntil(.seconds(30), else: "the node did not attach to the other one on 127.0.0.1") { network.isAttached }
    }
}
