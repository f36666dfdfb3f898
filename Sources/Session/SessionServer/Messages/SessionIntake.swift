import NodeAPI
import Delivery
import Dispatch
import Logging
import NodeMetrics
import SessionSwarms
import SessionProtocol
import Storage
import Synchronization
import Core
import Waku

/// Takes messages that storage servers reported to the outbox.
final class SessionIntake: SessionMessageReceiver {
    private static let retryInterval = Duration.seconds(1)
    /// Messages that are committed by one command.
    private static let commandSize = 32
    /// A batch with more notifications, of some 6 KiB each, is not on its way to the store together with the one before it.
    private static let overlapLimit = 2048

    private let node: NodeServices
    private let subscriptions: Subscriptions
    private let source: SessionDeliverySource
    private let admission: NotificationAdmission
    private let sodium: Sodium
    private let recent = RecentDeliveries()
    private let ageLimit: Duration
    private let isStopping = Atomic(false)
    /// What was taken last, and what before: two batches at most are on their way to the store.
    private let committing = Mutex<(newest: Task<Void, Never>?, older: Task<Void, Never>?)>((nil, nil))
    /// Where notifications are queued, in the order of their commits: not on the store's thread, which others wait for.
    private let queueing = DispatchQueue(label: "waku-push.session.intake")

    init(_ node: NodeServices, _ source: SessionDeliverySource, _ gate: SessionGate, _ sodium: Sodium, ageLimit: Duration) {
        self.node = node
        self.source = source
        admission = NotificationAdmission(gate)
        self.sodium = sodium
        self.ageLimit = ageLimit
        subscriptions = Subscriptions(node.store.sealer, isShared: node.cluster.isShared)
    }

    /// Messages that the store fails to keep are given up from now on.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
    }

    /// Prepares the messages while those before them are committed, and submits them behind those: the store does not wait for messages.
    ///
    /// While the store fails they are tried again until they are too old, or the node stops: until then the storage servers are not read, and none
    /// of their messages is lost. A message that fails although the store works, or since rows of its account are damaged, is given up at once:
    /// those behind it do not wait for it.
    func take(_ messages: [ReportedMessage]) async {
        node.counters.add(.sessionMessage, messages.count)
        let prepared = await prepare(messages)
        let count = prepared.reduce(0) { $0 + ($1.prepared?.notifications.count ?? 1) }
        if count > Self.overlapLimit { await settle() } else { await committing.withLock(\.older)?.value }
        let batch = submit(prepared)
        // A task of its own: what was encrypted is let go when the first attempt is over, however many follow.
        let first = Task { await finish(batch) }
        committing.withLock { committing in
            committing = (newest: Task { await keep(first) }, older: committing.newest)
        }
    }

    func settle() async {
        let (newest, older) = committing.withLock(\.self)
        await older?.value
        await newest?.value
    }

    /// - Parameter first: the first attempt, which tells what the store failed to keep.
    private func keep(_ first: Task<[ReportedMessage], Never>) async {
        var left = await first.value
        while !left.isEmpty {
            if !isStopping.load(ordering: .relaxed) { try? await Task.sleep(for: Self.retryInterval) }
            guard !isStopping.load(ordering: .relaxed) else { return node.counters.add(.sessionDropped(.notStored), left.count) }
            left = await finish(submit(await prepare(left)))
        }
    }

    /// A message that is young enough, with what it came to when it was read; nil when it could not be read.
    private struct Admitted: Sendable {
        let message: ReportedMessage
        /// Reads and encrypts.
        let preparation: StoreCommand<PreparedMessage>
        var prepared: PreparedMessage?
    }

    private func admit(_ reported: ReportedMessage, at now: Timestamp) -> Admitted? {
        let message = reported.message
        do throws(MessageRules.Drop) {
            try MessageRules.admit(message, isMonitored: true, at: now.milliseconds)
        } catch {
            node.counters.add(.sessionDropped(.expired))
            return nil
        }
        let expires = Timestamp(
            milliseconds: MessageRules.expiry(
                of: message, receivedAt: min(reported.receivedAt, now.milliseconds), ageLimit: Int64(ageLimit / .milliseconds(1))))
        guard expires > now else {
            node.counters.add(.sessionDropped(.tooOld))
            return nil
        }
        return Admitted(
            message: reported,
            preparation: subscriptions.prepare(message, expires: expires, by: source, sodium, at: now) { [recent] in
                recent.contains($0, at: now)
            })
    }

    /// Reads what the messages come to, on one of the store's threads. The writer decides, and prepares those that could not be read.
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

    /// Messages on their way to the store.
    private struct Batch: Sendable {
        /// Those of a command.
        let groups: [[Admitted]]
        let results: PendingResults<[NotifiedMessage?]>
        /// Those that could not be read.
        let alone: [Admitted]
    }

    /// The messages have their place in the order of commits when this returns.
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
        let groups = stride(from: 0, to: ready.count, by: Self.commandSize).map { ready[$0..<min($0 + Self.commandSize, ready.count)] }
        let commands = groups.map { [subscriptions, admission] group in
            subscriptions.notifyTogether(group.map(\.prepared)) { admission.admits($0, at: now) }
        }
        let results = submit(commands) { $0.flatMap { $0?.queued ?? [] } }
        return Batch(groups: groups.map { $0.map(\.message) }, results: results, alone: alone)
    }

    /// - Returns: Those that the store failed to keep, and may keep later.
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
            // One of them takes no other with it.
            case .failure(let error) where isStoreWorking || error.code == .damaged: alone += group
            case .failure(let error):
                if failed.isEmpty { logFailure(error) }
                failed += group.map(\.message)
            }
        }
        return failed + (await commitEach(alone))
    }

    /// The same, each for itself: messages that could not be read before, whose subscriptions have changed since, or that failed together.
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
            }
        }
        if let error = givenUp.first {
            node.counters.add(.sessionDropped(.notStored), givenUp.count)
            node.errors.log("messages of storage servers given up", reason: error.message, count: givenUp.count)
        }
        return failed
    }

    private func logFailure(_ error: StoreError) {
        node.errors.log("messages of storage servers not stored", reason: error.message)
    }

    /// The results of commands, and whether the store worked when they were there.
    private typealias PendingResults<Outcome: Sendable> = Task<(results: [Result<Outcome, StoreError>], isStoreWorking: Bool), Never>

    /// The commands have their place in the order of commits when this returns. What they put into the outbox is queued before the results are there,
    /// in the order of the commits: that of the store's completions.
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
        recent.add(deliveries.lazy.map(\.delivery), at: node.now())
        node.delivery.enqueue(deliveries)
    }

    private func command(for message: Admitted, at now: Timestamp) -> StoreCommand<NotifiedMessage> {
        let notify: @Sendable (PreparedMessage) -> StoreCommand<NotifiedMessage> = { [subscriptions, admission] prepared in
            subscriptions.notify(prepared, orElse: { message.preparation }) { admission.admits($0, at: now) }
        }
        return message.prepared.map(notify) ?? message.preparation.then(notify)
    }

    private func count(_ notified: NotifiedMessage) {
        node.counters.add(.sessionDuplicate, notified.duplicates)
        if !notified.isWanted { node.counters.add(.sessionDropped(.unwanted)) }
    }
}
