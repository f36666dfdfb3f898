import Core
import Delivery
import NodeMetrics
import Storage
import Synchronization

/// Finds the deliveries of this node's devices in the outbox, and the outcomes of posts by other nodes. Maintains the tables of claims if this
/// node owns maintenance.
struct DeliverySharing: Sendable {
    /// The pause between two scans. Deliveries that this node itself has put into the outbox are in its queue by then.
    private static let noticePause = Duration.milliseconds(20)
    /// The interval of look-ups of outcomes of other nodes' posts, without notifications.
    private static let lookUpInterval = Duration.milliseconds(500)
    private static let maintenanceInterval = Duration.seconds(60)
    private static let scanChunk = 1_000

    let node: ClusterNode
    let delivery: DeliveryService

    // MARK: Looking for deliveries

    /// Scans the outbox, and looks up the outcomes of other nodes' posts. Runs until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                while (try? await Task.sleep(for: OutboxScans.interval)) != nil { node.deliveryWakeUp.signal() }
            }
            group.addTask { await maintain() }
            var scans = OutboxScans(partitionCount: node.configuration.times.partitionCount, at: .now)
            var fullLookUp = Instant.now
            for await _ in node.deliveryWakeUp {
                settle()
                let now = Instant.now
                await publishOutcomes(ofAll: now >= fullLookUp)
                if now >= fullLookUp { fullLookUp = now + Self.lookUpInterval }
                let noticed = node.state.withLock { state in
                    defer { state.toScan = [] }
                    return state.toScan
                }
                let partitions = scans.partitions(noticed: noticed, at: now)
                if !partitions.isEmpty {
                    let count = await scan(partitions)
                    scans.scanned(partitions, deliveryCount: count, at: .now)
                }
                guard (try? await Task.sleep(for: Self.noticePause)) != nil else { return }
                // Nothing tells when a post has ended.
                if !node.state.withLock(\.stopping.isEmpty) { node.deliveryWakeUp.signal() }
            }
        }
    }

    /// Queues the deliveries in the outbox that belong to this node's devices.
    ///
    /// - Returns: the number of deliveries in the outbox for this node's devices.
    private func scan(_ partitions: Set<PartitionNumber>) async -> Int {
        let (own, inherited, failed) = node.state.withLock { state in
            let now = Instant.now
            let own = partitions.filter { state.member.mark(in: $0, at: now) != nil }
            let inherited = own.intersection(state.inherited)
            state.inherited.subtract(own)
            return (own, inherited, state.outboxFailure != nil)
        }
        // After a failure a node that has handed its partitions over reads too, to learn whether it can again.
        guard !own.isEmpty || failed else { return 0 }
        let found = await node.onThread(node.deliveryThread) { database throws(StoreError) in
            try database.ids(of: DeliveryStorage.outboxTable, by: DeliveryStorage.deviceColumn, in: own.sorted())
        }
        do throws(StoreError) {
            let ids = try found.get()
            node.state.withLock { $0.outboxFailure = nil }
            let unknown = delivery.unknown(among: ids)
            var isComplete = true
            for start in stride(from: 0, to: unknown.count, by: Self.scanChunk) {
                let chunk = Array(unknown[start..<min(start + Self.scanChunk, unknown.count)])
                let waiting = await node.onThread(node.deliveryThread) { database throws(StoreError) in
                    try database.waiting(chunk, columns: DeliveryStorage.waitingColumns) { row, mark in
                        // The age is measured by the database's clock alone, and subtracted from this node's time.
                        try DeliveryStorage.waitingDelivery(row, markedAt: mark.map { .now() - $0.age }).map {
                            (delivery: $0, mark: mark?.mark)
                        }
                    }
                }
                let found = try waiting.get()
                let deliveries = ownDeliveries(found)
                if deliveries.count < found.count { isComplete = false }
                await delivery.take(deliveries) { [node] in inherited.contains(node.partition(of: $0)) }
            }
            if !isComplete { node.state.withLock { $0.inherited.formUnion(inherited) } }
            return ids.count
        } catch {
            node.state.withLock { state in
                state.outboxFailure = error
                state.inherited.formUnion(inherited)
            }
            node.errors.log("failed to read the outbox", reason: error.message)
            return 0
        }
    }

    /// The deliveries of this node's devices. A delivery has the time of its mark only if a former owner has set it.
    private func ownDeliveries(_ waiting: [(delivery: WaitingDelivery, mark: DeliveryMark?)]) -> [WaitingDelivery] {
        node.state.withLock { state in
            let now = Instant.now
            return waiting.compactMap { delivery, mark in
                switch state.member.verdict(on: mark, in: node.partition(of: delivery.device), at: now) {
                case .markAndPost, .inProgress: delivery.unmarked
                case .markAndRepeat: delivery
                case .notOwner: nil
                }
            }
        }
    }

    // MARK: Releasing partitions

    /// Reports the partitions without unanswered posts to gorush as settled, so that they can be released.
    private func settle() {
        let settled = node.state.withLock(\.stopping).filter { partition in !delivery.isPosting { node.partition(of: $0) == partition } }
        guard !settled.isEmpty else { return }
        node.state.withLock { state in
            for partition in settled {
                state.stopping.remove(partition)
                state.member.settled(partition)
            }
        }
        node.hastenHeartbeat()
    }

    // MARK: Outcomes of other nodes' posts

    private func publishOutcomes(ofAll: Bool) async {
        let ended = node.state.withLock { state in
            defer { state.ended = [] }
            return state.ended
        }
        guard ofAll || !ended.isEmpty else { return }
        let awaited = delivery.awaitedElsewhere
        do throws(StoreError) {
            if ofAll { return try await delivery.lookUp(awaited) }
            let own = awaited.filter(ended.contains)
            guard !own.isEmpty else { return }
            let accepted = await node.onThread(node.deliveryThread) { database throws(StoreError) in
                try database.accepted(among: own.map(\.bytes))
            }
            delivery.accepted(try accepted.get().compactMap { DeliveryID(bytes: $0) })
        } catch {
            // Retried at the next look-up; the clients are answered at their deadline in any case.
        }
    }

    // MARK: Maintenance

    /// Maintains the claim partitions and removes the rows of ended nodes, as the node that owns maintenance. Runs until cancelled.
    private func maintain() async {
        while !Task.isCancelled {
            if let mark = node.state.withLock({ $0.member.maintenanceMark(at: .now) }) {
                let result = await node.onThread(node.maintenanceThread) { database throws(StoreError) in
                    _ = try database.maintain(owner: mark.owner, epoch: mark.epoch)
                }
                if case .failure(let error) = result {
                    node.errors.log("failed to maintain claims", reason: error.message)
                }
            }
            let known = await node.onThread(node.messageThread) { database throws(StoreError) in
                (window: try database.claimWindow(), now: try database.now())
            }
            switch known {
            case .success(let known):
                node.state.withLock { state in
                    state.window = known.window
                    state.clockOffset = known.now - Timestamp.now().wholeSeconds
                }
            case .failure(let error): node.errors.log("failed to read the times of claims", reason: error.message)
            }
            try? await Task.sleep(for: Self.maintenanceInterval)
        }
    }
}
