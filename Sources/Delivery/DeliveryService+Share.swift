import Logging
package import PushTypes
package import Storage
import Synchronization
import Waku

/// The outbox that several nodes share: each has the deliveries of its own devices in its queues, and leaves the others alone.
extension DeliveryService {
    /// Takes up deliveries that are in the outbox and of this node's devices; a delivery that is in a queue already stays as it is. Deliveries that a
    /// former owner marked have the time of the first mark.
    package func take(_ waiting: [WaitingDelivery]) async {
        await enqueueFromOutbox(waiting, isAwaited: false, heldUntil: holds(of: waiting))
    }

    /// Those that are in no queue of this node.
    package func unknown(among ids: [Int64]) -> [Int64] {
        table.withLock { table in ids.filter { table.delivery($0) == nil } }
    }

    /// Another node posts for these devices from now on. What is on its way to gorush stays until its outcome is stored: see
    /// ``isPosting(for:)``.
    package func leave(_ devices: (DeviceID) -> Bool) {
        table.withLock { $0.leave(devices) }
    }

    /// Whether a post for one of these devices has no answer, or its outcome is not stored.
    package func isPosting(for devices: (DeviceID) -> Bool) -> Bool {
        table.withLock { $0.isPosting(for: devices) }
    }

    /// Those that somebody waits for and that another node posts.
    package var awaitedElsewhere: [DeliveryID] { table.withLock { $0.awaitedElsewhere } }

    /// Tells those who wait what the store knows of deliveries that other nodes posted.
    package func lookUp(_ deliveries: [DeliveryID]) async throws(StoreError) {
        guard !deliveries.isEmpty else { return }
        let states = try await store.fetch(DeliveryStorage.states(of: deliveries))
        for (delivery, state) in zip(deliveries, states) where state != .waiting {
            // What is in neither table was given up, or its device has ended.
            tell(table.withLock { $0.resolve(delivery, as: state == .accepted ? .accepted : .failed) })
        }
    }

    /// Other nodes posted these, and gorush took them: those who wait are told.
    package func accepted(_ deliveries: [DeliveryID]) {
        for delivery in deliveries { tell(table.withLock { $0.resolve(delivery, as: .accepted) }) }
    }

    /// The deliveries of a batch that may be posted now. The others leave the queue: another node has them, or they come back in their place. nil
    /// when no mark could be stored.
    func marked(_ deliveries: [PostableDelivery]) async -> [PostableDelivery]? {
        guard !deliveries.isEmpty else { return deliveries }
        guard let share else { return await markUnmarked(deliveries) ? deliveries : nil }
        let unknown = table.withLock { $0.heldUntil(deliveries.lazy.map(\.waiting.id)) }
        let marked = await share.mark(deliveries.map { ($0.waiting, hasUnknownOutcome: unknown[$0.waiting.id] != nil) })
        guard marked.count < deliveries.count else { return deliveries }
        table.withLock { table in
            for delivery in deliveries where !marked.contains(delivery.waiting.id) { table.forget(delivery.waiting.id) }
        }
        return deliveries.filter { marked.contains($0.waiting.id) }
    }

    /// Most entered the outbox with a mark: the exceptions are from an earlier release, or from several nodes that shared the outbox.
    private func markUnmarked(_ deliveries: [PostableDelivery]) async -> Bool {
        let ids = deliveries.lazy.filter { $0.waiting.markedAt == nil }.map(\.waiting.id)
        guard !ids.isEmpty else { return true }
        do throws(StoreError) {
            try await store.commit(DeliveryStorage.mark(Array(ids), at: now()))
            return true
        } catch {
            logger.error("notifications not marked for posting", metadata: ["reason": "\(error.message)"])
            return false
        }
    }

    /// The deliveries of a batch that may be posted now; the others return to the queue until their time has come.
    func withoutPostponed(
        _ deliveries: [PostableDelivery], of batch: DeliveryQueue.Batch, at endpoint: Int
    ) -> [PostableDelivery] {
        let ends = table.withLock { $0.heldUntil(deliveries.lazy.map(\.waiting.id)) }
        guard !ends.isEmpty else { return deliveries }
        let (now, sandbox) = (steadyNow, routing.rules[endpoint].sandboxTopics)
        let due = deliveries.reduce(into: [Int64: Timestamp]()) { due, delivery in
            due[delivery.waiting.id] = UnknownOutcome.wait(
                until: ends[delivery.waiting.id],
                showsOnce: gorush[endpoint].posting.showsRepetitionOnce(delivery.notification(sandbox: sandbox)), now: now)
        }
        table.withLock { $0.postpone(due, of: batch, at: endpoint) }
        return deliveries.filter { due[$0.waiting.id] == nil }
    }
}
