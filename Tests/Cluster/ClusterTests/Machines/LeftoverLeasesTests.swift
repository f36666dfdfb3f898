@testable import Cluster
import Testing

struct LeftoverLeasesTests {
    private var own: LeaseRow { LeaseRow(node: .number(1), name: "host-1", settings: ["--reply-delay": "1s"]) }
    private var restored: LeaseRow {
        LeaseRow(node: .number(2), renewals: 7, name: "host-2", settings: ["--reply-delay": "2s"], isOverdue: true)
    }

    private func view(_ leases: LeaseRow...) -> ClusterView { ClusterView(isMember: true, leases: leases, partitions: []) }

    /// The other nodes of a restored database run beside the original, or not at all.
    @Test func leasesOfARestoredDatabaseAreNeitherFailoversNorConflicts() {
        var (leftovers, log) = (LeftoverLeases(), FailoverLog())
        var ended = restored
        ended.state = .ended
        for lease in [restored, restored, ended] {
            let others = leftovers.removed(from: view(own, lease))
            #expect(others.leases == [own])
            #expect(log.observed(others) == [] && ClusterConflicts.find(in: others, of: .number(1)) == [])
        }
    }

    @Test func aRenewedLeaseCounts() {
        var (leftovers, log) = (LeftoverLeases(), FailoverLog())
        #expect(leftovers.removed(from: view(own, restored)).leases == [own])
        var renewed = restored
        (renewed.renewals, renewed.isOverdue) = (8, false)
        let others = leftovers.removed(from: view(own, renewed))
        #expect(log.observed(others) == [] && ClusterConflicts.find(in: others, of: .number(1)).count == 1)
        (renewed.state, renewed.isOverdue) = (.ended, true)
        #expect(log.observed(leftovers.removed(from: view(own, renewed))) == [.nodeLost(name: "host-2")])
    }

    /// A node that is lost while this one runs, or within a lease before its start, is a failover.
    @Test func aLeaseThatWasValidAtTheStartIsNoLeftover() {
        var leftovers = LeftoverLeases()
        var lease = restored
        lease.isOverdue = false
        #expect(leftovers.removed(from: view(own, lease)).leases.count == 2)
        lease.isOverdue = true
        #expect(leftovers.removed(from: view(own, lease)).leases.count == 2)
        // A view without the own lease is of a heartbeat that changed nothing.
        var first = LeftoverLeases()
        #expect(first.removed(from: ClusterView(isMember: false, leases: [], partitions: [])).leases == [])
        #expect(first.removed(from: view(own, lease)).leases == [own])
    }
}
