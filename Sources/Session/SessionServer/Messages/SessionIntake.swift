import NodeAPI
import Delivery
import Dispatch
import Logging
import NodeMetrics
import SessionProtocol
import Storage
import Synchronization
import Core
import Waku

/// Puts the notifications of messages reported by storage servers into the outbox.
final class SessionIntake: SessionMessageReceiver {
    private static let retryInterval = Duration.seconds(1)
    /// Number of messages committed by one command.
    private static let commandSize = 32
    /// A batch with more notifications, about 6 KiB each, waits until the previous batch is committed.
    private static let overlapLimit = 2048

    private let node: NodeServices
    private let subscriptions: Subscriptions
    private let source: SessionDeliverySource
    private let limits: SessionLimits
    private let sodium: Sodium
    private let recent = RecentDeliveries()
    private let ageLimit: Duration
    private let isStopping = Atomic(false)
    private let droppedAtStop = Atomic(0)
    /// The last batch and the one before it: at most two batches are being committed at a time.
    private let committing = Mutex<(newest: Task<Void, Never>?, older: Task<Void, Never>?)>((nil, nil))
    /// Enqueues notifications in the order of their commits, without blocking the store's thread.
    private let queueing = DispatchQueue(label: "waku-push.session.intake")

    init(_ node: NodeServices, source: SessionDeliverySource, limits: SessionLimits, sodium: Sodium, ageLimit: Duration) {
        self.node = node
        self.source = source
        self.limits = limits
        self.sodium = sodium
        self.ageLimit = ageLimit
        subscriptions = Subscriptions(node.store.sealer, isShared: node.cluster.isShared)
    }

    /// From now on messages that cannot be stored are dropped instead of retried.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
    }

    /// Prepares the messages while the previous batch is committed, and then submits them, so that the store does not wait for messages.
    ///
    /// While the store fails, messages are retried until they are too old or the node stops; meanwhile nothing more is read from storage servers, so
    /// no message is lost. A message that fails although the store works, or because rows of its account are damaged, is dropped at once, so
    /// that it does not block the messages behind it.
    func take(_ messages: [ReportedMessage]) async {
        node.counters.add(.sessionMessage, messages.count)
        let prepared = await prepare(messages)
        let count = prepared.reduce(0) { $0 + ($1.prepared?.notifications.count ?? 1) }
        if count > Self.overlapLimit { await finishCommits() } else { await committing.withLock(\.older)?.value }
        let batch = submit(prepared)
        // A separate task, so that the encrypted notifications are freed after the first attempt, even if retries follow.
        let first = Task { await finish(batch) }
        committing.withLock { committing in
            committing = (newest: Task { await keep(first) }, older: committing.newest)
        }
    }

    /// Waits for the last commits, and logs how many messages were dropped because the node stops. The storage servers don't repeat them.
    func settle() async {
        await finishCommits()
        let dropped = droppedAtStop.exchange(0, ordering: .relaxed)
        guard dropped > 0 else { return }
        node.logger.error("dropped reports that could not be stored", metadata: ["count": .stringConvertible(dropped)])
    }

    private func finishCommits() async {
        let (newest, older) = committing.withLock(\.self)
        await older?.value
        await newest?.value
    }

    /// Retries messages that could not be stored.
    ///
    /// - Parameter first: the first attempt, which returns these messages.
    private func keep(_ first: Task<[ReportedMessage], Never>) async {
        var left = await first.value
        while !left.isEmpty {
            if !isStopping.load(ordering: .relaxed) { try? await Task.sleep(for: Self.retryInterval) }
            guard !isStopping.load(ordering: .relaxed) else { return drop(left.count) }
            left = await finish(submit(await prepare(left)))
        }
    }

    private func drop(_ count: Int) {
        node.counters.add(.sessionDropped(.notStored), count)
        droppedAtStop.add(count, ordering: .relaxed)
    }

    /// A message within the age limit. `prepared` is nil if the rows could not be read.
    private struct Admitted: Sendable {
        let message: ReportedMessage
        /// Reads and encrypts.
        let preparation: StoreCommand<PreparedMessage>
        var prepared: PreparedMessage?
        let times: MessageTimes
    }

    private func admit(_ reported: ReportedMessage, at now: Timestamp) -> Admitted? {
        let message = reported.message
        do throws(SessionDropReason) {
            try MessageRules.admit(message, isMonitored: true, at: now.milliseconds)
        } catch {
            node.counters.add(.sessionDropped(error))
            return nil
        }
        let (receivedAt, ageLimit) = (min(reported.receivedAt, now.milliseconds), Int64(ageLimit / .milliseconds(1)))
        let expires = Timestamp(milliseconds: MessageRules.expiry(of: message, receivedAt: receivedAt, ageLimit: ageLimit))
        guard expires > now else {
            node.counters.add(.sessionDropped(.tooOld))
            return nil
        }
        let server = reported.server
        let preparation = subscriptions.prepare(
            message, reportedBy: server, expires: expires,
            mayEndOtherwise: MessageRules.mayEndOtherwise(message, receivedAt: receivedAt, ageLimit: ageLimit), by: source, sodium, at: now,
            unless: { [recent] in recent.contains($0, at: now) },
            admits: { [limits] in limits.admits($1, ofRow: $0, of: message.account, reportedBy: server, at: now) })
        let trace = node.counters.tracer?.begin(.session, byteCount: message.data?.count ?? 0)
        let times = MessageTimes(received: .now, delay: nil, protocol: .session, trace: trace)
        trace?.mark(.decoded, .request)
        let measured = preparation.map { prepared in
            trace?.mark(.decided)
            var prepared = prepared
            prepared.times = times
            return prepared
        }
        return Admitted(message: reported, preparation: measured, times: times)
    }

    /// Prepares messages on one of the store's reader threads. The writer decides later, and prepares those whose rows could not be read.
    private func prepare(_ messages: [ReportedMessage]) async -> [Admitted] {
        let now = node.now()
        let admitted = messages.compactMap { admit($0, at: now) }
        guard !admitted.isEmpty else { return [] }
        let results = try? await node.store.onReader { store throws(StoreError) in try store.readEach(admitted.map(\.preparation)) }
        guard let results else { return admitted }
        return zip(admitted, results).map { message, result in
            var message = message
            message.prepared = try? result.get()
            return message
        }
    }

    /// Messages being committed.
    private struct Batch: Sendable {
        /// The messages of each command.
        let groups: [[Admitted]]
        let results: PendingResults<[NotifiedMessage?]>
        /// Messages whose rows could not be read.
        let alone: [Admitted]
    }

    /// Submits the messages to the store. Their order of commits is fixed when this returns.
    private func submit(_ messages: [Admitted]) -> Batch {
        let now = node.now()
        var (ready, alone): ([(message: Admitted, prepared: PreparedMessage)], [Admitted]) = ([], [])
        for message in messages {
            guard let prepared = message.prepared else {
                alone.append(message)
                continue
            }
            if prepared.notifications.isEmpty {
                count(NotifiedMessage(duplicates: prepared.duplicates, isWanted: prepared.isWanted))
            } else {
                ready.append((message, prepared))
            }
        }
        let groups = Array(ready.chunks(of: Self.commandSize))
        let commands = groups.map { [subscriptions, limits] group in
            subscriptions.notifyTogether(group.map(\.prepared)) { limits.admits($0, at: now) }
        }
        let results = submit(commands) { $0.flatMap { $0?.queued ?? [] } }
        return Batch(groups: groups.map { $0.map(\.message) }, results: results, alone: alone)
    }

    /// - Returns: The messages that could not be stored, but may be stored later.
    private func finish(_ batch: Batch) async -> [ReportedMessage] {
        let (results, isStoreWorking) = await batch.results.value
        var alone = batch.alone
        var failed: [ReportedMessage] = []
        for (group, result) in zip(batch.groups, results) {
            switch result {
            case .success(let outcomes):
                for (message, outcome) in zip(group, outcomes) {
                    if let outcome { count(outcome) } else { alone.append(message) }
                }
            // Retried one by one, so that one message does not fail the others.
            case .failure(let error) where isStoreWorking || error.code == .damaged: alone += group
            case .failure(let error):
                if failed.isEmpty { logFailure(error) }
                failed += group.map(\.message)
                for message in group { message.times.trace?.fail(Counter.failedStore) }
            }
        }
        return failed + (await commitEach(alone))
    }

    /// Commits messages one by one if their rows could not be read, their subscriptions have changed, or their common command failed.
    private func commitEach(_ messages: [Admitted]) async -> [ReportedMessage] {
        let now = node.now()
        let (results, isStoreWorking) = await submit(messages.map { command(for: $0, at: now) }, \.queued).value
        var (failed, givenUp): ([ReportedMessage], [StoreError]) = ([], [])
        for (message, result) in zip(messages, results) {
            switch result {
            case .success(let notified): count(notified)
            case .failure(let error) where isStoreWorking || error.code == .damaged:
                givenUp.append(error)
            case .failure(let error):
                if failed.isEmpty { logFailure(error) }
                failed.append(message.message)
                message.times.trace?.fail(Counter.failedStore)
            }
        }
        if let error = givenUp.first {
            node.counters.add(.sessionDropped(.notStored), givenUp.count)
            node.errors.log("gave up on messages of storage servers", reason: error.message, count: givenUp.count)
        }
        return failed
    }

    private func logFailure(_ error: StoreError) {
        node.errors.log("failed to store messages of storage servers", reason: error.message)
    }

    /// The results of commands, and whether the store was working at that time.
    private typealias PendingResults<Outcome: Sendable> = Task<(results: [Result<Outcome, StoreError>], isStoreWorking: Bool), Never>

    /// Submits commands. Their order of commits is fixed when this returns. Deliveries are enqueued before the results are returned, in the order of
    /// the commits.
    private func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], _ queued: @escaping @Sendable (Outcome) -> [QueuedDelivery]
    ) -> PendingResults<Outcome> {
        guard !commands.isEmpty else { return Task { ([], true) } }
        let (stream, continuation) = AsyncStream.makeStream(of: (results: [Result<Outcome, StoreError>], isStoreWorking: Bool).self)
        node.store.submit(commands) { [self] results in
            let isStoreWorking = node.store.failure == nil
            queueing.async { [self] in
                queue(results.flatMap { result in (try? result.get()).map(queued) ?? [] })
                continuation.yield((results, isStoreWorking))
                continuation.finish()
            }
        }
        return Task {
            for await pending in stream { return pending }
            preconditionFailure("this task is never cancelled")
        }
    }

    private func queue(_ deliveries: [QueuedDelivery]) {
        guard !deliveries.isEmpty else { return }
        node.counters.add(.sessionNotification, deliveries.count)
        node.counters.add(.notificationQueued, deliveries.count)
        for delivery in deliveries { node.counters.reached(.durable, .request, times: delivery.times) }
        recent.add(deliveries.lazy.map(\.delivery), at: node.now())
        node.delivery.enqueue(deliveries)
    }

    private func command(for message: Admitted, at now: Timestamp) -> StoreCommand<NotifiedMessage> {
        let notify: @Sendable (PreparedMessage) -> StoreCommand<NotifiedMessage> = { [subscriptions, limits] prepared in
            subscriptions.notify(prepared, orElse: { message.preparation }) { limits.admits($0, at: now) }
        }
        return message.prepared.map(notify) ?? message.preparation.then(notify)
    }

    private func count(_ notified: NotifiedMessage) {
        node.counters.add(.sessionDuplicate, notified.duplicates)
        if !notified.isWanted { node.counters.add(.sessionDropped(.unwanted)) }
    }
}
