import Core
import TestSupport
import Testing
import Waku

struct RelayRankingTests {
    private func ranking(_ count: Int = 3, demoted: [Int] = []) -> RelayRanking {
        var ranking = RelayRanking(count: count)
        for place in demoted { fail(&ranking, place, RelayRanking.unconfirmedLimit, at: .zero) }
        return ranking
    }

    private func fail(_ ranking: inout RelayRanking, _ place: Int, _ count: Int, at now: Instant) {
        for _ in 0..<count { ranking.note(RelayVerdict(place: place, isConfirmed: false), at: now) }
    }

    private let allAttached = [true, true, true]

    @Test func relaysPublishInTheOperatorsOrderAndTheAttachedFirst() {
        var ranking = ranking()
        #expect(ranking.groups(isAttached: allAttached, at: .zero) == [[0], [1], [2]])
        #expect(ranking.groups(isAttached: [false, true, true], at: .zero) == [[1], [2], [0]])
    }

    @Test func relaysThatAreToBeAvoidedComeLast() {
        var ranking = ranking()
        #expect(ranking.groups(isAttached: [true, false, true], avoiding: [0, 2], at: .zero) == [[1], [0], [2]])
    }

    @Test func tenConsecutiveUnconfirmedPublicationsDemote() {
        var ranking = ranking()
        fail(&ranking, 0, 9, at: .zero)
        ranking.note(RelayVerdict(place: 0, isConfirmed: true), at: .zero)
        fail(&ranking, 0, 9, at: .zero)
        #expect(ranking.demoted == [])
        fail(&ranking, 0, 1, at: .zero)
        #expect(ranking.demoted == [0])
        #expect(ranking.groups(isAttached: allAttached, at: .zero) == [[1], [2], [0]])
        // Even if the other relays are not attached: a relay that receives nothing may still send.
        #expect(ranking.groups(isAttached: [true, false, false], at: .zero) == [[1], [2], [0]])
    }

    @Test func demotedRelaysPublishTogether() {
        var ranking = ranking(demoted: [0, 2])
        #expect(ranking.groups(isAttached: allAttached, at: .zero) == [[1], [0, 2]])
        #expect(ranking.groups(isAttached: allAttached, avoiding: [1], at: .zero) == [[0, 2], [1]])
    }

    @Test func aConfirmationRestoresTheRank() {
        var ranking = ranking(demoted: [0])
        ranking.note(RelayVerdict(place: 0, isConfirmed: true), at: .seconds(1))
        #expect(ranking.demoted == [])
        #expect(ranking.groups(isAttached: allAttached, at: .seconds(1)) == [[0], [1], [2]])
    }

    @Test func aDemotedRelayIsTriedWithOneMessageEveryTenMinutes() {
        var ranking = ranking(demoted: [1])
        #expect(ranking.groups(isAttached: allAttached, at: .seconds(599)) == [[0], [2], [1]])
        // Not with a message that it already published, nor while it is detached.
        #expect(ranking.groups(isAttached: allAttached, avoiding: [1], at: .seconds(600)) == [[0], [2], [1]])
        #expect(ranking.groups(isAttached: [true, false, true], at: .seconds(600)) == [[0], [2], [1]])
        #expect(ranking.groups(isAttached: allAttached, at: .seconds(600)) == [[1], [0], [2]])
        #expect(ranking.groups(isAttached: allAttached, at: .seconds(601)) == [[0], [2], [1]])
        fail(&ranking, 1, 1, at: .seconds(602))
        #expect(ranking.demoted == [1])
        #expect(ranking.groups(isAttached: allAttached, at: .seconds(1200)) == [[1], [0], [2]])
    }

    @Test func theStoreOfADemotedRelayDemotesNoOther() {
        var ranking = ranking(2, demoted: [0])
        for _ in 0..<20 { ranking.note(RelayVerdict(place: 1, isConfirmed: false, isClaimed: true, deniedBy: [0]), at: .zero) }
        #expect(ranking.demoted == [0])
        // Unless the relay itself fails too.
        for _ in 0..<10 { ranking.note(RelayVerdict(place: 1, isConfirmed: false, isClaimed: false, deniedBy: [0]), at: .zero) }
        #expect(ranking.demoted == [0, 1])
    }

    @Test func onlyOneOfTwoContradictingRelaysIsDemoted() {
        var ranking = ranking(2)
        for _ in 0..<50 {
            ranking.note(RelayVerdict(place: 0, isConfirmed: false, isClaimed: true, deniedBy: [1]), at: .zero)
            ranking.note(RelayVerdict(place: 1, isConfirmed: false, isClaimed: true, deniedBy: [0]), at: .zero)
        }
        #expect(ranking.demoted == [0])
    }

    @Test func verdictsOnUnknownRelaysAreIgnored() {
        var ranking = ranking(1)
        fail(&ranking, 7, 20, at: .zero)
        fail(&ranking, -1, 20, at: .zero)
        #expect(ranking.demoted == [])
    }
}
