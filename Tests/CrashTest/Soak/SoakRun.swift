import Core
import Foundation
import LoopbackRelay
import NodeAssembly
import PushClient
import StatusProtocol
import Storage
import Synchronization
import TestSupport
import WakuCrypto

/// One daemon under load, which is measured at intervals.
final class SoakRun: Sendable {
    /// The trouble of an interval; these follow each other in this order, repeatedly.
    private enum Trouble: String, CaseIterable {
        case none, gorushRefuses = "gorush refuses", reload, gorushSlow = "gorush slow", backup, relayRestarts = "relay restarts"
    }

    /// The promises made until now are compared with the database after this many intervals.
    private static let checkPeriod = 10
    private static let probeCount = 5
    /// A client asks again when the relay lost its question.
    private static let attempts = 5
    private static let installationID = InstallationID("probe")

    private let crash: CrashRun
    private let options: Soak
    private let identity = PrivateKey.generate()
    /// Its queries are timed.
    private let probe: StatusPushClient
    private let records = Mutex<[SoakRecord]>([])

    private var stage: Stage { crash.stage }
    private var interval: Duration { .seconds(options.interval) }

    init(_ crash: CrashRun, _ options: Soak) {
        self.crash = crash
        self.options = options
        probe = StatusPushClient(identity: identity, relay: crash.stage.network.relay())
    }

    /// - Throws: ``Failed``
    func run() async throws {
        let daemon = try crash.start(limit: .seconds(options.seconds) + .seconds(600))
        try await crash.noteReady(daemon)
        let running = Task { [probe] in await probe.run() }
        defer { running.cancel() }
        try await registerProbe()
        print(SoakRecord.heading)
        defer { if let session = crash.session { crash.ledger.withLock { $0.figures.add(session.figures) } } }
        try await crash.withClients { [self] in try await endure(daemon) }
        await crash.session?.shutDown()
        let growths = SoakTrend(records.withLock(\.self)).growths
        guard growths.isEmpty else { throw Failed(growths.joined(separator: "; ")) }
    }

    private func endure(_ daemon: DaemonProcess) async throws {
        let store = try stage.store()
        var generator = SeededGenerator(seed: options.common.seed)
        let began = ContinuousClock.now
        var before = counts
        for number in 0..<options.seconds / options.interval {
            let trouble = Trouble.allCases[number % Trouble.allCases.count]
            try await crash.inRound(number + 1) {
                stage.gorush.set(trouble == .gorushSlow ? .well(300...900) : .well(0...10))
                try await bring(trouble, to: daemon)
                try await sleep(until: began + interval * (number + 1))
                let record = try await measure(daemon, store, trouble, at: .now - began, since: before)
                let records = records.withLock {
                    $0.append(record)
                    return $0
                }
                if let file = options.csv { try SoakRecord.csv(records).write(toFile: file, atomically: true, encoding: .utf8) }
                print(record.line)
                fflush(nil)
                before = counts
                if (number + 1).isMultiple(of: Self.checkPeriod) { try await crash.check(daemon, &generator) }
            }
        }
        stage.gorush.set(.well(0...10))
        try await crash.inRound(0) {
            try await crash.awaitClientsAndOutbox()
            try await crash.check(daemon, &generator, isLast: true)
            try store.close()
            try await crash.stop(daemon)
            try await crash.examine(daemon)
        }
    }

    private func bring(_ trouble: Trouble, to daemon: DaemonProcess) async throws {
        switch trouble {
        case .none, .gorushSlow: return
        case .gorushRefuses:
            stage.gorush.set(.failing)
            try await Task.sleep(for: interval / 3)
            stage.gorush.set(.well(0...10))
        case .reload: daemon.process.send(SIGHUP)
        case .backup:
            guard case .dataFolder = stage.location else { return }
            let file = stage.folder.path + "/backup"
            let (status, output) = try await stage.run(["admin", "backup", file])
            guard status == 0 else { throw Failed("a backup ended with \(status): \(output)") }
            try FileManager.default.removeItem(atPath: file)
        case .relayRestarts: stage.network.restart()
        }
    }

    // MARK: Measuring

    private var counts: (asked: Int, posts: Int) {
        crash.ledger.withLock { ledger in
            (ledger.figures.counts[.asked, default: 0], ledger.figures.counts[.posts, default: 0])
        }
    }

    private func measure(
        _ daemon: DaemonProcess, _ store: any Store, _ trouble: Trouble, at time: Duration, since before: (asked: Int, posts: Int)
    ) async throws -> SoakRecord {
        guard let resources = daemon.resources else { throw Failed("the daemon is gone: \(daemon.lastLines)") }
        let latencies = try await queryTimes()
        let now = counts
        return SoakRecord(
            time: time, trouble: trouble.rawValue, memory: resources.memory, descriptors: resources.descriptors, threads: resources.threads,
            database: store.byteCount, asked: now.asked - before.asked, posts: now.posts - before.posts,
            latency: latencies[latencies.count / 2], longestLatency: latencies[latencies.count - 1])
    }

    /// The times of queries, in ascending order.
    private func queryTimes() async throws -> [Duration] {
        var latencies: [Duration] = []
        for _ in 0..<Self.probeCount {
            let began = ContinuousClock.now
            try await query()
            latencies.append(.now - began)
        }
        return latencies.sorted()
    }

    private func query() async throws {
        for _ in 1..<Self.attempts {
            if (try? await probe.query(identity.publicKey, at: stage.server, timeout: .seconds(3))) != nil { return }
        }
        _ = try await probe.query(identity.publicKey, at: stage.server, timeout: .seconds(3))
    }

    private func registerProbe() async throws {
        let device = DeviceProfile(platform: .apn, deviceToken: DeviceToken("probe"), apnTopic: "im.status.ethereum")
        let error = try await probe.register(
            device, as: Self.installationID, accessToken: AccessToken(UUID().uuidString.lowercased()), version: 1, with: stage.server,
            timeout: .seconds(30))
        guard error == nil else { throw Failed("a registration was refused") }
    }

    private func sleep(until time: ContinuousClock.Instant) async throws {
        try await Task.sleep(until: time, clock: .continuous)
    }
}
