import Foundation
import Core
package import Storage
import StorePostgreSQL

extension ClusterDatabase {
    /// Two heartbeat intervals, and some time for a slow database.
    private static let nameObservation = Duration.milliseconds(2500)
    private static let nameReadingInterval = 0.25

    /// Waits until each former node with this name has ended its lease, or has not renewed it for 2.5 s (the node was killed). Blocks.
    ///
    /// - Throws: `StoreError` with `locked` if a node with this name keeps renewing its lease.
    package func requireFreeName(_ name: String) throws(StoreError) {
        let before = try renewals(ofNodesNamed: name)
        let end = Instant.now + Self.nameObservation
        var current = before
        while !current.isEmpty, Instant.now < end {
            Thread.sleep(forTimeInterval: Self.nameReadingInterval)
            current = try renewals(ofNodesNamed: name)
        }
        guard current.contains(where: { node, renewals in before[node].map { $0 != renewals } ?? true }) else { return }
        throw StoreError(
            code: .locked,
            message:
                "a node named \(name) runs on PostgreSQL (\(address)) already: give each node a --cluster name of its own, or stop that one"
        )
    }

    /// By node, without leases that have ended.
    private func renewals(ofNodesNamed name: String) throws(StoreError) -> [Int64: Int64] {
        let select = Statement("SELECT node, renewals FROM cluster_node WHERE name = $1 AND state <> 'ended'", [.text(name)])
        return try messages.read([select]) { found in
            try found[0].reduce(into: [:]) { $0[try $1.integer(0)] = try $1.integer(1) }
        }
    }
}
