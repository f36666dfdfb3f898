package import Core
package import Storage
import Synchronization

/// The outbox that several nodes share: each has the deliveries of its own devices in its queues, and leaves the others alone.
extension DeliveryService {
    /// Takes up deliveries that are in the outbox and of this node's devices; of those that it has already nothing changes.
    package func take(_ waiting: [WaitingDelivery]) async {
        await enqueueFromOutbox(waiting, isAwaited: false)
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

    /// What of a batch may be posted now. The rest leaves the queue: another node has it, or it comes back in its place.
    func marked(_ deliveries: [PostableDelivery]) async -> [PostableDelivery] {
        guard let share, !deliveries.isEmpty else { return deliveries }
        let marked = await share.mark(deliveries.map(\.waiting))
        guard marked.count < deliveries.count else { return deliveries }
        table.withLock { table in
            for delivery in deliveries where !marked.contains(delivery.waiting.id) { table.forget(delivery.waiting.id) }
        }
        return deliveries.filter { marked.contains($0.waiting.id) }
    }
}
