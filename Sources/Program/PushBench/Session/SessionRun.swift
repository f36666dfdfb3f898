import CurlClient
import Foundation
import NodeAssembly
import SessionProtocol
import SessionStandIns
import WakuCrypto

/// The rounds of ``SessionBench`` on a node that runs.
struct SessionRun: Sendable {
    private struct Subscriber: Sendable {
        let account: AccountID
        let body: [UInt8]
        let onion: OnionClient.Request?
    }

    let settings: BenchSettings
    let server: Server
    let servers: StorageServerStandIn
    let posts: PostingStandIn
    /// X25519, 32 bytes.
    let onionKey: [UInt8]
    let sodium: Sodium
    let floor: SessionFloor
    private let http = SessionBench.makeClient()

    func measure() async throws -> [BenchResult] {
        [
            try await measure("session subscribe", .subscribe) { try await subscribe(make($0, encryption: nil), encryption: nil) },
            try await measure("session subscribe, onion", .onion) {
                try await subscribe(make($0, encryption: .xChaCha20), encryption: .xChaCha20)
            },
            try await measure("session notify", .notify) { try await notify($0) },
        ]
    }

    private func measure(
        _ name: String, _ kind: SessionFloor.Kind, _ round: (Int) async throws -> FullSpeed
    ) async throws -> BenchResult {
        settings.progress("\(name): floor", 0)
        var measured = try await FloorRounds { [floor] in try await floor.measure(kind) }
        let count = max(32, measured.count(for: settings.seconds, cores: settings.cores))
        // Warm-up of connections, caches and pools, not measured.
        _ = try await round(min(count, 2 * SessionBench.inFlight))
        for number in 0..<settings.rounds {
            settings.progress("\(name): round \(number + 1)", Double(number + 1) / Double(settings.rounds + 1))
            try await measured.add(try await round(count))
        }
        var result = BenchResult(name: name)
        result.add(measured)
        result.residentBytes = ProcessMemory.residentBytes()
        return result
    }

    // MARK: Subscribing

    private func make(_ count: Int, _ kind: SessionClient.Kind = .person, encryption: OnionEncryption?) async throws -> [Subscriber] {
        let now = Int64(Date().timeIntervalSince1970)
        let onion = OnionClient(serverKey: onionKey, sodium: sodium)
        let made = await makeInParallel(count, cores: settings.cores) { [sodium] number -> Subscriber? in
            guard let client = SessionClient(sodium: sodium, kind: kind) else { return nil }
            let body = client.subscribeBody(for: SessionClient.Device(token: "bench-device-\(number)"), at: now)
            let request = encryption.flatMap { try? onion.request("POST", "/subscribe", body: body, encryption: $0) }
            return Subscriber(account: client.account, body: request?.body ?? body, onion: request)
        }
        return made.compactMap(\.self)
    }

    private func subscribe(_ subscribers: [Subscriber], encryption: OnionEncryption?) async throws -> FullSpeed {
        let url = "http://127.0.0.1:\(server.sessionPort ?? 0)" + (encryption == nil ? "/subscribe" : "/oxen/v4/lsrpc")
        let onion = OnionClient(serverKey: onionKey, sodium: sodium)
        let numbers = WorkNumbers(subscribers.count)
        let (cpu, start) = (Clock.process(), Clock.uptime())
        let answers = try await withThrowingTaskGroup(of: [(Int, [UInt8])].self) { group in
            for _ in 0..<SessionBench.inFlight {
                group.addTask { [http] in
                    var answers: [(Int, [UInt8])] = []
                    while let number = numbers.take() {
                        let request = HTTPRequest(method: "POST", url: url, body: subscribers[number].body, timeout: .seconds(60))
                        answers.append((number, try await http.send(request).body))
                    }
                    return answers
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let (end, cpuEnd) = (Clock.uptime(), Clock.process())
        let accepted = answers.count { number, body in
            let opened = subscribers[number].onion.flatMap { try? onion.open(body, to: $0).body } ?? body
            return String(decoding: opened, as: UTF8.self).contains(#""success":true"#)
        }
        return FullSpeed(
            rate: Double(answers.count) * 1e9 / Double(end - start),
            cpuMicroseconds: Double(cpuEnd - cpu) / 1000 / Double(subscribers.count), count: subscribers.count,
            unanswered: subscribers.count - accepted)
    }

    // MARK: Notifying

    /// Sends one message for each of `count` new accounts.
    private func notify(_ count: Int) async throws -> FullSpeed {
        // The stand-in for storage servers knows these accounts without converting a key, which would cost as much as the node's own work.
        let subscribers = try await make(count, .group, encryption: nil)
        _ = try await subscribe(subscribers, encryption: nil)
        try await SessionBench.wait("all accounts monitored") { subscribers.allSatisfy { servers.isMonitored($0.account) } }
        let milliseconds = Int64(Date().timeIntervalSince1970 * 1000)
        // Encoded in advance: encoding is the storage servers' work, and not part of the floor.
        let reports = subscribers.map { subscriber in
            StorageServerStandIn.Report(
                NotifyMessage(
                    account: subscriber.account, hash: hexString(randomBytes(20)), namespace: 0, storedAt: milliseconds,
                    expiresAt: milliseconds + 86_400_000, data: [UInt8](repeating: 7, count: 300)))
        }
        let before = posts.count
        let (cpu, start) = (Clock.process(), Clock.uptime())
        for report in reports { servers.send(report) }
        try await SessionBench.wait("all notifications posted") { posts.count - before >= count }
        let end = posts.lastTime
        let cpuEnd = Clock.process()
        return FullSpeed(
            rate: Double(count) * 1e9 / Double(end - start), cpuMicroseconds: Double(cpuEnd - cpu) / 1000 / Double(count), count: count,
            unanswered: 0)
    }
}
