@testable import Cluster
import Core
import Testing

@Suite struct ClusterMemberTests {
    @Test func loneNodeOwnsEverythingWithinTwoSeconds() {
        var cluster = SmallCluster(memberCount: 1)
        cluster.beat(from: 0, to: 2000)
        #expect(cluster.shares == [.number(1): 257])
    }

    @Test func partitionsAreDividedFairlyAndAJoinMovesOnlyItsShare() {
        var cluster = SmallCluster(memberCount: 2)
        cluster.beat(from: 0, to: 5000)
        #expect(cluster.shares.values.sorted() == [128, 129])
        let before = cluster.database.partitions
        cluster.join(3, at: 5000)
        cluster.beat(from: 5000, to: 10_000)
        #expect(cluster.shares.values.sorted() == [85, 86, 86])
        let moved = zip(before, cluster.database.partitions).filter { $0.owner != $1.owner }
        #expect(moved.count == cluster.shares[.number(3)])
    }

    @Test func drainingNodeHandsEverythingOverAndTheOthersKeepTheirs() {
        var cluster = SmallCluster(memberCount: 3)
        cluster.beat(from: 0, to: 6000)
        let before = cluster.database.partitions
        cluster.members[0].isDraining = true
        cluster.beat(from: 6000, to: 12_000)
        #expect(cluster.shares[.number(1)] == nil && cluster.shares.values.sorted() == [128, 129])
        for (old, new) in zip(before, cluster.database.partitions) where old.owner != .number(1) { #expect(new.owner == old.owner) }
        #expect(!cluster.members[1].workers.contains(.number(1)))
    }

    @Test func nodeThatServesKeysLeavesOnceTheOthersHadTimeToServeThem() {
        var cluster = SmallCluster(memberCount: 2)
        cluster.beat(from: 0, to: 5000)
        for index in 0..<2 { cluster.members[index].offersKeys = true }
        cluster.members[0].isDraining = true
        var announced: Milliseconds = 5000
        while cluster.database.leases[.number(1)]?.state != .draining, announced < 7000 {
            announced += 100
            cluster.beat(from: announced, to: announced)
        }
        cluster.beat(from: announced + 100, to: announced + 1900)
        #expect(cluster.shares[.number(1)] == nil)
        #expect(!cluster.members[0].hasLeft(at: .at(announced + 1999)))
        #expect(cluster.members[0].hasLeft(at: .at(announced + 2000)))
        // Without keys the partitions alone count.
        cluster.members[0].offersKeys = false
        #expect(cluster.members[0].hasLeft(at: .at(announced + 1999)))
    }

    @Test func loneNodeWaitsForNoOther() {
        var cluster = SmallCluster(memberCount: 1)
        cluster.members[0].offersKeys = true
        cluster.beat(from: 0, to: 5000)
        cluster.members[0].isDraining = true
        cluster.beat(from: 5100, to: 7000)
        #expect(cluster.shares == [.number(1): 257])
        #expect(cluster.members[0].hasLeft(at: .at(7000)))
    }

    @Test func partitionsStayOwnedWhenAllNodesDrain() {
        var cluster = SmallCluster(memberCount: 2)
        cluster.beat(from: 0, to: 5000)
        for index in 0..<2 { cluster.members[index].isDraining = true }
        cluster.beat(from: 5000, to: 12_000)
        #expect(cluster.shares.values.sorted() == [128, 129])
        #expect(cluster.members[0].workers.count == 2)
    }

    /// Not only from the next heartbeat on: its answers until then would have a wrong time.
    @Test(arguments: LeaseRow.Trouble.allCases) func nodeInTroubleLeavesMessagesAtOnce(trouble: LeaseRow.Trouble) {
        for count in 1...3 {
            var cluster = SmallCluster(memberCount: count)
            cluster.beat(from: 0, to: 6000)
            let keys = (0..<50).map { MessageKey(prefix: RendezvousHash.mix($0)) }
            #expect(keys.contains { cluster.members[0].rank(of: $0) == 0 })
            (cluster.members[0].isDraining, cluster.members[0].trouble) = (true, trouble)
            #expect(keys.allSatisfy { cluster.members[0].rank(of: $0) == count - 1 })
        }
    }

    @Test func silentNodeIsReplacedAfterItsLease() {
        var cluster = SmallCluster(memberCount: 3)
        cluster.beat(from: 0, to: 6000)
        let epochs = cluster.database.partitions.map(\.epoch)
        cluster.beat([1, 2], from: 6100, to: 9900)
        #expect(cluster.shares[.number(1)] != nil)
        cluster.beat([1, 2], from: 10_000, to: 15_000)
        #expect(cluster.shares[.number(1)] == nil && cluster.shares.values.sorted() == [128, 129])
        #expect(cluster.database.leases[.number(1)]?.state == .ended)
        for (old, row) in zip(epochs, cluster.database.partitions) { #expect(row.epoch >= old) }
    }

    @Test func nodeWhoseLeaseWasEndedLearnsItAndPostsNothing() {
        var cluster = SmallCluster(memberCount: 2)
        cluster.beat(from: 0, to: 5000)
        cluster.beat([1], from: 5100, to: 13_000)
        let mark = DeliveryMark(owner: .number(1), epoch: 1)
        #expect((0..<257).allSatisfy { !cluster.members[0].mayPost(under: mark, in: $0, at: .at(13_000)) })
        #expect(cluster.beat(0, at: 13_000) == [.ended])
        #expect(cluster.members[0].heartbeat(at: .at(20_000)) == nil && cluster.members[0].nextWakeUp == nil)
    }

    /// Also after its lease expired: then it joins again, under another id.
    @Test func formerLeaseOfARestartedNodeIsNeitherAConflictNorAFailover() {
        var (cluster, log) = (SmallCluster(memberCount: 2), FailoverLog())
        cluster.beat(from: 0, to: 5000)
        cluster.join(3, at: 6000, named: "host-1")
        var conflicts: [String] = []
        var lost: [FailoverLog.Event] = []
        for time in stride(from: 6000, through: 20_000, by: 100) as StrideThrough<Milliseconds> {
            cluster.beat([1, 2], from: time, to: time)
            guard let view = cluster.members[2].view else { continue }
            let others = cluster.members[2].withoutFormerLeases(view)
            conflicts += ClusterConflicts.find(in: others, of: .number(3))
            lost += log.observed(others)
            #expect(others.leases.contains { $0.node == .number(2) } && others.leases.contains { $0.node == .number(3) })
        }
        #expect(cluster.database.leases[.number(1)]?.state == .ended)
        #expect(conflicts == [] && lost == [])
    }

    @Test func anotherNodeOfTheSameNameIsAConflict() throws {
        var cluster = SmallCluster(memberCount: 2)
        cluster.join(3, at: 0, named: "host-1")
        cluster.beat(from: 0, to: 3000)
        let view = try #require(cluster.members[2].view)
        #expect(ClusterConflicts.find(in: cluster.members[2].withoutFormerLeases(view), of: .number(3)).count == 1)
    }

    @Test func postingStopsAMarginBeforeTheLeaseEndsCountedFromWhenTheRenewalWasSent() throws {
        var cluster = SmallCluster(memberCount: 1)
        cluster.beat(from: 0, to: 1000)
        // Sent at 2000, answered at 2900.
        let heartbeatSent = cluster.members[0].heartbeat(at: .at(2000))
        let heartbeat = try #require(heartbeatSent)
        guard case .heartbeat(let view, _, _, _) = cluster.database.execute(.heartbeat(heartbeat), row: 0, began: 0, at: 2400, clock: 0)
        else { return }
        _ = cluster.members[0].heartbeatCommitted(view, at: .at(2900))
        let mark = DeliveryMark(owner: .number(1), epoch: 1)
        #expect(cluster.members[0].mayPost(under: mark, in: 3, at: .at(5999)))
        #expect(!cluster.members[0].mayPost(under: mark, in: 3, at: .at(6000)))
    }

    @Test func renewalWithUnknownOutcomeExtendsNothing() {
        var cluster = SmallCluster(memberCount: 1)
        cluster.beat(from: 0, to: 1000)
        _ = cluster.members[0].heartbeat(at: .at(2000))
        cluster.members[0].heartbeatFailed()
        #expect(cluster.members[0].verdict(on: nil, in: 0, at: .at(5100)) == .notOwner)
        // No node ended the lease: the next renewal continues it, under the same epochs.
        cluster.beat(0, at: 6000)
        let mark = DeliveryMark(owner: .number(1), epoch: 1)
        #expect(cluster.members[0].verdict(on: nil, in: 0, at: .at(6000)) == .markAndPost(mark))
    }

    @Test func rowsMarkedByAFormerOwnerAreDistinguishedFromUnmarkedOnes() {
        var cluster = SmallCluster(memberCount: 1)
        cluster.beat(from: 0, to: 1000)
        let member = cluster.members[0]
        let own = DeliveryMark(owner: .number(1), epoch: 1)
        let former = DeliveryMark(owner: .number(9), epoch: 0)
        #expect(member.verdict(on: nil, in: 0, at: .at(1000)) == .markAndPost(own))
        #expect(member.verdict(on: own, in: 0, at: .at(1000)) == .inProgress)
        #expect(member.verdict(on: former, in: 0, at: .at(1000)) == .markAndRepeat(own))
    }

    @Test func settledPartitionsAreReleasedWithoutTheirMarks() {
        var cluster = SmallCluster(partitionCount: 1, memberCount: 1)
        cluster.beat(from: 0, to: 1000)
        let mark = DeliveryMark(owner: .number(1), epoch: 1)
        cluster.database.outbox[1] = .init(id: 1, message: 1, device: 1, partition: 0, mark: mark, began: 0, committedAt: 0)
        cluster.join(2, at: 1000)
        cluster.members[0].isDraining = true
        cluster.beat(from: 1000, to: 4000)
        #expect(cluster.shares == [.number(2): 2])
        #expect(cluster.database.outbox[1]?.mark == nil)
    }

    /// A node hastens its heartbeat when it is told to drain, when its partitions are settled, and when another has released some.
    @Test func hastenedHeartbeatsHandPartitionsOverWithinMoments() {
        var cluster = SmallCluster(partitionCount: 1, memberCount: 2)
        cluster.beat(from: 0, to: 3000)
        let owner = cluster.database.partitions[0].owner == .number(1) ? 0 : 1
        let other = 1 - owner
        cluster.members[owner].isDraining = true
        cluster.members[owner].hasten(at: .at(3000))
        var beats = 0
        for time in stride(from: 3000 as Milliseconds, through: 3600, by: 20) {
            for index in [owner, other] {
                if cluster.members[index].nextWakeUp.map({ $0 <= .at(time) }) == true { beats += 1 }
                for change in cluster.beat(index, at: time) {
                    guard case .stop(let partition) = change else { continue }
                    cluster.members[index].settled(partition)
                    cluster.members[index].hasten(at: .at(time))
                }
            }
            if cluster.database.partitions[0].owner == nil { cluster.members[other].hasten(at: .at(time)) }
        }
        #expect(cluster.shares == [.number(UInt64(other + 1)): 2])
        #expect(beats <= 6, "\(beats)")
    }

    @Test func unsettledPartitionsAreReleasedAfterATimeoutWithTheirMarks() {
        var cluster = SmallCluster(partitionCount: 1, memberCount: 1)
        cluster.beat(from: 0, to: 1000)
        let mark = DeliveryMark(owner: .number(1), epoch: 1)
        cluster.database.outbox[1] = .init(id: 1, message: 1, device: 1, partition: 0, mark: mark, began: 0, committedAt: 0)
        cluster.join(2, at: 1000)
        cluster.members[0].isDraining = true
        for time in stride(from: 1000, through: 6000, by: 100) {
            for index in 0..<2 { cluster.beat(index, at: time) }
        }
        #expect(cluster.shares == [.number(1): 2])
        for time in stride(from: 6100, through: 9000, by: 100) {
            for index in 0..<2 { cluster.beat(index, at: time) }
        }
        #expect(cluster.shares == [.number(2): 2])
        #expect(cluster.database.outbox[1]?.mark == mark)
    }

    @Test func partitionIsResumedWhenItsNextOwnerIsGoneButNotAfterItsReleaseWasSent() throws {
        var cluster = SmallCluster(partitionCount: 1, memberCount: 2)
        cluster.beat(from: 0, to: 3000)
        let owner = cluster.database.partitions[0].owner == .number(1) ? 0 : 1
        cluster.members[owner].isDraining = true
        var time = 3100
        var changes: [ClusterMember.Change] = []
        while changes.isEmpty, time < 10_000 {
            changes = cluster.beat(owner, at: time)
            time += 100
        }
        #expect(changes == [.stop(0)])
        cluster.members[owner].isDraining = false
        changes = []
        while changes.isEmpty, time < 10_000 {
            changes = cluster.beat(owner, at: time)
            time += 100
        }
        #expect(changes == [.resume(0)])
        // Now the release is sent, and its outcome is unknown.
        cluster.members[owner].isDraining = true
        while cluster.beat(owner, at: time) != [.stop(0)], time < 20_000 { time += 100 }
        cluster.members[owner].settled(0)
        let releaseSent = cluster.members[owner].heartbeat(at: .at(time + 1000))
        let release = try #require(releaseSent)
        #expect(release.releases.map(\.isSettled) == [true])
        cluster.members[owner].heartbeatFailed()
        cluster.members[owner].isDraining = false
        let againSent = cluster.members[owner].heartbeat(at: .at(time + 2000))
        let again = try #require(againSent)
        #expect(again.releases == release.releases)
        let mark = DeliveryMark(owner: cluster.members[owner].id, epoch: release.releases[0].epoch)
        #expect(!cluster.members[owner].mayPost(under: mark, in: 0, at: .at(time + 2000)))
    }

    @Test func afterAnOutageNoNodeEndsTheLeasesOfTheOthers() {
        var cluster = SmallCluster(memberCount: 3)
        cluster.beat(from: 0, to: 6000)
        // A minute without the database: each attempt fails. Then the nodes reconnect one after the other.
        for time in stride(from: 6100, through: 66_000, by: 100) {
            for index in 0..<3 where cluster.members[index].heartbeat(at: .at(time)) != nil {
                cluster.members[index].heartbeatFailed()
            }
        }
        cluster.beat([0], from: 66_100, to: 68_000)
        cluster.beat(from: 68_100, to: 75_000)
        #expect(cluster.database.leases.values.allSatisfy { $0.state == .live })
        #expect(cluster.shares.values.sorted() == [85, 86, 86])
    }

    @Test func renewalThatIsCommittedMeanwhileKeepsALeaseFromBeingEnded() throws {
        var cluster = SmallCluster(memberCount: 2)
        cluster.beat(from: 0, to: 5000)
        cluster.beat([1], from: 5100, to: 8900)
        let lateSent = cluster.members[0].heartbeat(at: .at(9000))
        let late = try #require(lateSent)
        var ends: Heartbeat?
        for time in stride(from: 9000, through: 13_000, by: 100) where ends == nil {
            let heartbeat = cluster.members[1].heartbeat(at: .at(time))
            if let heartbeat, !heartbeat.ends.isEmpty {
                ends = heartbeat
            } else if let heartbeat,
                case .heartbeat(let view, _, _, _) = cluster.database.execute(.heartbeat(heartbeat), row: 0, began: 0, at: 0, clock: 0)
            {
                _ = cluster.members[1].heartbeatCommitted(view, at: .at(time))
            }
        }
        let decided = try #require(ends)
        _ = cluster.database.execute(.heartbeat(late), row: 0, began: 0, at: 0, clock: 0)
        _ = cluster.database.execute(.heartbeat(decided), row: 0, began: 0, at: 0, clock: 0)
        #expect(cluster.database.leases[.number(1)]?.state == .live)
        #expect(cluster.shares[.number(1)] != nil)
    }

    @Test func maintenanceHasOneOwnerWithAnEpoch() {
        var cluster = SmallCluster(memberCount: 3)
        cluster.beat(from: 0, to: 6000)
        let marks = cluster.members.compactMap { $0.maintenanceMark(at: .at(6000)) }
        #expect(marks.count == 1)
        #expect(marks.first?.owner == cluster.database.partitions[256].owner)
    }
}
