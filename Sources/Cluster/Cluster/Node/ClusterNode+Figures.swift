import Core
package import NodeAPI
import Storage
import Synchronization

/// Figures for readiness, metrics, `admin status` and the status page.
extension ClusterNode {
    /// Whether this node currently runs the maintenance that only one node may run at a time.
    package var isMaintainer: Bool { state.withLock { $0.member.maintenanceMark(at: .now) != nil } }

    /// The reason why the node has no valid lease; nil while it has one.
    package var failure: String? {
        state.withLock { state in
            // A node that can't reach the database can't know whether other nodes have taken over its share.
            state.member.lease.isValid(at: .now)
                ? nil
                : "the lease in the database is not renewed, and nothing is posted until it is: \(state.heartbeatFailure ?? "no answer yet")"
        }
    }

    package var outboxFailure: String? { state.withLock(\.outboxFailure).map { "the outbox can't be read: \($0.message)" } }

    package var claimGap: Duration? { state.withLock { $0.window.gap(now: Timestamp.now().wholeSeconds + $0.clockOffset) } }

    package var areAllClocksOff: Bool { state.withLock { $0.member.view?.areAllClocksOff ?? false } }

    /// The number of device partitions for which this node posts notifications.
    package var share: Int {
        state.withLock { state in
            let now = Instant.now
            return (0..<configuration.times.partitionCount).count { state.member.mark(in: $0, at: now) != nil }
        }
    }

    /// The number of nodes that share the messages.
    package var nodeCount: Int { state.withLock(\.nodeCount) }

    /// The value for `Core/Pacing/interval`; zero if this is the only node.
    package var transactionInterval: Duration {
        let count = nodeCount
        return count > 1 ? configuration.times.transactionInterval * count : .zero
    }

    /// The number of messages whose outcome this node does not know yet.
    var openCount: Int { state.withLock(\.share.openCount) }

    /// For `admin status` and the status page.
    package var facts: [ProtocolFact] {
        [
            ProtocolFact("node", configuration.name), ProtocolFact("nodes that share the messages", "\(nodeCount)"),
            ProtocolFact("partitions of this node", "\(share) of \(configuration.times.partitionCount)"),
            ProtocolFact("messages under way", "\(openCount)"),
        ] + conflicts.map { ProtocolFact("nodes differ", $0) }
    }
}
