import Core
import Delivery
import Logging
import NodeAPI
import Storage
import Synchronization

/// Renews this node's lease with heartbeats, and carries out the changes that each new membership view brings.
struct LeaseRenewal: Sendable {
    let node: ClusterNode
    let duties: ClusterDuties

    /// Runs until cancelled.
    func run() async {
        var failure: String?
        var timer: Task<Void, Never>?
        defer { timer?.cancel() }
        node.heartbeatWakeUp.signal()
        for await _ in node.heartbeatWakeUp {
            timer?.cancel()
            let now = Instant.now
            if let heartbeat = node.state.withLock({ $0.member.heartbeat(at: now) }) {
                let result = await node.onThread(node.heartbeatThread) { database throws(StoreError) in
                    try database.heartbeat(heartbeat)
                }
                let outage = node.store.outage
                let changes = node.state.withLock { state in
                    switch result {
                    case .success(let view):
                        state.heartbeatFailure = nil
                        state.storeTrouble.heartbeatCommitted(
                            storeFails: state.isStoreFailing(outage: outage), lease: node.configuration.times.lease, at: .now)
                        state.updateDraining()
                        let changes = state.member.heartbeatCommitted(view, at: .now)
                        // At once: the next scan of the outbox finds the deliveries of these partitions.
                        state.inherited.formUnion(changes.compactMap(\.gained))
                        return changes
                    case .failure(let error):
                        state.heartbeatFailure = error.message
                        state.storeTrouble.heartbeatFailed()
                        state.member.heartbeatFailed()
                        return []
                    }
                }
                if case .failure(let error) = result {
                    if failure == nil { node.logger.error("failed to renew lease", metadata: ["reason": "\(error.message)"]) }
                    failure = error.message
                } else if failure != nil, case .success(let view) = result, view.isMember {
                    failure = nil
                    node.logger.info("lease renewed")
                }
                if case .success(let view) = result {
                    compareClocks(view)
                    let others = node.state.withLock { $0.leftovers.removed(from: $0.member.withoutFormerLeases(view)) }
                    noteConflicts(others)
                    node.noteFailovers(others)
                }
                carryOut(changes)
                noteNodes()
            }
            let next = node.state.withLock { $0.member.nextWakeUp } ?? now + node.configuration.times.heartbeatInterval
            timer = Task { if (try? await next.sleep()) != nil { node.heartbeatWakeUp.signal() } }
        }
    }

    private func compareClocks(_ view: ClusterView) {
        guard let reading = view.clock else { return }
        let isWrong = node.clockCompared(reading.certainLead(of: .nanoseconds(node.now().rawValue), at: .now))
        node.state.withLock { state in
            state.isClockWrong = isWrong
            state.updateDraining()
        }
    }

    private func noteConflicts(_ view: ClusterView) {
        let new = node.state.withLock { state in
            let conflicts = ClusterConflicts.find(in: view, of: state.member.id)
            defer { state.conflicts = conflicts }
            state.disputedSettings = ClusterConflicts.settings(in: view, of: state.member.id)
            state.unknownSettings = ClusterConflicts.unknownSettings(in: view, of: state.member.id)
            return conflicts.filter { !state.conflicts.contains($0) }
        }
        for conflict in new { node.logger.warning("conflicting node settings", metadata: ["reason": "\(conflict)"]) }
    }

    private func noteNodes() {
        let (count, keys, generation) = node.state.withLock { state -> (Int?, KeyAssignment?, Int) in
            // Before the first membership view no node is known, as after a lease expired: keep the former share.
            guard state.member.view != nil else { return (nil, nil, state.keyGeneration) }
            let count = max(1, state.member.workers.count)
            let keys = state.member.keys
            let isOther = keys != state.keys
            defer { (state.nodeCount, state.keys) = (count, isOther ? keys : state.keys) }
            if isOther { state.keyGeneration += 1 }
            return (count == state.nodeCount ? nil : count, isOther ? keys : nil, state.keyGeneration)
        }
        if let keys { duties.keyShareChanged(KeyShare(generation: generation, nodeCount: keys.nodes.count) { keys.contains($0) }) }
        guard let count else { return }
        node.logger.info("live nodes changed", metadata: ["nodes": .stringConvertible(count)])
        duties.nodeCountChanged(count)
        node.store.paceCommits(node.transactionInterval)
    }

    private func carryOut(_ changes: [ClusterMember.Change]) {
        guard !changes.isEmpty else { return }
        var left: Set<PartitionNumber> = []
        var hasEnded = false
        node.state.withLock { state in
            for change in changes {
                switch change {
                case .gained(let partition, _), .resume(let partition):
                    state.stopping.remove(partition)
                    state.toScan.insert(partition)
                case .stop(let partition):
                    state.stopping.insert(partition)
                    left.insert(partition)
                case .lost(let partition):
                    state.stopping.remove(partition)
                    left.insert(partition)
                case .ended:
                    hasEnded = true
                    rejoin(&state)
                }
            }
        }
        if hasEnded {
            node.logger.warning("lease expired; partitions reassigned")
            duties.delivery.leave { _ in true }
        } else if !left.isEmpty {
            duties.delivery.leave { [node] in left.contains(node.partition(of: $0)) }
        }
        node.deliveryWakeUp.signal()
    }

    private func rejoin(_ state: inout ClusterState) {
        state.stopping = []
        state.toScan = []
        guard !state.isLeaving else { return }
        let former = state.member
        defer {
            (state.member.isDraining, state.member.offersKeys) = (former.isDraining, former.offersKeys)
            (state.member.trouble, state.member.settings) = (former.trouble, former.settings)
        }
        state.member = ClusterMember(
            NodeID(rawValue: .random(in: 0 ... .max)), name: node.configuration.name, configuration: node.configuration.times, at: .now)
    }
}
