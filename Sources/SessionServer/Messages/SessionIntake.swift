import Delivery
import Logging
import NodeMetrics
import PushNode
import SessionMonitoring
import SessionProtocol
import SessionRules
import Sodium
import Storage
import Synchronization
import Waku

/// Takes messages that storage servers reported to the outbox.
final class SessionIntake: SessionMessageReceiver {
    private static let retryInterval = Duration.seconds(1)

    private let node: NodeServices
    private let subscriptions: Subscriptions
    private let source: SessionDeliverySource
    private let gate: SessionGate
    private let sodium: Sodium
    private let ageLimit: Duration
    private let isStopping = Atomic(false)
    /// The messages that were taken last.
    private let committing = Mutex<Task<Void, Never>?>(nil)

    init(_ node: NodeServices, _ source: SessionDeliverySource, _ gate: SessionGate, _ sodium: Sodium, ageLimit: Duration) {
        self.node = node
        self.source = source
        self.gate = gate
        self.sodium = sodium
        self.ageLimit = ageLimit
        subscriptions = Subscriptions(node.store.sealer)
    }

    /// Messages that the store fails to keep are given up from now on.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
    }

    /// Prepares the messages while those before them are committed.
    ///
    /// While the store fails they are tried again until they are too old, or the node stops: until then the storage servers are not read, and none
    /// of their messages is lost. A message that fails although the store works, or since rows of its account are damaged, is given up at once:
    /// those behind it do not wait for it.
    func take(_ messages: [NotifyMessage]) async {
        node.counters.add(.sessionMessage, messages.count)
        let prepared = await prepare(messages)
        await settle()
        let commit = Task { await keep(prepared) }
        committing.withLock { $0 = commit }
    }

    func settle() async {
        await committing.withLock(\.self)?.value
    }

    private func keep(_ messages: [Admitted]) async {
        var left = await commit(messages)
        while !left.isEmpty {
            try? await Task.sleep(for: Self.retryInterval)
            guard !isStopping.load(ordering: .relaxed) else { return node.counters.add(.sessionDropped(.notStored), left.count) }
            left = await commit(await prepare(left))
        }
    }

    /// A message that is young enough, with what it came to when it was read; nil when it could not be read.
    private struct Admitted: Sendable {
        let message: NotifyMessage
        /// Reads and encrypts.
        let preparation: StoreCommand<PreparedMessage>
        var prepared: PreparedMessage?
    }

    private func admit(_ message: NotifyMessage, at now: Timestamp) -> Admitted? {
        guard let storedAt = try? MessageRules.admit(message, isMonitored: true, at: now.milliseconds) else {
            node.counters.add(.sessionDropped(.expired))
            return nil
        }
        let expires = min(Timestamp(milliseconds: storedAt) + ageLimit, Timestamp(milliseconds: message.expiresAt))
        guard expires > now else {
            node.counters.add(.sessionDropped(.tooOld))
            return nil
        }
        return Admitted(
            message: message, preparation: subscriptions.prepare(message, expires: expires, by: source, sodium, at: now))
    }

    /// Reads what the messages come to, on one of the store's threads. The writer decides, and prepares those that could not be read.
    private func prepare(_ messages: [NotifyMessage]) async -> [Admitted] {
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

    /// - Returns: Those that the store failed to keep, and may keep later.
    private func commit(_ messages: [Admitted]) async -> [NotifyMessage] {
        let now = node.now()
        var commands: [StoreCommand<NotifiedMessage>] = []
        var submitted: [NotifyMessage] = []
        for one in messages {
            if let prepared = one.prepared, prepared.notifications.isEmpty {
                count(NotifiedMessage(duplicates: prepared.duplicates, isWanted: prepared.isWanted))
                continue
            }
            submitted.append(one.message)
            commands.append(command(for: one, at: now))
        }
        guard !commands.isEmpty else { return [] }
        let (results, isStoreWorking) = await withCheckedContinuation { continuation in
            node.store.submit(commands) { [node] results in
                // Called in the order of commits, so a device's notifications are queued in that order.
                let queued = results.flatMap { (try? $0.get().queued) ?? [] }
                node.counters.add(.sessionNotification, queued.count)
                node.counters.add(.notificationQueued, queued.count)
                node.delivery.enqueue(queued)
                continuation.resume(returning: (results, node.store.failure == nil))
            }
        }
        var (failed, givenUp): ([NotifyMessage], [StoreError]) = ([], [])
        for (message, result) in zip(submitted, results) {
            switch result {
            case .success(let notified): count(notified)
            case .failure(let error) where isStoreWorking || error.code == .damaged:
                givenUp.append(error)
            case .failure(let error):
                if failed.isEmpty { node.logger.error("messages of storage servers not stored", metadata: ["reason": "\(error.message)"]) }
                failed.append(message)
            }
        }
        if let error = givenUp.first {
            node.counters.add(.sessionDropped(.notStored), givenUp.count)
            node.logger.error(
                "messages of storage servers given up", metadata: ["count": "\(givenUp.count)", "reason": "\(error.message)"])
        }
        return failed
    }
    private func command(for message: Admitted, at now: Timestamp) -> StoreCommand<NotifiedMessage> {
        let notify: @Sendable (PreparedMessage) -> StoreCommand<NotifiedMessage> = { [subscriptions, gate] prepared in
            subscriptions.notify(prepared, orElse: { message.preparation }) { gate.admitsNotification(for: $0, at: now) }
        }
        return message.prepared.map(notify) ?? message.preparation.then(notify)
    }

    private func count(_ notified: NotifiedMessage) {
        node.counters.add(.sessionDuplicate, notified.duplicates)
        if !notified.isWanted { node.counters.add(.sessionDropped(.unwanted)) }
    }
}
