import Foundation
import AdminProtocol
import Gorush
import HealthChecks
import Hummingbird
public import Logging
package import NodeMetrics
import Primitives
public import PushServer
import PushStore
public import ServiceLifecycle
import StatusProtocol
import Synchronization
public import Waku
import WakuCrypto

/// What a relay is to bring to a node.
public struct RelayNeeds: Sendable {
    public let pubsubTopics: [PubsubTopic]
    /// The node's own topics: what was missed there is worth catching up.
    public let ownTopics: [ContentTopic]
    /// Until when an earlier run missed nothing, on the pubsub topics that it listened on.
    public let seenUntil: [PubsubTopic: Timestamp]
    /// Whether a message on this topic is worth handing over.
    public let wants: @Sendable (TopicTag) -> Bool
    /// Those topics at present, for a relay that must name them: the node's own, and as many of registrants as there is room for.
    public internal(set) var contentTopics: @Sendable (_ limit: Int) -> [ContentTopic] = { _ in [] }
    /// What the relay has to tell, beside messages.
    public let report: @Sendable (RelayEvent) -> Void
}

/// A push notification node: everything put together. Runs as a service until it is told to stop.
public final class PushNode: Service {
    /// A line in the log, and pruning, come with every so many upkeeps: once a minute.
    private static let upkeepsPerSummary = 12
    /// When it stops: until requests are answered, posts to gorush have ended, answers are published. Together below 10 s.
    private static let answerLimit = Duration.milliseconds(2500)
    private static let postLimit = Duration.milliseconds(5200)
    private static let publishLimit = Duration.milliseconds(1500)
    /// All rows are looked at for it.
    private static let expiryInterval = Duration.seconds(3600)
    private static let expiryChunk = 200
    private static let aliveProperty = "alive at"
    private static let memoryRowLimit = 2_000_000
    /// For how long tombstones of installations that were never registered are kept.
    private static let unfoundedLifetime = Duration.seconds(30 * 24 * 3600)
    private static let unfoundedChunk = 2_000
    /// Longer than what is looked at again before a cursor, with what senders' clocks may be off.
    private static let handledMargin = Duration.seconds(180)

    let configuration: NodeConfiguration
    let relay: any Relay
    let store: Store
    private let folder: DataFolder
    let topics: TopicTable
    let deliveries: Deliveries
    private let feedback: Feedback
    private let publisher: Publisher
    private let pipeline: Pipeline
    private let precomputation: TopicKeyPrecomputation?
    private let gate: Gate
    private let handled = HandledMessages()
    private let gauges: NodeGauges
    let watch: NodeWatch
    private let statusSource: StatusSource
    let logger: Logger
    private let now: @Sendable () -> Timestamp
    package let counters: Counters
    let topicKeys: TopicKeys
    /// When the first notification that waits is given up.
    let firstExpiryReading: PacedReading<Timestamp?>
    let drain = Drain()
    let probe: SelfProbe
    let started = Date()
    private let boundPort = Mutex<Int?>(nil)
    /// The port of the HTTP address once it is listened on, which differs when that is port 0.
    public var httpPort: Int? { boundPort.withLock(\.self) }

    /// Opens the data folder, and puts the parts together. Nothing runs yet.
    ///
    /// - Throws: `StoreError`, and what `makeRelay` throws.
    public init(
        _ configuration: NodeConfiguration, gorush: [GorushEndpoint], logger: Logger,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        let identity = configuration.identity
        self.configuration = configuration
        self.logger = logger
        self.now = now
        counters = Counters(MetricGroup.all)
        folder = try DataFolder(locking: configuration.dataPath)
        store = try Store(folder: configuration.dataPath, storageKey: Store.storageKey(of: identity))
        firstExpiryReading = PacedReading(pause: .zero, restFactor: 0) { [store] in try await store.fetch { try $0.firstExpiry() } }
        topics = TopicTable(server: identity.publicKey)
        try topics.load(from: store)
        topicKeys = TopicKeys(store: store, counters: counters)
        probe = SelfProbe(topic: topics.ownContentTopics[0])

        let alarms = Alarms(registry: counters.registry, now: now)
        relay = try makeRelay(
            RelayNeeds(
                pubsubTopics: configuration.pubsubTopics, ownTopics: topics.ownContentTopics,
                seenUntil: try store.read { try RelayCursors.read(of: configuration.pubsubTopics, from: $0) },
                wants: { [topics] in topics.match($0) != nil },
                contentTopics: { [topics] in topics.contentTopics(limit: $0) },
                report: { [counters] event in
                    counters.add(event)
                    if case .gap = event { alarms.raise(.gap, "what the relay's store has is looked up") }
                }))

        let registrations = RegistrationRules(
            identity: identity, isIdempotent: configuration.idempotentRegistrations,
            serves: { [routing = GorushRouting(gorush.map(\.rule))] in routing.endpoint(for: $0, apnTopic: $1) != nil })
        let requests = RequestRules(maximumAge: configuration.maximumRequestAge)
        let seen = SeenMessages()
        for hash in try store.read({ try $0.handledMessages() }) { _ = seen.insert(hash) }
        let versions = RecentVersions()
        gate = Gate(configuration.limits, counters: counters)
        if gate.countsRegistrations { gate.counted(registrations: try store.read { try $0.countedRegistrations() }) }
        publisher = Publisher(
            identity: identity, relay: relay, seen: seen, handled: handled, counters: counters, logger: logger,
            replyDelay: configuration.replyDelay)
        var queue = DeliveryQueue.Configuration()
        queue.limit = configuration.outboxLimit
        queue.patience = configuration.answerDeadline
        feedback = Feedback(store: store, counters: counters, alarms: alarms, logger: logger, now: now)
        deliveries = Deliveries(
            store: store, gorush: gorush, publisher: publisher, feedback: feedback, counters: counters, logger: logger,
            answerDeadline: configuration.answerDeadline, queue: queue, now: now)
        try deliveries.load()
        precomputation = configuration.deriveAheadLimit.map { [store, counters] in
            TopicKeyPrecomputation(
                store: store, counters: counters, limit: $0, isIdle: configuration.derivesAheadWhenIdle, logger: logger)
        }
        pipeline = Pipeline(
            topics: topics, topicKeys: topicKeys, precomputation: precomputation, seen: seen, handled: handled,
            opener: Opener(identity: identity, registrations: registrations, requests: requests, versions: versions, gate: gate),
            versions: versions,
            decider: Decider(registrations: registrations, requests: requests, gate: gate, drain: drain), gate: gate,
            queries: QueryRules(server: identity.publicKey), store: store, deliveries: deliveries, publisher: publisher,
            counters: counters, logger: logger, limit: configuration.workLimit, now: now)
        gauges = NodeGauges(
            counters: counters, relay: relay, store: store, topics: topics, deliveries: deliveries, feedback: feedback,
            publisher: publisher, pipeline: pipeline, precomputation: precomputation, alarms: alarms,
            maximumRequestAge: configuration.maximumRequestAge, now: now)
        watch = NodeWatch(
            alarms: alarms, relay: relay, store: store, counters: counters, deliveries: deliveries,
            silenceAlarm: configuration.silenceAlarm, logger: logger, now: now)
        statusSource = StatusSource(
            counters: counters, gauges: gauges, watch: watch, relay: relay, store: store, deliveries: deliveries, topics: topics,
            now: now, started: .now)
    }

    /// With one gorush for all.
    public convenience init(
        _ configuration: NodeConfiguration, gorush: any NotificationPosting, logger: Logger,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        try self.init(configuration, gorush: [GorushEndpoint(gorush)], logger: logger, now: now, makeRelay: makeRelay)
    }

    /// Runs until graceful shutdown: then it takes no more, finishes what is in hand, and returns.
    ///
    /// - Throws: ``NodeError`` when the HTTP address can't be used.
    public func run() async throws {
        logger.info(
            "node started",
            metadata: [
                "key": "\(configuration.identity.publicKey.hex)", "topics": "\(topics.queryTopicCount)",
                "waiting": "\(deliveries.waitingCount)", "http": "\(configuration.httpAddress?.description ?? "off")",
                "silence-alarm": "\(configuration.silenceAlarm?.inWords ?? "off")",
            ])
        try await withThrowingTaskGroup(of: Part.self) { group in
            group.addTask {
                try await self.serveHealth()
                return .health
            }
            group.addTask {
                await self.serveAdmin()
                return .admin
            }
            group.addTask {
                await self.watch.run()
                return .watch
            }
            group.addTask {
                await self.keepUp()
                return .upkeep
            }
            if let precomputation {
                group.addTask {
                    await precomputation.run()
                    return .precomputation
                }
            }
            group.addTask {
                await self.work()
                return .work
            }
            for try await part in group where part == .work { break }
            group.cancelAll()
        }
        await relay.close()
        await saveCursor()
        do {
            try store.close()
        } catch {
            // The log of the database stays, and is read at the next start.
            logger.warning("store not closed")
        }
        folder.unlock()
        logger.info("node stopped")
    }

    private enum Part {
        case work, publishing, posting, health, admin, upkeep, watch, precomputation
    }

    /// Other limits from now on, and other keys that may register.
    public func replaceLimits(_ limits: Limits) {
        gate.replace(limits)
    }

    // MARK: Work

    private func work() async {
        await withTaskGroup(of: Part.self) { group in
            group.addTask {
                await self.publisher.run()
                return .publishing
            }
            group.addTask {
                await self.deliveries.run()
                return .posting
            }
            group.addTask {
                await self.relayUntilShutdown()
                let stopping = ContinuousClock.now
                self.logger.info("stopping")
                await self.wait(Self.answerLimit) { self.pipeline.isIdle && !self.deliveries.hasRequests }
                self.deliveries.postNoMore()
                await self.wait(Self.postLimit) { !self.deliveries.isPosting }
                if self.deliveries.isPosting {
                    self.logger.warning(
                        "posts to gorush are unanswered at the stop: their notifications are posted again after the start",
                        metadata: ["count": "\(self.deliveries.unansweredCount)"])
                }
                self.publisher.finish()
                // Replies that are held leave at their time. Returns earlier by the publisher's end.
                let end = max(.now, stopping + self.configuration.replyDelay) + Self.publishLimit
                try? await Task.sleep(until: end, clock: .continuous)
                return .work
            }
            for await part in group where part != .posting { break }
            group.cancelAll()
        }
    }

    private func relayUntilShutdown() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.relay.run { await self.pipeline.take(self.probe.take($0)) } }
            group.addTask { try? await gracefulShutdown() }
            await group.next()
            group.cancelAll()
        }
    }

    private func wait(_ limit: Duration, until condition: () -> Bool) async {
        let deadline = ContinuousClock.now + limit
        while !condition(), ContinuousClock.now < deadline, (try? await Task.sleep(for: .milliseconds(10))) != nil {}
    }

    // MARK: Health

    private func serveHealth() async throws {
        guard let address = configuration.httpAddress else { return }
        let endpoint = configuration.feedbackSecret.map { FeedbackEndpoint(secret: $0, feedback: feedback, counters: counters) }
        let server = HealthServer(
            address: address, hostNames: configuration.httpHosts, feedback: endpoint, obstacles: { self.obstacles },
            metrics: { await self.gauges.exposition(as: $0, isReady: self.obstacles.isEmpty) },
            status: { await self.statusSource.status(obstacles: self.obstacles) },
            bound: { port in self.boundPort.withLock { $0 = port } }, logger: logger)
        do {
            try await server.run()
        } catch {
            throw NodeError(message: "\(address) can't be listened on: is another program using it? Choose another by --http")
        }
    }

    /// What stands in the way of being ready; empty when nothing does.
    public var obstacles: [String] {
        findings.filter { $0.verdict == .fail }.map { "\($0.check): \($0.text)" }
    }

    /// Without it the node runs all the same: it is seen and steered less.
    private func serveAdmin() async {
        guard configuration.servesAdmin else { return }
        guard let socket = AdminSocket(in: configuration.dataPath) else {
            return logger.error("admin socket not served", metadata: ["reason": "the data folder can't be opened"])
        }
        do {
            try await AdminServer(node: self, socket: socket, logger: logger).run()
        } catch {
            logger.error("admin socket not served", metadata: ["reason": "it can't be made in the data folder"])
        }
    }

    /// Returns once something went the way that a message's change and its delivery go. A store that fails shows life as well: the node goes on
    /// without. One that hangs does not, nor do deliveries that do.
    public func showLife() async {
        await store.settle()
        _ = deliveries.waitingCount
    }

    // MARK: Upkeep

    /// Notes how far the relay has been seen, which shows at the same time whether the store can be written; says a line a minute; prunes.
    private func keepUp() async {
        var sinceSummary = 0
        var lastExpiry = ContinuousClock.now - Self.expiryInterval
        var last: [Counter: Int] = [:]
        var forgetting = ForgettingClock(memory: configuration.memory)
        let started = ContinuousClock.now
        // What the clock shows now is what later steps of it are measured by: the first round of upkeep may take its time.
        _ = forgetting.cutoff(clock: now(), uptime: .zero)
        // From its very start a life is to be gone on from.
        await saveCursor()
        while (try? await Task.sleep(for: configuration.upkeepInterval)) != nil {
            await saveCursor()
            await store.keepUp()
            let cutoff = forgetting.cutoff(clock: now(), uptime: .now - started)
            sinceSummary += 1
            guard sinceSummary >= Self.upkeepsPerSummary else { continue }
            sinceSummary = 0
            let counts = counters.snapshot
            summarize(counts, since: last)
            last = counts
            await prune(before: cutoff)
            await recount()
            if ContinuousClock.now - lastExpiry > Self.expiryInterval {
                lastExpiry = .now
                await expireRegistrations()
            }
        }
    }

    private func saveCursor() async {
        let (seenUntil, now, handled) = (relay.seenUntil, now(), handled.take())
        // What a relay looks at again begins earlier than its cursor.
        let forgettable = min(seenUntil.values.min() ?? now, now) - Self.handledMargin
        do {
            try await store.commit { transaction in
                // Written each time, so that a store that can't be written to, or can again, shows.
                try transaction.setProperty(Self.aliveProperty, now.bytes)
                try RelayCursors.write(seenUntil, to: transaction)
                try transaction.remember(handled: handled, at: now)
                try transaction.forgetHandled(before: forgettable)
            }
        } catch {
            self.handled.putBack(handled)
            logger.error("store not writable", metadata: ["reason": "\(error.message)"])
        }
    }

    private func prune(before cutoff: Timestamp) async {
        do {
            try await store.commit { try $0.prune(before: cutoff, keeping: Self.memoryRowLimit) }
            let unfounded = cutoff + configuration.memory - Self.unfoundedLifetime
            var count = Self.unfoundedChunk
            while count == Self.unfoundedChunk {
                count = try await store.commit { try $0.forgetUnfounded(before: unfounded, limit: Self.unfoundedChunk) }
            }
        } catch {
            logger.error("old answers not pruned", metadata: ["reason": "\(error.message)"])
        }
    }

    private func recount() async {
        guard gate.countsRegistrations, let count = try? await store.fetch({ try $0.countedRegistrations() }) else { return }
        gate.counted(registrations: count)
    }

    /// Ends what was not renewed: as if the client had, so that its old messages don't revive it.
    private func expireRegistrations() async {
        guard let lifetime = configuration.registrationLifetime else { return }
        let now = now()
        let cutoff = now - lifetime
        do {
            let old = try await store.fetch { try $0.registrations(unchangedSince: cutoff) }
            for start in stride(from: 0, to: old.count, by: Self.expiryChunk) {
                let chunk = old[start..<min(start + Self.expiryChunk, old.count)]
                let ended = try await store.commit { transaction in
                    try chunk.filter { try transaction.expire($0, unchangedSince: cutoff, at: now) }
                }
                counters.add(.registrationExpired, ended.count)
                for key in ended { topicKeys.forget(QueryTopics(of: key.keyHash)) }
            }
        } catch {
            logger.error("registrations that were not renewed did not end", metadata: ["reason": "\(error.message)"])
        }
    }

    private func summarize(_ counts: [Counter: Int], since last: [Counter: Int]) {
        var metadata: Logger.Metadata = ["topics": "\(topics.queryTopicCount)", "waiting": "\(deliveries.waitingCount)"]
        for (counter, count) in counts {
            let difference = count - (last[counter] ?? 0)
            if difference > 0 { metadata[counter.name] = "\(difference)" }
        }
        logger.info("last minute", metadata: metadata)
    }
}

/// Why a node can't run. The message says how to mend it.
public struct NodeError: Error, Hashable, Sendable, CustomStringConvertible {
    public let message: String
    public var description: String { message }
}

extension Counters {
    fileprivate func add(_ event: RelayEvent) {
        switch event {
        case .foreign(let count):
            received(count)
            add(.foreign, count)
        case .gap: add(.gapFound)
        case .recovered(let count): add(.messageRecovered, count)
        }
    }
}
