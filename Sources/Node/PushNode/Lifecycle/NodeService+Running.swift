import NodeAPI
import Delivery
import Dispatch
import Logging
import Core
import ServiceLifecycle
import Storage
import Synchronization
import Waku
import WakuCrypto

/// Running a node, from start to shutdown.
extension NodeService {
    /// Limits during shutdown: for answering requests, for posts to gorush, for publishing answers.
    private static let answerLimit = Duration.milliseconds(2500)
    private static let postLimit = Duration.milliseconds(5200)
    private static let publishLimit = Duration.milliseconds(1500)
    /// How long after the beginning of the shutdown the node waits for other nodes to take over its devices.
    private static let handoverEnd = Duration.milliseconds(7500)
    /// How long after the beginning of the shutdown the node publishes answers: between this and ``NodeConfiguration/stopLimit``, the relay sends them
    /// and closes, which takes up to 800 ms, and at the same time the cursors are stored.
    private static let publishEnd = Duration.seconds(8)

    /// Runs until graceful shutdown; then stops accepting messages, finishes its work in progress, and returns, at the latest after
    /// ``NodeConfiguration/stopLimit``. If that has passed, the process must exit: what the node waits for goes on.
    ///
    /// - Throws: ``NodeError`` when an address can't be listened on, the HTTP address or a protocol's.
    package func run() async throws {
        let limit = configuration.stopLimit
        let hasEnded = try await StopDeadline(limit: limit).run { try await self.runToEnd() }
        if hasEnded { return }
        // The data folder stays locked until the process exits.
        base.logger.warning(
            "stop abandoned; unfinished commits have an unknown outcome, as after kill -9",
            metadata: [
                "after": "\(limit.inWords)", "reason": "\(store.failure ?? "the database, the relay or an HTTP request does not answer")",
            ])
    }

    /// Takes no share, receives nothing and posts nothing before it has all its ports: a node whose port is in use ends, and is started again each
    /// second. Protocols begin after the node's own port, since they may receive as soon as they run.
    private func runToEnd() async throws {
        var parts: [@Sendable () async throws -> Void] = [
            logStart, serveHealth, serveAdmin, observation.watch.run, maintenance.saveHandledMessages,
            { if await self.wait(until: { self.hasPorts }) { await self.maintenance.run() } },
            { if await self.wait(until: { self.hasPorts }) { await self.cluster.run(self.clusterDuties) } },
        ]
        for service in services {
            parts.append { if await self.wait(until: { self.hasOwnPort }) { try await service.run() } }
        }
        let hasWorked = Mutex(false)
        do {
            try await run(parts) { hasWorked.withLock { $0 = true } }
        } catch {
            await end(hasWorked: hasWorked.withLock(\.self))
            throw error
        }
        await end(hasWorked: hasWorked.withLock(\.self))
        base.logger.info("node stopped")
    }

    /// - Parameter noteWork: called when the node has its ports.
    private func run(_ parts: [@Sendable () async throws -> Void], noteWork: @escaping @Sendable () -> Void) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for part in parts {
                group.addTask {
                    try await part()
                    return false
                }
            }
            group.addTask {
                guard await self.wait(until: { self.hasPorts }) else { return true }
                noteWork()
                await self.work()
                return true
            }
            for try await isOver in group where isOver { break }
            group.cancelAll()
        }
    }

    /// - Parameter hasWorked: false if the node did not get its ports. Cursors would say that it had been there for registrations meanwhile.
    private func end(hasWorked: Bool) async {
        async let relayIsClosed: Void = path.relay.close()
        await cluster.leave()
        if hasWorked { await maintenance.saveCursors() }
        await closeStore()
        await relayIsClosed
        base.folder.unlock()
    }

    /// Waits outside the cooperative thread pool, so that the deadline of the stop has a thread to run on.
    private func closeStore() async {
        await withCheckedContinuation { closed in
            DispatchQueue.global().async {
                do {
                    try self.store.close()
                } catch {
                    // SQLite's write-ahead log remains, and is applied at the next start.
                    self.base.logger.warning("failed to close the store")
                }
                closed.resume()
            }
        }
    }

    /// Logs the start once all ports are bound: its own and those of its protocols. Does nothing if the node stops before.
    private func logStart() async {
        guard await wait(until: { self.isListening }) else { return }
        let port = httpPort ?? 0
        let http = configuration.httpAddress.map { SocketAddress(host: $0.host, port: port).description }
        base.logger.info(
            "node started",
            metadata: [
                "key": "\(configuration.identity.publicKey.hex)", "topics": .stringConvertible(topicCount),
                "waiting": .stringConvertible(delivery.waitingCount), "http": "\(http ?? "off")",
                "silence-alarm": "\(configuration.silenceAlarm?.inWords ?? "off")",
            ])
        for service in services { await service.countDevices() }
        for finding in services.flatMap(\.findings) where finding.check == NodeChecks.devicesCheck {
            base.logger.warning("devices without endpoint", metadata: ["reason": "\(finding.text)", "remedy": "\(finding.remedy ?? "")"])
        }
    }

    private var hasOwnPort: Bool { configuration.httpAddress == nil || httpPort != nil }
    private var hasPorts: Bool { hasOwnPort && services.allSatisfy(\.hasPort) }
    private var isListening: Bool { hasOwnPort && services.allSatisfy(\.isListening) }

    /// - Returns: false if the node stops before.
    private func wait(until condition: @escaping @Sendable () -> Bool) async -> Bool {
        if condition() { return true }
        return await cancelWhenGracefulShutdown {
            while !condition() {
                guard (try? await Task.sleep(for: .milliseconds(10))) != nil else { return false }
            }
            return true
        }
    }

    // MARK: Work

    private func work() async {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await self.path.publisher.run()
                return true
            }
            group.addTask {
                await self.delivery.run()
                return false
            }
            group.addTask {
                await self.relayUntilShutdown()
                let stopping = ContinuousClock.now
                self.base.logger.info("stopping")
                self.cluster.beginLeaving()
                await self.wait(Self.answerLimit) { self.isIdle && self.delivery.awaitingCount == 0 }
                self.delivery.stopPosting()
                await self.wait(Self.postLimit) { !self.delivery.isPosting }
                let unansweredCount = self.delivery.unansweredCount
                if unansweredCount > 0 {
                    self.base.logger.warning(
                        "posts to gorush unanswered at shutdown; their notifications are posted again after the restart",
                        metadata: ["count": .stringConvertible(unansweredCount)])
                }
                await self.wait(max(.zero, Self.handoverEnd - (.now - stopping))) { self.cluster.hasLeft }
                self.store.stopWaiting()
                self.path.publisher.finish()
                // Held replies are published when they are due. The group returns earlier if the publisher ends.
                let end = min(max(.now, stopping + self.configuration.replyDelay) + Self.publishLimit, stopping + Self.publishEnd)
                try? await Task.sleep(until: end, clock: .continuous)
                return true
            }
            for await isOver in group where isOver { break }
            group.cancelAll()
        }
    }

    private func relayUntilShutdown() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.path.relay.run { await self.path.take(self.probe.take($0), at: self.base.now()) } }
            group.addTask { try? await gracefulShutdown() }
            await group.next()
            group.cancelAll()
        }
    }

    /// Whether no message is on its way to the store.
    var isIdle: Bool { services.allSatisfy { $0.receiver.isIdle } }

    private func wait(_ limit: Duration, until condition: () -> Bool) async {
        let deadline = ContinuousClock.now + limit
        while !condition(), ContinuousClock.now < deadline, (try? await Task.sleep(for: .milliseconds(10))) != nil {}
    }
}
