package import Core
import Logging
package import Storage
import Synchronization

/// An outbox shared by several nodes: each node queues only the deliveries of the devices that it owns.
extension DeliveryService {
    /// Takes up deliveries that are in the outbox and of this node's devices; a delivery that is in a queue already stays as it is. Deliveries that a
    /// former owner marked have the time of the first mark.
    ///
    /// - Parameter isInherited: whether this node has just become the owner of a device, so that its deliveries displace no others.
    package func take(_ waiting: [WaitingDelivery], isInherited: @escaping @Sendable (DeviceID) -> Bool) async {
        await enqueueFromOutbox(waiting, isAwaited: false, heldUntil: holds(of: waiting), isInherited: isInherited)
    }

    /// The ids that are in no queue of this node.
    package func unknown(among ids: [Int64]) -> [Int64] {
        table.withLock { table in ids.filter { table.delivery($0) == nil } }
    }

    /// Removes the deliveries of devices that another node now owns. Deliveries in flight stay until their outcome is stored: see
    /// ``isPosting(for:)``.
    package func leave(_ devices: (DeviceID) -> Bool) {
        table.withLock { $0.leave(devices) }
    }

    /// Whether a post for one of these devices is unanswered, or its outcome is not stored yet.
    package func isPosting(for devices: (DeviceID) -> Bool) -> Bool {
        table.withLock { $0.isPosting(for: devices) }
    }

    /// Deliveries that requests on this node wait for and that another node posts.
    package var awaitedElsewhere: [DeliveryID] { table.withLock { $0.awaitedElsewhere } }

    /// Reports the stored outcomes of deliveries that other nodes posted to the waiting requests.
    package func lookUp(_ deliveries: [DeliveryID]) async throws(StoreError) {
        guard !deliveries.isEmpty else { return }
        let states = try await store.fetch(DeliveryStorage.states(of: deliveries))
        for (delivery, state) in zip(deliveries, states) where state != .waiting {
            // A delivery in neither table was given up, or its device was unregistered.
            notifyWaiters(table.withLock { $0.resolve(delivery, as: state == .accepted ? .accepted : .failed) })
        }
    }

    /// Reports deliveries that other nodes posted and gorush accepted to the waiting requests.
    package func accepted(_ deliveries: [DeliveryID]) {
        for delivery in deliveries { notifyWaiters(table.withLock { $0.resolve(delivery, as: .accepted) }) }
    }

    /// Marks the deliveries of a batch and returns those that may be posted now. The others leave the queue: another node owns them, or they are
    /// enqueued again in their order. nil when the marks could not be stored. With a share, a failed mark returns none, and the deliveries leave the
    /// queue until the next scan of the outbox.
    func marked(_ deliveries: [QueuedDelivery]) async -> [QueuedDelivery]? {
        guard !deliveries.isEmpty else { return deliveries }
        guard let share else { return await markUnmarked(deliveries) ? deliveries : nil }
        let unknown = table.withLock { $0.heldUntil(deliveries.lazy.map(\.waiting.id)) }
        let marked = await share.mark(deliveries.map { ($0.waiting, hasUnknownOutcome: unknown[$0.waiting.id] != nil) })
        table.withLock { table in
            for delivery in deliveries where !marked.contains(delivery.waiting.id) { table.returnToOutbox(delivery.waiting.id) }
        }
        return deliveries.filter { marked.contains($0.waiting.id) }
    }

    /// Deliveries normally enter the outbox marked; those without a mark come from an earlier release, or from nodes that shared the outbox.
    private func markUnmarked(_ deliveries: [QueuedDelivery]) async -> Bool {
        let ids = deliveries.lazy.filter { $0.waiting.markedAt == nil }.map(\.waiting.id)
        guard !ids.isEmpty else { return true }
        do throws(StoreError) {
            try await store.commit(DeliveryStorage.mark(Array(ids), at: now()))
            return true
        } catch {
            logger.error("failed to mark notifications for posting", metadata: ["reason": "\(error.message)"])
            return false
        }
    }

    /// A receiver of Web Push may show a repetition: it is up to the app.
    private func showsRepetitionOnce(_ delivery: QueuedDelivery, at endpoint: EndpointID) -> Bool {
        guard let index = endpoint.gorushIndex else { return false }
        return delivery.notification(sandbox: routing.rules[index].sandboxTopics).map(gorush[index].posting.showsRepetitionOnce)
            ?? false
    }

    /// Returns the deliveries of a batch that may be posted now; the others return to the queue until their hold ends.
    func withoutPostponed(
        _ deliveries: [QueuedDelivery], of batch: DeliveryQueue.Batch, at endpoint: EndpointID
    ) -> [QueuedDelivery] {
        let ends = table.withLock { $0.heldUntil(deliveries.lazy.map(\.waiting.id)) }
        let now = steadyNow
        let due = deliveries.reduce(into: [Int64: Timestamp]()) { due, delivery in
            due[delivery.waiting.id] = UnknownOutcome.wait(
                until: ends[delivery.waiting.id], showsOnce: showsRepetitionOnce(delivery, at: endpoint), now: now)
        }
        table.withLock { $0.postpone(due, of: batch, at: endpoint) }
        return deliveries.filter { due[$0.waiting.id] == nil }
    }
}
