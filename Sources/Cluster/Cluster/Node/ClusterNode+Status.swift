import Core
import Logging
package import NodeAPI
import NodeMetrics
import Storage
import Synchronization

/// The nodes, partitions, standbys and failovers that this node knows of.
extension ClusterNode {
    /// How often the standbys are read.
    private static let standbyInterval = Duration.seconds(10)

    /// nil before the first heartbeat was committed.
    package var status: ClusterStatus? {
        let now = Instant.now
        return state.withLock { state in
            guard let view = state.member.view else { return nil }
            let times = configuration.times
            let live = view.leases.filter { $0.state != .ended }
            let devices = view.partitions.prefix(times.partitionCount)
            let maintainer = view.partitions.dropFirst(times.maintenancePartition).first?.owner
            var counts: [NodeID: Int] = [:]
            for partition in devices { if let owner = partition.owner { counts[owner, default: 0] += 1 } }
            let owned = live.reduce(0) { $0 + (counts[$1.node] ?? 0) }
            return ClusterStatus(
                nodes: live.sorted { ($0.name, $0.node) < ($1.name, $1.node) }.map { lease in
                    ClusterStatus.Node(
                        name: lease.name, state: lease.stateName, isSelf: lease.node == state.member.id,
                        secondsSinceRenewal: state.member.silence(of: lease.node, at: now)?.seconds,
                        partitions: counts[lease.node] ?? 0, isMaintainer: lease.node == maintainer)
                }, partitionCount: times.partitionCount, unownedPartitions: devices.count - owned, standbys: state.standbys,
                standbysProblem: state.standbysProblem, lastFailover: state.lastFailover)
        }
    }

    /// Keeps the figures of the standbys current until cancelled.
    func watchStandbys() async {
        while !Task.isCancelled {
            let found = await onThread(maintenanceThread) { database throws(StoreError) in try database.standbys() }
            state.withLock { state in
                switch found {
                case .success(let standbys): (state.standbys, state.standbysProblem) = (standbys, nil)
                case .failure(let error): (state.standbys, state.standbysProblem) = (nil, error.message)
                }
            }
            guard (try? await Task.sleep(for: Self.standbyInterval)) != nil else { return }
        }
    }

    /// Records failovers that a heartbeat's view shows.
    func noteFailovers(_ view: ClusterView) {
        let events = state.withLock { state in
            let events = state.failovers.observed(view)
            if let last = events.last {
                state.lastFailover = ClusterStatus.Failover(time: Double(now().rawValue) / 1_000_000_000, text: last.text)
            }
            return events
        }
        for event in events { logger.warning("failover", metadata: ["reason": "\(event.text)"]) }
    }
}

extension FailoverLog.Event {
    fileprivate var text: String {
        switch self {
        case .nodeLost(let name): "node \(name) did not renew its lease; other nodes took over its partitions"
        case .databasePromoted(let timeline): "a standby of the database was promoted (timeline \(timeline))"
        }
    }
}
