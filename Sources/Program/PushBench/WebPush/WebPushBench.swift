import Core
import CurlClient
import Delivery
import Foundation
import HTTPService
import NodeAssembly
import NodeMetrics
import PushNode
import StatusProtocol
import WakuCrypto

/// Web Push: requests for 20 devices each, as a message to a group is, up to the push services' answers and the commits after them. The services are
/// TLS servers in another process, which shares the cores: rates are of both.
struct WebPushBench: Sendable {
    private static let originCount = 8
    private static let deviceCount = 2000
    /// Notifications in a request.
    private static let fanOut = 20

    let settings: BenchSettings
    /// Time for which latencies are measured; nil for that of a round.
    var duration: Duration?
    /// Notifications per second for the latencies; nil for half of the maximum rate.
    var rate: Double?

    func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            guard let certificate = TrialCertificate(hosts: (0..<Self.originCount).map(WebPushOrigins.address)) else {
                throw BenchError.disk
            }
            for (name, text) in [
                ("authority.pem", certificate.authority), ("server.pem", certificate.certificate), ("server.key", certificate.key),
            ] {
                guard FileManager.default.createFile(atPath: "\(folder)/\(name)", contents: Data(text.utf8)) else { throw BenchError.disk }
            }
            let services = try BenchChild(
                ["run", "--web-push-origins", "\(Self.originCount)", "--data", folder], output: folder + "/ports")
            defer { services.end() }
            let ports = try await services.line { line in
                line.hasPrefix("ports ") ? line.split(separator: " ").dropFirst().map(String.init) : nil
            }
            let origins = ports.enumerated().map { "https://\(WebPushOrigins.address($0)):\($1)" }
            return [try await measure(origins, folder)]
        }
    }

    private func measure(_ origins: [String], _ folder: String) async throws -> BenchResult {
        settings.progress("web push: registrants", 0)
        let identity = PrivateKey.generate()
        let clients = await makeInParallel(Self.deviceCount, cores: settings.cores) { number in
            BenchClient(deviceToken: Self.token("\(origins[number % origins.count])/push/\(number)"))
        }
        let data = try BenchSettings.makeDataFolder(in: folder)
        try await BenchNode.seed(
            clients, identity: identity, folder: data,
            change: { registration in
                registration.tokenType = UInt32(Platform.webPush.rawValue)
                registration.apnTopic = ""
            })
        var configuration = BenchNode.configuration(identity, data)
        let client = WebPushClient(
            client: CurlClient(
                configuration: WebPushClient.configuration(
                    trust: .file(path: folder + "/authority.pem"), allowed: ["127.0.0.0/8"].compactMap { AddressRange($0) })),
            key: VAPIDKey(.generate()), contact: "mailto:bench@example.org")
        configuration.node.webPush = WebPushEndpoint(client, rate: (perSecond: 1e6, burst: 1e6))
        let floor = WebPushFloor(
            settings: settings, folder: folder, urls: origins.map { $0 + "/floor" }, authority: folder + "/authority.pem",
            share: 1 / Double(Self.fanOut))
        return try await BenchNode.running(configuration, gorush: PostingStandIn(latency: .zero)) { [self] node in
            try await measure(Run(server: node.server.node, relay: node.relay, clients: clients, identity: identity), floor)
        }
    }

    private struct Run: Sendable {
        let server: NodeService
        let relay: BenchRelay
        let clients: [BenchClient]
        let identity: PrivateKey

        var accepted: Int { server.counters.count(.notificationAccepted) }
    }

    private func measure(_ run: Run, _ floor: WebPushFloor) async throws -> BenchResult {
        settings.progress("web push: floor", 0)
        var measured = try await FloorRounds { try await floor.measure() }
        let count = max(16, measured.count(for: settings.seconds / 2, cores: settings.cores)) / Self.fanOut + 1
        // Warm-up of connections, caches and pools, not measured.
        _ = try await round(min(count, 100), run)
        for number in 0..<settings.rounds {
            settings.progress("web push: round \(number + 1)", Double(number + 1) / Double(settings.rounds + 2))
            try await measured.add(try await round(count, run))
        }
        var result = BenchResult(name: "web push")
        result.add(measured)
        let rates = measured.rounds.map(\.rate)
        let (lowest, highest) = (rates.min() ?? 0, rates.max() ?? 0)
        let bare = result.floor.filter { $0.name != WebPushFloor.post }.reduce(0) { $0 + $1.count * $1.microseconds }
        if let cpu = result.cpuMicroseconds, cpu > 0 {
            result.details = [
                "floorWithoutHTTPMicroseconds": bare, "cpuRatioWithoutHTTP": bare / cpu, "lowestRate": lowest, "highestRate": highest,
            ]
            result.note =
                "\(Int(bare)) µs of the floor, \(Int(100 * bare / cpu)) % of CPU, without libcurl's part of the post; rates of the rounds "
                + "from \(Int(lowest)) to \(Int(highest)); latencies are those of whole requests"
        }
        settings.progress("web push: latencies", Double(settings.rounds + 1) / Double(settings.rounds + 2))
        if let maximum = result.rate, maximum > 0 {
            let rate = rate ?? maximum / 2
            let requestRate = rate / Double(Self.fanOut)
            let seconds = duration?.seconds ?? settings.seconds
            let questions = await make(max(32, Int(requestRate * seconds)), run)
            result.add(try await OpenLoop.measure(questions, rate: requestRate, relay: run.relay))
            result.latencyRate = rate
        }
        result.residentBytes = ProcessMemory.residentBytes()
        result.explainUnanswered(by: run.server.counters)
        return result
    }

    private func round(_ count: Int, _ run: Run) async throws -> FullSpeed {
        let questions = await make(count, run)
        let (total, accepted) = (count * Self.fanOut, run.accepted)
        let batches = questions.chunks(of: settings.batch).map { $0.map(\.message) }
        let (cpu, start) = (Clock.process(), Clock.uptime())
        await run.relay.feed(batches)
        var (last, end) = (accepted, start)
        _ = try await waitForCount(accepted + total) {
            let now = run.accepted
            if now != last { (last, end) = (now, Clock.uptime()) }
            return now
        }
        // Work after an acceptance is part of its cost.
        try await Task.sleep(for: .milliseconds(20))
        return FullSpeed(
            rate: end > start ? Double(last - accepted) * 1e9 / Double(end - start) : 0,
            cpuMicroseconds: Double(Clock.process() - cpu) / 1000 / Double(total), count: total, unanswered: max(0, accepted + total - last)
        )
    }

    private func make(_ count: Int, _ run: Run) async -> [Question] {
        await makeInParallel(count, cores: settings.cores) { _ in
            let first = Int.random(in: 0..<run.clients.count)
            let notifications = (0..<Self.fanOut).map { offset in
                let client = run.clients[(first + offset) % run.clients.count]
                return PushNotification(
                    accessToken: client.accessToken, chatID: randomBytes(64), publicKey: client.keyHash.bytes,
                    installationID: client.installationID, message: randomBytes(150), kind: .message, author: randomBytes(64))
            }
            let request = PushNotificationRequest(requests: notifications, messageID: randomBytes(32)).encoded()
            return Question(.request, request, to: .partitioned(run.identity.publicKey), signedBy: .generate())
        }
    }

    private static func token(_ endpoint: String) -> DeviceToken {
        guard let keys = WebPushKeys(publicKey: P256PrivateKey.generate().publicKey, secret: randomBytes(WebPushKeys.secretByteCount)),
            let subscription = PushSubscription(endpoint: endpoint, keys: keys)
        else { preconditionFailure("an endpoint of the benchmark is not valid") }
        return DeviceToken(bytes: subscription.json)
    }
}
