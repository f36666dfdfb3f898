import NodeAPI
import Delivery
import Logging
import NodeMetrics
import RateLimits
import Core
import Storage
import Synchronization
import Waku

/// The growth of each counter in the last whole minute, without zeros.
private final class LastMinute: Sendable {
    private let counts = Mutex<[Counter: Int]>([:])

    var all: [Counter: Int] { counts.withLock(\.self) }

    subscript(_ counter: Counter) -> Int { counts.withLock { $0[counter] ?? 0 } }

    func set(_ new: [Counter: Int], since old: [Counter: Int]) {
        let growth = new.reduce(into: [Counter: Int]()) { growth, entry in
            let difference = entry.value - (old[entry.key] ?? 0)
            if difference > 0 { growth[entry.key] = difference }
        }
        counts.withLock { $0 = growth }
    }
}

private final class Activity: Sendable {
    /// Whether handled messages were stored since the last round.
    let hasHandled = Atomic(false)
    /// Whether the last write of cursors failed.
    let hasFailed = Atomic(false)
    /// Whether old rows are being removed.
    let isRemoving = Atomic(false)
    /// Whether the store is being maintained.
    let isMaintaining = Atomic(false)
    /// Whether the store is being rechecked.
    let isRechecking = Atomic(false)
}

/// Decides in which rounds of maintenance the relay's cursors are stored. Each write costs syncs of the disk, so a node that handles no messages stores
/// them once a minute: a catch-up after a kill looks up as much more.
struct CursorWrites {
    private var skipped = 0

    /// - Parameters:
    ///   - hasHandled: whether handled messages were stored since the last round.
    ///   - hasFailed: whether the store fails at present: a write shows when it works again.
    mutating func isDue(hasHandled: Bool, hasFailed: Bool) -> Bool {
        let isDue = hasHandled || hasFailed || skipped + 1 == Maintenance.roundsPerMinute
        skipped = isDue ? 0 : skipped + 1
        return isDue
    }
}

/// Decides what is logged about a minute.
struct MinuteLine {
    private var topics = 0
    private var waiting = 0

    /// nil for an idle minute, in which no counter grew, and the numbers of topics and of waiting notifications are those of the last line.
    mutating func metadata(growth: [Counter: Int], topics: Int, waiting: Int) -> Logger.Metadata? {
        guard !growth.isEmpty || topics != self.topics || waiting != self.waiting else { return nil }
        (self.topics, self.waiting) = (topics, waiting)
        var metadata: Logger.Metadata = ["topics": .stringConvertible(topics), "waiting": .stringConvertible(waiting)]
        for (counter, count) in growth { metadata[counter.name] = .stringConvertible(count) }
        return metadata
    }
}

/// Periodic work of a node: stores the relay's cursors (``CursorWrites``), which also shows whether the store can be written; logs counters and
/// prunes tables once a minute; expires registrations once an hour. Nothing is removed in the first minutes of a node.
struct Maintenance: Sendable {
    /// Number of rounds between log lines and pruning, unless rounds take longer than their interval.
    static let roundsPerMinute = 12
    /// The first minute in which rows are removed by their age: a machine may set its clock only some minutes after it starts.
    static let firstRemoval = 10
    /// How far the clock may be ahead while rows are removed: much less than the time that any of them is kept.
    private static let harmlessLead = Duration.seconds(600)
    /// Long, because expiry scans all registrations.
    private static let expiryInterval = Duration.seconds(3600)
    private static let unstored = "failed to store the relay's cursors"
    private static let retainedRowLimit = 2_000_000
    /// Longer than the overlap of a catch-up before the cursor, plus the error of senders' clocks.
    private static let handledMargin = Duration.seconds(180)

    let base: NodeFoundation
    let path: MessagePath
    private let growth = LastMinute()
    private let activity = Activity()

    private var store: any Store { base.store }
    private var services: [any ProtocolService] { path.services }

    /// The growth of a counter in the last whole minute.
    func lastMinute(_ counter: Counter) -> Int { growth[counter] }

    /// Runs until cancelled. A stop waits for one transaction, not for the rest of a round: a slow disk may take seconds for each.
    func run() async {
        await withDiscardingTaskGroup { tasks in await run(&tasks) }
    }

    /// - Parameter tasks: for work of minutes: the copy of a long log, the store's recheck, and the removal of old rows after a pause of days. Rounds continue.
    private func run(_ tasks: inout DiscardingTaskGroup) async {
        // By the clock, since a slow disk makes rounds longer.
        let minute = base.configuration.maintenanceInterval * Self.roundsPerMinute
        var (minutes, minuteBegan) = (0, ContinuousClock.now)
        var lastExpiry = ContinuousClock.now - Self.expiryInterval
        var last: [Counter: Int] = [:]
        var clock = RetentionClock(retention: base.configuration.retention)
        var cursorWrites = CursorWrites()
        var line = MinuteLine()
        let started = ContinuousClock.now
        // The reference for later steps of the clock, taken before the first round, which may be slow.
        _ = clock.cutoff(clock: base.now(), uptime: .zero)
        // Stored at once, so that a restart after an early kill catches up from here.
        await saveCursors()
        while (try? await Task.sleep(for: base.configuration.maintenanceInterval)) != nil {
            let hasHandled = activity.hasHandled.exchange(false, ordering: .relaxed)
            let hasFailed = store.failure != nil || activity.hasFailed.load(ordering: .relaxed)
            if cursorWrites.isDue(hasHandled: hasHandled, hasFailed: hasFailed) { await saveCursors() }
            if !activity.isMaintaining.exchange(true, ordering: .relaxed) {
                tasks.addTask {
                    await store.maintain()
                    activity.isMaintaining.store(false, ordering: .relaxed)
                }
            }
            if !activity.isRechecking.exchange(true, ordering: .relaxed) {
                tasks.addTask {
                    await store.recheck()
                    activity.isRechecking.store(false, ordering: .relaxed)
                }
            }
            let cutoff = clock.cutoff(clock: base.now(), uptime: .now - started)
            guard .now - minuteBegan >= minute else { continue }
            minuteBegan = .now
            minutes += 1
            let counts = base.counters.snapshot
            growth.set(counts, since: last)
            last = counts
            summarize(&line)
            noteDisplaced(lastMinute(.registrationDisplaced))
            for service in services where !Task.isCancelled { await service.recount() }
            base.refusedPeers.endMinute(at: base.now())
            var attacks = services.compactMap { $0.limitReport?.attack }
            let refused = lastMinute(.connectionRefused)
            if refused >= RefusalLog.attackThreshold { attacks.append("\(refused) connections of peers refused in the last minute") }
            noteAttack(attacks.isEmpty ? nil : attacks.joined(separator: "; "))
            // One of the nodes removes for all of them; none by a clock that is known to be far ahead.
            let isAhead = base.clock.ahead.map { $0 > Self.harmlessLead } ?? false
            if !base.cluster.isMaintainer || minutes < Self.firstRemoval || isAhead || Task.isCancelled { continue }
            if activity.isRemoving.exchange(true, ordering: .relaxed) { continue }
            let expires = ContinuousClock.now - lastExpiry > Self.expiryInterval
            if expires { lastExpiry = .now }
            tasks.addTask {
                await remove(before: cutoff, expires: expires)
                activity.isRemoving.store(false, ordering: .relaxed)
            }
        }
    }

    private func remove(before cutoff: Timestamp, expires: Bool) async {
        // A step of the clock must not end registrations either.
        let steadyNow = cutoff + base.configuration.retention
        let fresh = steadyNow - base.configuration.maximumRequestAge
        await prune(Retention(cutoff: cutoff, rowLimit: Self.retainedRowLimit, fresh: fresh, now: steadyNow))
        guard expires else { return }
        for service in services where !Task.isCancelled { await service.expire(at: steadyNow) }
    }

    /// Stores the hashes of handled messages soon after they were handled. Runs until cancelled.
    func saveHandledMessages() async {
        for await _ in path.handled.wakeUp {
            // With several nodes each stores its hashes less often, so that the total rate is that of a single node.
            guard (try? await Task.sleep(for: base.configuration.handledInterval * base.cluster.nodeCount)) != nil else { return }
            let hashes = path.handled.take()
            guard !hashes.isEmpty else { continue }
            activity.hasHandled.store(true, ordering: .relaxed)
            do throws(StoreError) {
                try await store.commit(StoreCommand.change(NodeStorage.remember(hashes, at: base.now())))
            } catch {
                // Retried with the next cursors; a failure there is logged.
                path.handled.putBack(hashes)
            }
        }
    }

    /// Stores the cursors of the relay, up to which no message was missed, and the hashes of handled messages.
    func saveCursors() async {
        let (cursors, now, handled) = (path.heard.limit(path.relay.seenUntil), base.now(), path.handled.take())
        let save = RelayCursors.save(cursors, of: base.cluster.nodeName, at: now).then { common in
            // A catch-up begins some time before the cursor.
            NodeStorage.forgetHandled(before: min(common.values.min() ?? now, now) - Self.handledMargin)
        }
        do throws(StoreError) {
            // Written even without changes, to detect that the store can't be written, or can again.
            try await store.commit(
                StoreCommand.all([OutageRecord.recordAlive(at: now), .change(NodeStorage.remember(handled, at: now)), save]))
            if activity.hasFailed.exchange(false, ordering: .relaxed) { base.errors.ended(Self.unstored) }
        } catch {
            path.handled.putBack(handled)
            activity.hasFailed.store(true, ordering: .relaxed)
            base.errors.log(Self.unstored, reason: error.message)
        }
    }

    private func prune(_ retention: Retention) async {
        let accepted = retention.covering(services.compactMap(\.deliveryMemory))
        do throws(StoreError) {
            try await DeliveryStorage.prune(
                store, before: accepted.cutoff, at: accepted.now, keeping: accepted.rowLimit, since: accepted.fresh)
        } catch {
            base.logger.error("failed to prune old deliveries", metadata: ["reason": "\(error.message)"])
        }
        do throws(StoreError) {
            try await NodeStorage.limitHandled(in: store)
        } catch {
            base.logger.error("failed to prune handled messages", metadata: ["reason": "\(error.message)"])
        }
        for service in services where !Task.isCancelled { await service.prune(retention) }
    }

    private func noteAttack(_ reason: String?) {
        if let reason, !base.alarms.isActive(.underAttack) { base.logger.warning("under attack", metadata: ["reason": "\(reason)"]) }
        base.alarms.set(.underAttack, reason)
    }

    private func noteDisplaced(_ count: Int) {
        let reason = "\(count) registrations that no one had asked for made room for new devices in the last minute"
        base.alarms.set(.registrationsDisplaced, count > 0 ? reason : nil)
        if count > 0 { base.logger.warning("registrations displaced", metadata: ["count": .stringConvertible(count)]) }
    }

    /// Logs the last minute unless it was idle.
    private func summarize(_ line: inout MinuteLine) {
        let metadata = line.metadata(growth: growth.all, topics: base.topicCount, waiting: path.delivery.waitingCount)
        if let metadata { base.logger.info("counters of the last minute", metadata: metadata) }
    }
}
