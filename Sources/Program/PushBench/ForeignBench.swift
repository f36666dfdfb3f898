import Core
import Waku
import WakuCrypto

/// Messages on foreign topics, which a node drops after the topic look-up: most of the messages on a shard.
struct ForeignBench: Sendable {
    private static let distinctCount = 20_000

    let settings: BenchSettings

    func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            settings.progress("foreign message", 0)
            let identity = PrivateKey.generate()
            let maker = await QuestionMaker(.request, identity: identity, cores: settings.cores)
            try await BenchNode.seed(maker.clients, identity: identity, folder: folder)
            let messages = await makeInParallel(Self.distinctCount, cores: settings.cores) { _ in
                let message = WakuMessage(
                    payload: randomBytes(600), contentTopic: ContentTopic(TopicTag(rawValue: .random(in: 0 ... .max))), timestamp: .now())
                return ReceivedMessage(message: message, pubsubTopic: .statusDefault)
            }
            let batches = messages.chunks(of: settings.batch).map(Array.init)
            return try await BenchNode.running(BenchNode.configuration(identity, folder), gorush: PostingStandIn(latency: .zero)) {
                [settings] node in
                await node.relay.feed(batches)
                var rates: [Double] = []
                var costs: [Double] = []
                var count = 0
                for number in 0..<settings.rounds {
                    settings.progress("foreign message", Double(number) / Double(settings.rounds))
                    let cpu = Clock.process()
                    let start = Clock.uptime()
                    var inRound = 0
                    // Foreign messages are not remembered, so the same ones can be reused.
                    repeat {
                        await node.relay.feed(batches)
                        inRound += messages.count
                    } while Double(Clock.uptime() - start) < settings.seconds * 1e9
                    rates.append(Double(inRound) * 1e9 / Double(Clock.uptime() - start))
                    costs.append(Double(Clock.process() - cpu) / 1000 / Double(inRound))
                    count += inRound
                }
                var measurement = BenchResult(name: "foreign message")
                measurement.rate = median(rates)
                measurement.cpuMicroseconds = median(costs)
                measurement.messages = count
                measurement.residentBytes = ProcessMemory.residentBytes()
                return [measurement]
            }
        }
    }
}
