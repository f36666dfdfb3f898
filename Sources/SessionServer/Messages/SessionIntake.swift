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

    /// Returns when the messages are stored or dropped. While the store fails they are tried again until they are too old, or the node stops:
    /// until then the storage servers are not read, and none of their messages is lost. A message that fails although the store works, or
    /// since rows of its account are damaged, is given up at once: those behind it do not wait for it.
    func take(_ messages: [NotifyMessage]) async {
        node.counters.add(.sessionMessage, messages.count)
        var left = messages
        while true {
            left = await store(admitted(left))
            guard !left.isEmpty else { return }
            try? await Task.sleep(for: Self.retryInterval)
            guard !isStopping.load(ordering: .relaxed), !Task.isCancelled else {
                return node.counters.add(.sessionDropped(.notStored), left.count)
            }
        }
    }

    /// With the times at which their notifications are given up.
    private func admitted(_ messages: [NotifyMessage]) -> [(message: NotifyMessage, expires: Timestamp)] {
        let now = node.now()
        return messages.compactMap { message in
            guard let storedAt = try? MessageRules.admit(message, isMonitored: true, at: now.milliseconds) else {
                node.counters.add(.sessionDropped(.expired))
                return nil
            }
            let expires = min(Timestamp(milliseconds: storedAt) + ageLimit, Timestamp(milliseconds: message.expiresAt))
            guard expires > now else {
                node.counters.add(.sessionDropped(.tooOld))
                return nil
            }
            return (message, expires)
        }
    }

    /// - Returns: Those that the store failed to keep, and may keep later.
    private func store(_ messages: [(message: NotifyMessage, expires: Timestamp)]) async -> [NotifyMessage] {
        guard !messages.isEmpty else { return [] }
        let now = node.now()
        let commands = messages.map { message, expires in
            subscriptions.notify(message, expires: expires, by: source, sodium, at: now) { [gate] in
                gate.admitsNotification(for: $0, at: now)
            }
        }
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
        for ((message, _), result) in zip(messages, results) {
            switch result {
            case .success(let notified):
                node.counters.add(.sessionDuplicate, notified.duplicates)
                if !notified.isWanted { node.counters.add(.sessionDropped(.unwanted)) }
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
}
