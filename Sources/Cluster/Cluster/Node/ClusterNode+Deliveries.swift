package import Delivery
import Core
import NodeMetrics
import Storage
import Synchronization

/// Deliveries: the devices for which this node posts notifications, and the marks that it sets before a post.
extension ClusterNode: OutboxShare {
    package var outboxShare: (any OutboxShare)? { self }

    func partition(of device: DeviceID) -> PartitionNumber { configuration.times.partition(ofRow: device.row) }

    package func owns(_ device: DeviceID) -> Bool {
        let partition = partition(of: device)
        return state.withLock { $0.member.mark(in: partition, at: .now) != nil }
    }

    package func mark(_ deliveries: [(waiting: WaitingDelivery, hasUnknownOutcome: Bool)]) async -> Set<Int64> {
        let requests = state.withLock { state in
            let now = Instant.now
            return deliveries.compactMap { delivery -> DeliveryMarks.Request? in
                let partition = partition(of: delivery.waiting.device)
                guard let mark = state.member.mark(in: partition, at: now) else { return nil }
                return DeliveryMarks.Request(waiting: delivery.waiting, mark: mark, replacesOthers: delivery.hasUnknownOutcome)
            }
        }
        guard !requests.isEmpty else { return [] }
        let marked: Set<Int64>
        do throws(StoreError) {
            marked = try await store.commit(DeliveryMarks.mark(requests))
        } catch {
            errors.log("failed to mark notifications for posting", reason: error.message, count: requests.count)
            return []
        }
        // Checked after the commit: if this node's lease has expired meanwhile, another node may post already.
        return state.withLock { state in
            let now = Instant.now
            return requests.reduce(into: []) { ids, request in
                let partition = partition(of: request.waiting.device)
                guard marked.contains(request.waiting.id), state.member.mayPost(under: request.mark, in: partition, at: now) else { return }
                ids.insert(request.waiting.id)
            }
        }
    }
}
