import Core
import GossipSub
import TestSupport
import Testing

@testable import WakuP2P

@Suite("Topic coverage")
struct TopicCoverageTests {
    private let one = PeerNumber(rawValue: 1)
    private let two = PeerNumber(rawValue: 2)
    private let three = PeerNumber(rawValue: 3)

    /// Since second 0, all of them heard at `second`.
    private func coverage(of members: [PeerNumber], heardAt second: Int) -> TopicCoverage {
        var coverage = TopicCoverage()
        coverage.update(members: members, at: .zero)
        for member in members { coverage.heard(member, at: .seconds(second)) }
        return coverage
    }

    @Test func membersLostTogetherAndNoticedOneAfterTheOther() {
        var coverage = coverage(of: [one, two, three], heardAt: 100)
        coverage.update(members: [two, three], at: .seconds(121))
        #expect(coverage.takeLoss() == nil)
        // The first is back, and sends.
        coverage.update(members: [two, three, one], at: .seconds(122))
        coverage.heard(one, at: .seconds(130))
        coverage.update(members: [three, one], at: .seconds(140))
        #expect(coverage.takeLoss() == nil)
        coverage.update(members: [one], at: .seconds(160))
        #expect(coverage.takeLoss() == .seconds(100))
        #expect(coverage.takeLoss() == nil)
        // The others are, too: no further loss.
        coverage.update(members: [one, two, three], at: .seconds(162))
        coverage.heard(one, at: .seconds(170))
        coverage.update(members: [two, three], at: .seconds(180))
        #expect(coverage.takeLoss() == nil)
    }

    @Test func aMemberThatWasThereAllTheTimeAndIsHeardAgainProvesReception() {
        var coverage = coverage(of: [one, two], heardAt: 100)
        coverage.update(members: [two], at: .seconds(121))
        coverage.update(members: [two, one], at: .seconds(122))
        // Only now: the topic was quiet.
        coverage.heard(two, at: .seconds(500))
        coverage.update(members: [one], at: .seconds(501))
        #expect(coverage.takeLoss() == nil)
        coverage.heard(one, at: .seconds(510))
        coverage.update(members: [], at: .seconds(540))
        coverage.update(members: [two], at: .seconds(541))
        #expect(coverage.takeLoss() == .seconds(510))
    }

    @Test func aLossIsReportedOnceThereAreMembersAgain() {
        var coverage = TopicCoverage()
        #expect(!coverage.isCovered)
        #expect(coverage.takeLoss() == nil)
        coverage.update(members: [one], at: .seconds(5))
        coverage.update(members: [], at: .seconds(90))
        #expect(!coverage.isCovered)
        #expect(coverage.takeLoss() == nil)
        coverage.update(members: [two], at: .seconds(95))
        // Gone again before it was reported.
        coverage.update(members: [], at: .seconds(96))
        #expect(coverage.takeLoss() == nil)
        coverage.update(members: [one], at: .seconds(99))
        #expect(coverage.isCovered)
        #expect(coverage.takeLoss() == .seconds(5))
    }

    /// Stores are not queried for it, however often it happens.
    @Test func membersThatComeAndGoBesideASteadyOneAreNoLoss() {
        var coverage = coverage(of: [one], heardAt: 0)
        for second in 1..<1000 {
            coverage.update(members: second.isMultiple(of: 2) ? [one, two] : [one, three], at: .seconds(second))
            for member in [two, one] { coverage.heard(member, at: .seconds(second)) }
            #expect(coverage.takeLoss() == nil)
        }
        coverage.update(members: [two], at: .seconds(1000))
        #expect(coverage.takeLoss() == .seconds(999))
    }

    /// One message a second. Peers fail, often together; each failure is noticed some time later, and the peer is back after that.
    @Test(arguments: 0..<20 as Range<UInt64>) func everyMissedMessageIsInALoss(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let peers = [one, two, three]
        var (coverage, members) = (TopicCoverage(), peers)
        var noticedAt: [PeerNumber: Int] = [:]
        var backAt: [PeerNumber: Int] = [:]
        var missing: Set<Int> = []
        var (missedCount, lossCount) = (0, 0)
        for second in 1..<5000 {
            for peer in peers where backAt[peer] == second { members.append(peer) }
            for peer in peers where noticedAt[peer] == second {
                noticedAt[peer] = nil
                members.removeAll { $0 == peer }
                backAt[peer] = second + Int.random(in: 1...3, using: &generator)
                coverage.update(members: members, at: .seconds(second))
            }
            coverage.update(members: members, at: .seconds(second))
            // None in the end, so that each loss is reported.
            if second < 4800, Int.random(in: 0..<100, using: &generator) == 0 {
                for peer in members where noticedAt[peer] == nil && Int.random(in: 0..<4, using: &generator) > 0 {
                    noticedAt[peer] = second + Int.random(in: 1...60, using: &generator)
                }
            }
            let working = members.filter { noticedAt[$0] == nil }
            for peer in working { coverage.heard(peer, at: .seconds(second)) }
            if working.isEmpty {
                missing.insert(second)
                missedCount += 1
            }
            if let start = coverage.takeLoss() {
                lossCount += 1
                missing = missing.filter { Instant.seconds($0) < start }
            }
        }
        #expect(missing.isEmpty && missedCount > 100 && lossCount > 5)
    }
}
