import Cluster
import Core

/// The partitions of devices, with several nodes.
extension World {
    /// A lease ends after 5 s, a node that is stopped hands over within 8 s, and a database that returns is found within 5 s.
    private static let assignmentTime = Duration.seconds(20)

    /// In calm, each partition has an owner that renews its lease. Nodes whose clocks are wrong hand over what they have, so a step of the clocks counts
    /// as trouble.
    func watchPartitions() {
        guard engine == .cluster else { return }
        scheduler.after(.seconds(5)) { [self] in
            checkPartitions()
            watchPartitions()
        }
    }

    private func checkPartitions() {
        let since = scheduler.now - Self.assignmentTime.nanoseconds
        guard let server, isCalm(since: since, besides: [.gorush, .relay]), since >= startTime else { return }
        counts.checks += 1
        let live = Set(server.leases.filter { $0.value.row.state != .ended }.keys)
        let unowned = server.partitions.count { row in !(row.owner.map(live.contains) ?? false) }
        if unowned > 0 { fail("\(unowned) partitions have no owner, \(Self.assignmentTime) after the last trouble") }
        if live.count != nodes.count { fail("\(live.count) leases are not ended, and \(nodes.count) nodes run") }
    }
}
