import RateLimits
import NodeAssembly
import WakuCrypto

/// The effect of a flood by one key on other senders: the same requests alone, and during a flood of ten times as many by one sender, with the default
/// limits of a daemon.
struct FloodBench: Sendable {
    private static let floodFactor = 10

    let settings: BenchSettings
    /// Requests of other senders per second.
    let rate: Double

    func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            settings.progress("flood: requests", 0)
            let identity = PrivateKey.generate()
            let maker = await QuestionMaker(.request, identity: identity, cores: settings.cores)
            try await BenchNode.seed(maker.clients, identity: identity, folder: folder)
            let count = Int(max(settings.seconds * 4 * rate, 32))
            let alone = await maker.make(count, after: 0)
            let amid = await maker.make(count, after: count)
            // Answers to the flood are distinguished from the others by their topic.
            let topics = Set((alone + amid).map(\.answerTopic))
            var flooder = PrivateKey.generate()
            while topics.contains(Question.answerTopic(of: flooder)) { flooder = .generate() }
            let flood = await makeInParallel(count * Self.floodFactor, cores: settings.cores) { [flooder] number in
                maker.clients[number % maker.clients.count].notifying(server: identity.publicKey, signedBy: flooder)
            }
            var configuration = BenchNode.configuration(identity, folder)
            configuration.limits = .standard
            return try await BenchNode.running(configuration, gorush: PostingStandIn(latency: settings.gorushLatency)) {
                [settings, rate] node in
                settings.progress("flood: alone", 0.3)
                let before = try await OpenLoop.measure(alone, rate: rate, relay: node.relay)
                settings.progress("flood: amid it", 0.6)
                let after = try await OpenLoop.measure(amid, amid: flood, rate: rate, relay: node.relay)
                return [("request, nobody floods", before), ("request, one key floods", after)].map { name, loop in
                    var result = BenchResult(name: name)
                    result.add(loop)
                    result.residentBytes = ProcessMemory.residentBytes()
                    return result
                }
            }
        }
    }
}
