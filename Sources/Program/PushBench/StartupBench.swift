import LoopbackRelay
import LoopbackServer
import Core
import Storage
import StatusProtocol
import Waku
import WakuCrypto

/// The start-up time, memory and disk usage of a node with many registrations.
struct StartupBench: Sendable {
    let settings: BenchSettings
    let registrationCount: Int

    func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            let identity = PrivateKey.generate()
            let data = try BenchSettings.makeDataFolder(in: folder)
            let owner = BenchClient(deviceToken: DeviceToken("device"))
            var result = BenchResult(name: "start with \(registrationCount) registrations")
            let began = Clock.uptime()
            let ownBytes = try await BenchNode.seed(
                [owner], strangers: registrationCount - 1, identity: identity, folder: data,
                progress: { settings.progress("start-up: \(registrationCount) registrations", $0) })
            let databaseBytes = try BareDatabase.byteCount(path: DataFolder.databasePath(in: data))
            let seconds = Double(Clock.uptime() - began) / 1e9
            let overhead = Double(databaseBytes - ownBytes) / Double(registrationCount)
            result.details["registrations"] = Double(registrationCount)
            result.details["databaseBytes"] = Double(databaseBytes)
            result.details["bytesPerRegistrationBeyondItsOwn"] = overhead
            result.details["registrationsMadePerSecond"] = Double(registrationCount) / seconds

            settings.progress("start-up: waku-push serve", 1)
            let times = try await start(owner, identity, folder: folder, data: data)
            result.details["readyMilliseconds"] = times.ready
            result.details["firstAnswerMilliseconds"] = times.answered
            result.residentBytes = times.residentBytes
            result.messages = 1
            result.unanswered = times.answered == nil ? 1 : 0
            result.note =
                "ready after \(Int(times.ready)) ms, first query answered after \(times.answered.map { "\(Int($0))" } ?? "-") ms, "
                + "\(Int(overhead)) bytes a registration beyond its own"
            return [result]
        }
    }

    private struct Times {
        let ready: Double
        let answered: Double?
        let residentBytes: Int?
    }

    private func start(_ owner: BenchClient, _ identity: PrivateKey, folder: String, data: String) async throws -> Times {
        let identityFile = try SpawnedNode.writeIdentity(identity, in: folder)
        let network = LoopbackNetwork(cacheCapacity: 10_000)
        let question = owner.asking(topicKey: KeyDerivation.topicKey(StatusTopics.query(owner.keyHash)))
        return try await LoopbackServer.running(network) { relayURL in
            let answers = AnswerLog()
            let observer = network.relay()
            return try await observer.running(deliver: { answers.note($0) }) {
                let began = Clock.uptime()
                let node = try SpawnedNode(identityFile: identityFile, folder: data, relays: [relayURL])
                try await node.waitUntilReady(limit: .seconds(120))
                let ready = Clock.uptime()
                answers.asked(question.answerTopic, at: began)
                try await observer.publish(question.message.message, on: question.message.pubsubTopic)
                let isAnswered = try await answers.waitForAll()
                let residentBytes = node.residentBytes
                await node.stop()
                return Times(
                    ready: Double(ready - began) / 1e6, answered: isAnswered ? Double(answers.lastTime - began) / 1e6 : nil,
                    residentBytes: residentBytes)
            }
        }
    }
}
