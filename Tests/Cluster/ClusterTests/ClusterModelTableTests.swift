@testable import Cluster
import Core
import TestSupport
import Testing

/// `Tests/models/cluster-rules.pml`: what a member of the cluster does in each state, by ``ClusterMember``, ``PartitionAssignment`` and
/// ``MessageShare`` themselves. The cluster has one partition.
@Suite struct ClusterModelTableTests {
    private enum Ownership: Int, CaseIterable {
        case notOwned, posting, stopping, releasing
        case releasingSettled = 4
    }
    private enum Target: CaseIterable { case others, own }

    private static let own = NodeID.number(2)
    private static let other = NodeID.number(1)
    private static let epoch: UInt64 = 5
    private static let partition = 0

    private let configuration: ClusterConfiguration = {
        var configuration = ClusterConfiguration()
        // The maintenance partition alone.
        configuration.partitionCount = 0
        return configuration
    }()

    private func view(owner: NodeID?, epoch: UInt64, other: LeaseRow.State = .live) -> ClusterView {
        ClusterView(
            isMember: true,
            leases: [
                LeaseRow(node: Self.other, renewals: 1, state: other, hashingVersion: HashingRules.known.last?.version ?? 1),
                LeaseRow(node: Self.own, renewals: 1, hashingVersion: HashingRules.known.last?.version ?? 1),
            ], partitions: [PartitionRow(owner: owner, epoch: epoch)])
    }

    /// A heartbeat that is committed at once and reads this view.
    private func beat(_ member: inout ClusterMember, _ view: ClusterView, at second: Int) {
        _ = member.heartbeat(at: .at(1000 * second))
        _ = member.heartbeatCommitted(view, at: .at(1000 * second))
    }

    /// A member whose last heartbeat was at second 10, or sent at second 20 when it is releasing: then it is unanswered.
    private func member(_ ownership: Ownership) -> ClusterMember {
        var member = ClusterMember(Self.own, name: "own", configuration: configuration, at: .at(0))
        guard ownership != .notOwned else {
            beat(&member, view(owner: Self.other, epoch: Self.epoch), at: 10)
            return member
        }
        beat(&member, view(owner: Self.own, epoch: Self.epoch), at: 9)
        if ownership != .posting { member.isDraining = true }
        beat(&member, view(owner: Self.own, epoch: Self.epoch), at: 10)
        if ownership == .releasingSettled { member.settled(Self.partition) }
        if ownership == .releasing || ownership == .releasingSettled { _ = member.heartbeat(at: .at(20_000)) }
        return member
    }

    /// The number of the release in the heartbeat: see the names below.
    private func release(_ heartbeat: Heartbeat?) -> Int {
        guard let release = heartbeat?.releases.first else { return 0 }
        return release.isSettled ? 3 : 2
    }

    /// The state of the partition, by what the member does next.
    private func ownership(_ member: ClusterMember, at second: Int) -> Ownership {
        for epoch in Self.epoch...(Self.epoch + 2)
        where member.mayPost(under: DeliveryMark(owner: Self.own, epoch: epoch), in: Self.partition, at: .at(1000 * second)) {
            return .posting
        }
        var copy = member
        switch release(copy.heartbeat(at: .at(1000 * second + 1000))) {
        case 2: return .releasing
        case 3: return .releasingSettled
        default: break
        }
        copy = member
        copy.settled(Self.partition)
        return copy.heartbeat(at: .at(1000 * second + 1000))?.releases.isEmpty == false ? .stopping : .notOwned
    }

    // MARK: Partitions

    private func targets() -> [ModelTable.Entry] {
        (0...3).flatMap { holder in
            (0..<8).map { mask in
                let workers = (0..<3).filter { mask >> $0 & 1 == 1 }
                let row = PartitionRow(owner: holder < 3 ? .number(UInt64(holder)) : nil, epoch: 1)
                let target = PartitionAssignment.targets([row], among: workers.map { .number(UInt64($0)) })[0]
                return (
                    target.map { Int($0.rawValue) } ?? 3,
                    "owner \(holder < 3 ? "\(holder)" : "none"), nodes \(workers.map(String.init).joined(separator: " "))"
                )
            }
        }
    }

    private func takes() -> [ModelTable.Entry] {
        let rows: [(name: String, owner: NodeID?, other: LeaseRow.State)] = [
            ("no owner", nil, .live), ("a member", Self.other, .live), ("an ended node", Self.other, .ended), ("itself", Self.own, .live),
        ]
        return rows.flatMap { row in
            Target.allCases.map { target in
                var member = ClusterMember(Self.own, name: "own", configuration: configuration, at: .at(0))
                // The node that drains is not the target.
                member.isDraining = target == .others
                let other = row.other == .live && target == .own ? .draining : row.other
                var view = view(owner: row.owner, epoch: Self.epoch, other: other)
                if target == .others, other == .ended {
                    view.leases.append(LeaseRow(node: .number(3), renewals: 1, hashingVersion: view.leases[0].hashingVersion))
                }
                beat(&member, view, at: 10)
                let isTaken = member.heartbeat(at: .at(11_000))?.takes.isEmpty == false
                return (isTaken ? 1 : 0, "held by \(row.name), target \(target == .own ? "itself" : "another")")
            }
        }
    }

    private func releases() -> [ModelTable.Entry] {
        Ownership.allCases.flatMap { state in
            (0..<4).map { place in
                let (isSettled, isOver) = (place & 2 != 0, place & 1 != 0)
                var member = member(state)
                if state == .releasing || state == .releasingSettled { member.heartbeatFailed() }
                if isSettled { member.settled(Self.partition) }
                let second = state == .releasing || state == .releasingSettled ? 21 : isOver ? 20 : 11
                return (
                    release(member.heartbeat(at: .at(1000 * second))),
                    "\(state), \(isSettled ? "settled" : "not settled"), \(isOver ? "after the timeout" : "before the timeout")"
                )
            }
        }
    }

    private func ownerships() -> [ModelTable.Entry] {
        Ownership.allCases.flatMap { state in
            (0..<3).flatMap { row in
                Target.allCases.map { target -> ModelTable.Entry in
                    let rowName = ["another owner", "the known epoch", "a new epoch"][row]
                    let description = "\(state), the row has \(rowName), target \(target == .own ? "itself" : "another")"
                    if state == .notOwned, row == 1 { return (ModelTable.impossible, description) }
                    var member = member(state)
                    member.isDraining = target == .others
                    let isReleasing = state == .releasing || state == .releasingSettled
                    let second = isReleasing ? 20 : 11
                    if !isReleasing { _ = member.heartbeat(at: .at(11_000)) }
                    let view =
                        row == 0
                        ? self.view(owner: Self.other, epoch: Self.epoch + 1, other: target == .own ? .draining : .live)
                        : self.view(owner: Self.own, epoch: Self.epoch + (row == 1 ? 0 : 2))
                    _ = member.heartbeatCommitted(view, at: .at(1000 * second))
                    return (ownership(member, at: second).rawValue, description)
                }
            }
        }
    }

    private func verdicts() -> [ModelTable.Entry] {
        let marks: [(name: String, mark: DeliveryMark?)] = [
            ("unmarked", nil), ("marked by this ownership", DeliveryMark(owner: Self.own, epoch: Self.epoch)),
            ("marked before", DeliveryMark(owner: Self.other, epoch: Self.epoch - 1)),
        ]
        return marks.flatMap { mark in
            Ownership.allCases.flatMap { state in
                [false, true].map { isValid in
                    let verdict = member(state).verdict(on: mark.mark, in: Self.partition, at: .at(isValid ? 10_100 : 19_000))
                    let number =
                        switch verdict {
                        case .notOwner: 0
                        case .markAndPost: 1
                        case .markAndRepeat: 2
                        case .inProgress: 3
                        }
                    return (number, "\(mark.name), \(state), lease \(isValid ? "valid" : "over")")
                }
            }
        }
    }

    private func posts() -> [ModelTable.Entry] {
        Ownership.allCases.flatMap { state in
            [false, true].flatMap { isCurrent in
                [false, true].map { isValid in
                    let mark = DeliveryMark(owner: Self.own, epoch: isCurrent ? Self.epoch : Self.epoch - 1)
                    let mayPost = member(state).mayPost(under: mark, in: Self.partition, at: .at(isValid ? 10_100 : 19_000))
                    return (
                        mayPost ? 1 : 0,
                        "\(state), marked by \(isCurrent ? "this" : "an earlier") epoch, lease \(isValid ? "valid" : "over")"
                    )
                }
            }
        }
    }

    // MARK: Messages

    private static let key = MessageKey(prefix: 7)

    private func share(rank: Int) -> MessageShare {
        var share = MessageShare(Self.own, configuration: configuration)
        _ = share.heard(Self.key, rank: rank, at: .at(0))
        return share
    }

    /// Stages: 0 none (forgotten), 1 waiting, 2 handling, 3 answering, 4 watching, 5 failed, 6 unresolved, 7 finished.
    private func handled() -> [ModelTable.Entry] {
        let outcomes: [(name: String, outcome: MessageShare.Outcome)] = [
            ("committed", .committed), ("without effect", .withoutEffect), ("claimed elsewhere", .claimedElsewhere(.registration)),
            ("failed", .failed), ("unknown", .unknown),
        ]
        return outcomes.flatMap { outcome in
            [false, true].map { isAnswered in
                var share = share(rank: 0)
                if isAnswered {
                    share.expectAnswer(Self.key, at: .at(1))
                    #expect(share.advance(to: .at(2500)) == [.answerFailure(Self.key)])
                }
                let time = isAnswered ? 2600 : 100
                share.handled(Self.key, outcome.outcome, at: .at(time))
                return (stage(share, after: time), "\(outcome.name), \(isAnswered ? "answered with an error" : "not answered")")
            }
        }
    }

    private func stage(_ share: MessageShare, after time: Milliseconds) -> Int {
        var copy = share
        if !share.isOpen(Self.key) { return copy.log.row(at: .at(time + 60_000))?.prefixes == [Self.key.prefix] ? 7 : 0 }
        let actions = copy.advance(to: .at(time + 1500))
        if actions.contains(.repeatTransaction(Self.key)) { return 6 }
        guard actions == [.readFinishedRows] else { return 3 }
        copy = share
        // A failed message is answered with an error in the end; a watched one is taken over.
        return copy.advance(to: .at(time + 20_000)).contains(.answerFailure(Self.key)) ? 5 : 4
    }

    private func lookUps() -> [ModelTable.Entry] {
        let claim = Claim(node: Self.other, kind: .registration)
        return ["waiting", "watching", "failed"].enumerated().flatMap { place, name in
            [false, true].flatMap { isClaimed in
                [false, true].map { isDue -> ModelTable.Entry in
                    var share = share(rank: place == 0 ? 1 : 0)
                    if place == 1 { share.handled(Self.key, .claimedElsewhere(.registration), at: .at(10)) }
                    if place == 2 { share.handled(Self.key, .failed, at: .at(10)) }
                    let time = isDue || place == 1 ? 1400 : 700
                    _ = share.advance(to: .at(time))
                    _ = share.finishedRowsRead()
                    let actions = share.claimsRead(isClaimed ? [Self.key: claim] : [:], at: .at(time))
                    let number =
                        actions == [.handle(Self.key)] ? 2 : actions == [.takeOverAnswer(Self.key)] ? 3 : share.isOpen(Self.key) ? 4 : 0
                    return (
                        number,
                        "\(name), \(isClaimed ? "claimed" : "not claimed"), the answer is \(isDue || place == 1 ? "due" : "not due")"
                    )
                }
            }
        }
    }

    @Test func rules() throws {
        var table = ModelTable("cluster-rules.pml", by: "ClusterModelTableTests")
        table.define(["NOT_OWNED", "POSTING", "STOPPING", "RELEASING", "RELEASING_SETTLED"])
        table.define(["RENEW", "TAKE", "RELEASE", "RELEASE_SETTLED"])
        table.define(["HELD_BY_NOBODY", "HELD_BY_MEMBER", "HELD_BY_ENDED", "HELD_BY_ME"])
        table.define(["ROW_OF_OTHERS", "ROW_AS_KNOWN", "ROW_OF_NEW_EPOCH"])
        table.define(["UNMARKED", "MARKED_BY_ME", "MARKED_BEFORE"])
        table.define(["NOT_OWNER", "MARK_AND_POST", "MARK_AND_REPEAT", "IN_PROGRESS"])
        table.define(["FORGOTTEN", "WAITING", "HANDLING", "ANSWERING", "WATCHING", "FAILED", "UNRESOLVED", "FINISHED"])
        table.define(["COMMITTED", "WITHOUT_EFFECT", "CLAIMED_ELSEWHERE", "NOT_COMMITTED", "UNKNOWN"])
        table.add("partitionTarget", targets())
        table.add("takeRules", takes())
        table.add("releaseRules", releases())
        table.add("ownershipRules", ownerships())
        table.add("verdictRules", verdicts())
        table.add("postRules", posts())
        table.add("handledRules", handled())
        table.add("lookUpRules", lookUps())
        try table.write()
    }
}
