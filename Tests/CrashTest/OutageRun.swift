import Delivery
import Foundation
import LoopbackRelay
import PushClient
import Core
import Storage
import StatusProtocol
import Synchronization
import TestSupport
import Waku
import WakuCrypto

/// Registers devices, and requests notifications while gorush is available, unavailable, and available again.
final class OutageRun: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct Target {
        let key: RegistrationKey
        let accessToken: AccessToken
    }

    /// The daemon's memory and outbox at one time.
    private struct Sample {
        let memory: Int
        let waiting: Int
    }

    /// The allowed memory above the baseline: a fixed part, and a part for each waiting notification.
    private static let memoryAllowance = (fixed: 32 << 20, each: 1024)
    /// The allowed delay of a post after its expiry, if it was already being sent.
    private static let lateness = Duration.seconds(10)
    private static let registrars = 8
    private static let drainLimit = Duration.seconds(600)

    private let stage: Stage
    private let options: Outage
    private let log: OutageLog
    private let sender: StatusPushClient
    private let isDone = Atomic(false)
    private let isAway = Atomic(false)

    init(_ stage: Stage, _ options: Outage, _ log: OutageLog) {
        self.stage = stage
        self.options = options
        self.log = log
        sender = StatusPushClient(identity: .generate(), relay: stage.network.relay())
    }

    func run() async throws {
        let calm = Duration.seconds(options.calm)
        let daemon = try stage.start(
            0, arguments: ["--max-request-age", "\(options.age)s", "--log-format", "json"],
            limit: .seconds(options.seconds + 4 * options.calm + options.age) + Self.drainLimit)
        _ = try await daemon.waitUntilReady()
        let targets = try await register()
        let store = try stage.store()
        var report = Report(began: .now)

        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.sender.run() }
            var gorush = try await startGorush()
            group.addTask { await self.send(to: targets) }
            try await watch(daemon, store, "well", for: calm, &report)
            report.calmMemory = report.samples.last?.memory ?? 0

            isAway.store(true, ordering: .relaxed)
            gorush.cancel()
            _ = await gorush.result
            report.left = .now
            try await watch(daemon, store, "away", for: .seconds(options.seconds), &report)
            report.peakMemory = report.samples.map(\.memory).max() ?? 0
            report.peakWaiting = report.samples.map(\.waiting).max() ?? 0

            isAway.store(false, ordering: .relaxed)
            gorush = try await startGorush()
            report.returned = .now
            // At this rate some notifications are always waiting, in posts being sent.
            try await watch(daemon, store, "back", for: Self.drainLimit, &report) { $0 <= max(2, self.options.rate) }
            report.drained = .now
            try await watch(daemon, store, "well", for: calm, &report)
            isDone.store(true, ordering: .relaxed)
            try await watch(daemon, store, "quiet", for: Self.drainLimit, &report) { $0 == 0 }
            try await Task.sleep(for: .seconds(3))
            report.finalMemory = daemon.residentByteCount ?? 0
            try await waitForExpiryCount(daemon)
            gorush.cancel()
            _ = await gorush.result
            group.cancelAll()
        }
        try store.close()
        daemon.process.send(SIGTERM)
        let status = await daemon.process.status
        guard status == 0 else { throw Failed("the daemon ended with \(status): \(daemon.lastLines)") }
        try conclude(report, daemon)
    }

    private func startGorush() async throws -> Task<Void, any Error> {
        let (bounds, bound) = AsyncStream.makeStream(of: Int.self)
        let task = Task { [stage] in
            defer { bound.finish() }
            try await stage.gorush.run(port: stage.gorushPort) { bound.yield($0) }
        }
        for await _ in bounds { return task }
        try await task.value
        throw Failed("the stand-in for gorush ended")
    }

    private func register() async throws -> [Target] {
        try await withThrowingTaskGroup(of: [Target].self) { group in
            for worker in 0..<Self.registrars {
                group.addTask { try await self.register(stride(from: worker, to: self.options.devices, by: Self.registrars)) }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    private func register(_ numbers: StrideTo<Int>) async throws -> [Target] {
        var targets: [Target] = []
        for number in numbers {
            let identity = PrivateKey.generate()
            let client = StatusPushClient(identity: identity, relay: stage.network.relay())
            let running = Task { await client.run() }
            defer { running.cancel() }
            let device = DeviceRegistration(
                platform: .apn, deviceToken: DeviceToken("token-\(number)"), apnTopic: "im.status.ethereum",
                installationID: InstallationID("device-\(number)"), accessToken: AccessToken(UUID().uuidString.lowercased()), version: 1)
            let error = try await client.register(device, with: stage.server, timeout: .seconds(30))
            guard error == nil else { throw Failed("a registration was refused") }
            let key = RegistrationKey(keyHash: KeyHash(of: identity.publicKey), installationID: device.installationID)
            targets.append(Target(key: key, accessToken: device.accessToken))
        }
        return targets
    }

    /// Sends at a constant rate, independent of answers. Some devices get no requests while gorush is unavailable: no notification
    /// waits for them when it returns, so later ones need not queue behind it.
    private func send(to targets: [Target]) async {
        var generator = SeededGenerator(seed: options.common.seed)
        await withDiscardingTaskGroup { group in
            let began = Instant.now
            var count = 0
            while !isDone.load(ordering: .relaxed), !Task.isCancelled {
                count += 1
                try? await Task.sleep(until: began + .seconds(1) * (Double(count) / Double(options.rate)), clock: .continuous)
                let messageID = generator.bytes(32)
                let restingCount = max(1, targets.count / 10)
                let isResting = isAway.load(ordering: .relaxed)
                let index = Int.random(in: (isResting ? restingCount : 0)..<targets.count, using: &generator)
                group.addTask { await self.notify(targets[index], messageID, hasRested: index < restingCount) }
            }
        }
    }

    private func notify(_ target: Target, _ messageID: [UInt8], hasRested: Bool) async {
        let delivery = DeliveryID(messageID: messageID, key: target.key)
        let entry = PushNotification(
            accessToken: target.accessToken, chatID: Shake256.hash64(messageID), publicKey: target.key.keyHash.bytes,
            installationID: target.key.installationID, message: delivery.bytes, kind: .message, author: Shake256.hash64([1]))
        log.sent(delivery, hasRested: hasRested)
        do throws(PushClientError) {
            let reports = try await sender.notify([entry], messageID: messageID, at: stage.server, timeout: .seconds(60))
            for report in reports { log.answered(delivery, report.error) }
        } catch {
            log.fail("a request has no answer: \(error.message)")
        }
    }

    // MARK: Watching

    private struct Report {
        let began: Instant
        var samples: [Sample] = []
        var left = Instant.now
        var returned = Instant.now
        var drained = Instant.now
        var calmMemory = 0
        var peakMemory = 0
        var peakWaiting = 0
        var finalMemory = 0

        init(began: Instant) {
            self.began = began
            print("   time  gorush   memory  waiting    taken   until gorush has it: median, 99 %")
        }
    }

    /// Samples the daemon twice a second, prints a line now and then, and returns when the time has passed, or earlier when `isEnough`.
    private func watch(
        _ daemon: DaemonProcess, _ store: any Store, _ name: String, for time: Duration, _ report: inout Report,
        until isEnough: ((_ waiting: Int) -> Bool)? = nil
    ) async throws {
        let began = Instant.now
        let line = isEnough == nil ? max(.seconds(1), min(.seconds(30), time / 5)) : .seconds(1)
        var lastLine = began
        var taken = log.postCount
        while true {
            try await Task.sleep(for: .milliseconds(500))
            let now = Instant.now
            guard let memory = daemon.residentByteCount else { throw Failed("the daemon is gone: \(daemon.lastLines)") }
            let waiting = try store.read(DeliveryStorage.waitingCount())
            report.samples.append(Sample(memory: memory, waiting: waiting))
            let isOver = now - began >= time || isEnough?(waiting) == true
            if now - lastLine >= line || isOver {
                let latencies = log.requests.filter { $0.sent >= lastLine && $0.sent < now }.compactMap { request in
                    request.posts.first.map { $0 - request.sent }
                }
                let count = log.postCount
                let cells = [
                    ((now - report.began).inSeconds.formatted(.number.precision(.fractionLength(0))) + " s", 7), (name, 8),
                    ("\(memory >> 20) MiB", 9), ("\(waiting)", 9), ("\(count - taken)", 9),
                ]
                print(cells.map { String(repeating: " ", count: max(0, $0.1 - $0.0.count)) + $0.0 }.joined() + "   " + latencies.spread)
                fflush(nil)
                (lastLine, taken) = (now, count)
            }
            if isOver {
                guard now - began < time || isEnough == nil else { throw Failed("the outbox does not get empty") }
                return
            }
        }
    }

    /// The daemon logs its counters once a minute: notifications that were not posted must be counted as expired.
    private func waitForExpiryCount(_ daemon: DaemonProcess) async throws {
        let expected = log.requests.count { $0.posts.isEmpty }
        let deadline = Instant.now + .seconds(130)
        while Self.expiredCount(in: daemon.process.errors) < expected, Instant.now < deadline { try await Task.sleep(for: .seconds(1)) }
        let counted = Self.expiredCount(in: daemon.process.errors)
        print("not delivered: \(expected), counted by the daemon as too old: \(counted)")
        if counted != expected { log.fail("the daemon counted \(counted) notifications as too old, and did not post \(expected)") }
    }

    /// The sum over all summaries in a log.
    private static func expiredCount(in log: String) -> Int {
        log.split(separator: "\n").reduce(0) { sum, line in
            let fields = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return sum + (fields?["notification expired"] as? Int ?? 0)
        }
    }

    // MARK: Conclusions

    private func conclude(_ report: Report, _ daemon: DaemonProcess) throws {
        let age = Duration.seconds(options.age)
        let requests = log.requests
        let unposted = requests.filter { $0.posts.isEmpty }
        let lost = unposted.count { $0.sent + age > report.drained }
        let repeated = requests.count { $0.posts.count > 1 }
        let late = requests.count { request in request.posts.contains { $0 > request.sent + age + Self.lateness } }
        let answers = requests.compactMap { request in request.answered.map { $0 - request.sent } }
        let firstPost = requests.flatMap(\.posts).filter { $0 > report.returned }.min() ?? report.drained
        let meanwhile = requests.filter { $0.sent >= firstPost && $0.sent < report.drained }
        let fresh = meanwhile.filter(\.hasRested)
        let refused = fresh.count { !$0.isSuccess }
        let growth = report.peakMemory - report.calmMemory
        let allowed = Self.memoryAllowance.fixed + Self.memoryAllowance.each * report.peakWaiting
        let lines = [
            ("requests", "\(requests.count)"), ("delivered", "\(requests.count - unposted.count)"), ("more than once", "\(repeated)"),
            ("too old before gorush was back", "\(unposted.count - lost)"), ("lost", "\(lost)"), ("delivered too late", "\(late)"),
            ("answers after, median and 99 %", answers.spread),
            (
                "memory before, at most, at the end",
                [report.calmMemory, report.peakMemory, report.finalMemory].map { "\($0 >> 20) MiB" }.joined(separator: ", ")
            ),
            ("waiting at most", "\(report.peakWaiting)"),
            ("gorush found back after", (firstPost - report.returned).inMilliseconds),
            ("backlog gone after", (report.drained - report.returned).inMilliseconds),
            ("new requests meanwhile", Self.describe(meanwhile)),
            ("of these, to devices that nothing waited for", Self.describe(fresh)),
        ]
        let width = lines.map(\.0.count).max() ?? 0
        for (name, value) in lines { print(name + String(repeating: " ", count: width + 2 - name.count) + value) }
        var failures = Array(Set(log.failures)).sorted().prefix(20).map { $0 }
        if lost > 0 { failures.append("\(lost) notifications were lost") }
        if repeated > 0 { failures.append("\(repeated) notifications were delivered more than once") }
        if late > 0 { failures.append("\(late) notifications were delivered too late") }
        if refused * 100 > fresh.count { failures.append("the backlog kept new requests waiting") }
        if growth > allowed { failures.append("memory grew by \(growth >> 20) MiB") }
        guard failures.isEmpty else { throw Failed(failures.joined(separator: "\n")) }
    }

    private static func describe(_ requests: [OutageLog.Request]) -> String {
        let times = requests.compactMap { request in request.posts.first.map { $0 - request.sent } }
        return "\(requests.count), \(requests.count { !$0.isSuccess }) without success; at gorush after \(times.spread)"
    }
}
