import Foundation
import LoopbackRelay
import Synchronization
import TestSupport
import Core
import Waku
import WakuCrypto

/// Kills the daemon repeatedly under load, and checks it after each end and each start.
final class CrashRun: Sendable {
    /// The capacity of the network's store, in messages. Its messages of the last minute are delivered again at each start.
    static let archiveCount = 600
    static let phoneCount = 10
    private static let repeatedPercentage = 10

    let stage: Stage
    private let seed: UInt64
    let ledger: LedgerBox
    let replies: Bell
    let phones: [any CrashClient]
    let v01: V01Crash
    /// nil when its libraries are not installed.
    let session: SessionCrash?
    /// How many of the three kinds of clients have ended.
    let endedLoads = Atomic(0)

    init(
        _ stage: Stage, seed: UInt64, ledger: LedgerBox, replies: Bell, includesSession: Bool = true, phoneCount: Int = phoneCount
    ) async throws {
        self.stage = stage
        self.seed = seed
        self.ledger = ledger
        self.replies = replies
        v01 = V01Crash(stage, seed: seed)
        session = includesSession ? try await SessionCrash.make(in: stage, seed: seed) : nil
        phones = (0..<phoneCount).map { number in
            let makeRelay: @Sendable () -> any Relay = {
                RepeatingRelay(stage.network, percentage: Self.repeatedPercentage, seed: seed &+ 100 &+ UInt64(number)) {
                    ledger.withLock { $0.figures.add(.repeatedByNetwork) }
                }
            }
            guard number % 5 < 3 else { return RememberedPhone(number, stage: stage, ledger: ledger, makeRelay: makeRelay) }
            return Phone(number, server: stage.server, ledger: ledger, relay: makeRelay())
        }
    }

    /// - Throws: ``Failed``, with the round.
    func run(rounds: Int) async throws {
        defer { if let session { ledger.withLock { $0.figures.add(session.figures) } } }
        let firstStarts = max(1, rounds / 20)
        try await killFirstStarts(firstStarts)
        try await withClients { try await self.endDaemons(firstStarts + 1, rounds) }
        await session?.shutDown()
    }

    /// Runs `body` under load, then stops the clients.
    func withClients(_ body: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for phone in phones {
                group.addTask {
                    await phone.run()
                    return false
                }
            }
            let loads: [@Sendable () async -> Void] = [
                { await self.live() }, { await self.v01.live() }, { await self.session?.live() },
            ]
            for live in loads {
                group.addTask {
                    await live()
                    self.endedLoads.add(1, ordering: .relaxed)
                    return false
                }
            }
            group.addTask {
                defer { self.stopClients() }
                try await body()
                return true
            }
            defer { group.cancelAll() }
            for try await isDone in group where isDone { break }
        }
    }

    func stopClients() {
        for phone in phones { phone.stop() }
        v01.stop()
        session?.stop()
    }

    private func killFirstStarts(_ count: Int) async throws {
        var generator = SeededGenerator(seed: seed)
        for round in 1...count {
            try await inRound(round) { try await killFirstStart(moment: Double.random(in: 0...1, using: &generator)) }
        }
    }

    private func endDaemons(_ first: Int, _ last: Int) async throws {
        var generator = SeededGenerator(seed: seed &+ 1)
        for round in first...max(first, last) {
            try await inRound(round) { try await endDaemon(KillPlan(using: &generator), &generator) }
        }
        try await inRound(last + 1) { try await finish(&generator) }
    }

    private func live() async {
        await withDiscardingTaskGroup { group in
            for (index, phone) in phones.enumerated() {
                group.addTask { await phone.live(self.seed &+ 1000 &+ UInt64(index)) }
            }
        }
    }

    func inRound(_ round: Int, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            throw Failed("in round \(round): \(error)")
        }
        let broken = ledger.withLock { $0.broken }
        guard broken.isEmpty else { throw Failed("in round \(round):\n" + broken.prefix(50).joined(separator: "\n")) }
    }

    // MARK: Rounds

    /// Kills a first start in a separate folder, which must remain usable.
    private func killFirstStart(moment: Double) async throws {
        let data = stage.folder.path + "/first"
        defer { try? FileManager.default.removeItem(atPath: data) }
        let first = try start(data: data)
        try await Task.sleep(for: typicalStart * moment)
        _ = await first.kill()
        let second = try start(data: data)
        try await noteReady(second)
        ledger.withLock { $0.figures.noteKill(.firstStart) }
        _ = await second.kill()
    }

    private func endDaemon(_ plan: KillPlan, _ generator: inout SeededGenerator) async throws {
        stage.gorush.set(plan.mood)
        let daemon = try start()
        if plan.phase == .startUp || plan.isHasty {
            try await Task.sleep(for: typicalStart * 1.5 * plan.moment)
        } else {
            try await noteReady(daemon)
            try await check(daemon, &generator)
        }
        var phase = plan.phase
        switch plan.phase {
        case .firstStart, .goneBeforeKill, .startUp: try await kill(daemon)
        case .load:
            try await Task.sleep(for: .milliseconds(600) * plan.moment)
            try await kill(daemon)
        case .delivery:
            await replies.wait(for: plan.count, limit: .seconds(2))
            try await Task.sleep(for: .milliseconds(3) * plan.moment)
            try await kill(daemon)
        case .answer:
            await ledger.answers.wait(for: plan.count, limit: .seconds(2))
            try await Task.sleep(for: .milliseconds(3) * plan.moment)
            try await kill(daemon)
        case .shutDown:
            if !plan.isHasty { try await Task.sleep(for: .milliseconds(300) * Double.random(in: 0...1, using: &generator)) }
            daemon.process.send(SIGTERM)
            // Most pauses are short, some are long.
            try await Task.sleep(for: typicalStop * plan.moment * plan.moment)
            if try await kill(daemon, afterSignal: true) != -SIGKILL { phase = .goneBeforeKill }
        case .stop:
            try await Task.sleep(for: .milliseconds(300) * plan.moment)
            try await stop(daemon)
        }
        ledger.withLock { [phase] in $0.figures.noteKill(phase) }
        try await examine(daemon)
        if plan.forgets { forget() }
    }

    /// Clears the network's store and the cache for pollers.
    func forget() {
        let topic = ContentTopic(TopicTag(of: "junk"))
        for number in 0..<Self.archiveCount {
            stage.network.publish(
                WakuMessage(payload: Array("junk \(number)".utf8), contentTopic: topic, timestamp: .now()), on: .statusDefault)
        }
        stage.network.restart()
    }

    func start(data: String? = nil, limit: Duration = .seconds(600)) throws -> DaemonProcess {
        let number = ledger.withLock { $0.started() }
        session?.started()
        return try stage.start(
            number, data: data,
            arguments: ["--max-request-age", "2h"] + V01Crash.arguments + (try session?.arguments() ?? []), limit: limit)
    }

    /// Shorter than the time that a stopping node waits for posts.
    private static let stopLimit = Duration.seconds(5)

    func noteReady(_ daemon: DaemonProcess) async throws {
        let time = try await daemon.waitUntilReady()
        ledger.withLock { $0.figures.startTimes.append(time) }
    }

    /// Returns the exit code, which is negative when a signal ended the process.
    ///
    /// - Parameter afterSignal: the process may have ended by itself.
    @discardableResult
    func kill(_ daemon: DaemonProcess, afterSignal: Bool = false) async throws -> Int32 {
        let time = await daemon.kill()
        let status = await daemon.process.status
        ended(daemon, .killed(time))
        guard status == -SIGKILL || (afterSignal && [0, -SIGTERM].contains(status)) else {
            throw Failed("daemon \(daemon.number) ended by itself with \(status): \(daemon.lastLines)")
        }
        return status
    }

    func stop(_ daemon: DaemonProcess) async throws {
        let began = ContinuousClock.now
        daemon.process.send(SIGTERM)
        let status = await daemon.process.status
        guard status == 0 else { throw Failed("daemon \(daemon.number) ended with \(status) on SIGTERM: \(daemon.lastLines)") }
        let took = ContinuousClock.now - began
        // On a starved machine: a post that takes that long is given up when the node stops, with an unknown outcome.
        ended(daemon, took < Self.stopLimit ? .stopped : .killed(.now))
        ledger.withLock { $0.figures.stopTimes.append(took) }
    }

    private func ended(_ daemon: DaemonProcess, _ end: DaemonEnd) {
        ledger.withLock { $0.ended(daemon.number, end) }
        session?.ended(daemon.number, end)
    }

    private var typicalStart: Duration { ledger.withLock { $0.figures.startTimes.suffix(9).max() } ?? .milliseconds(300) }
    private var typicalStop: Duration { ledger.withLock { $0.figures.stopTimes.suffix(9).max() } ?? .milliseconds(500) }
}
