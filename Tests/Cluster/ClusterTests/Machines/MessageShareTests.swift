@testable import Cluster
import Core
import Testing

/// Each arrow of the diagram above `MessageShare`.
@Suite struct MessageShareTests {
    private let key = MessageKey(prefix: 7)
    private let other = MessageKey(prefix: 8)

    private func share() -> MessageShare { MessageShare(.number(1), configuration: ClusterConfiguration()) }

    /// Waits until the message is checked, and answers the reads: no finished rows, and these claims.
    private func check(
        _ share: inout MessageShare, at time: Milliseconds, claims: [MessageKey: Claim] = [:]
    ) -> [MessageShare.Action] {
        guard share.advance(to: .at(time)) == [.readFinishedRows] else { return [] }
        guard case .lookUpClaims? = share.finishedRowsRead().first else { return [] }
        return share.claimsRead(claims, at: .at(time))
    }

    @Test func rankZeroHandlesAtOnce() {
        var share = share()
        #expect(share.heard(key, rank: 0, at: .at(0)) == .handle)
        #expect(share.heard(key, rank: 0, at: .at(1)) == .duplicate)
    }

    @Test(arguments: [1, 2, 3]) func laterRanksHandleAfter700MillisecondsEach(rank: Int) {
        var share = share()
        #expect(share.heard(key, rank: rank, at: .at(0)) == .wait)
        #expect(share.nextWakeUp == .at(700 * rank))
        #expect(share.advance(to: .at(700 * rank - 1)) == [])
        #expect(check(&share, at: 700 * rank) == [.handle(key)])
    }

    @Test func messageThatAnotherNodeFinishedIsForgottenWithoutLookingForClaims() {
        var share = share()
        _ = share.heard(key, rank: 1, at: .at(0))
        #expect(share.advance(to: .at(700)) == [.readFinishedRows])
        share.finishedElsewhere([key.prefix])
        #expect(share.finishedRowsRead() == [])
        #expect(share.openCount == 0)
        #expect(share.heard(key, rank: 0, at: .at(800)) == .duplicate)
    }

    @Test func messageThatAnEarlierReadShowedAsFinishedNeedsNoReadOfItsOwn() {
        var share = share()
        _ = share.heard(key, rank: 1, at: .at(0))
        _ = share.heard(other, rank: 1, at: .at(100))
        #expect(share.advance(to: .at(700)) == [.readFinishedRows])
        share.finishedElsewhere([key.prefix, other.prefix])
        #expect(share.finishedRowsRead() == [])
        #expect(share.openCount == 1 && share.leftCount == 1)
        #expect(share.advance(to: .at(800)) == [])
        #expect(share.openCount == 0 && share.leftCount == 2)
    }

    @Test func messagesThatAreDueTogetherAreReadTogether() {
        var share = share()
        _ = share.heard(key, rank: 1, at: .at(1))
        _ = share.heard(other, rank: 1, at: .at(40))
        #expect(share.advance(to: .at(750)) == [.readFinishedRows])
        #expect(share.finishedRowsRead() == [.lookUpClaims([key, other])])
    }

    @Test func onlyOneReadIsUnderWayAtATime() {
        var share = share()
        _ = share.heard(key, rank: 1, at: .at(0))
        _ = share.heard(other, rank: 1, at: .at(200))
        #expect(share.advance(to: .at(700)) == [.readFinishedRows])
        #expect(share.advance(to: .at(900)) == [])
        _ = share.finishedRowsRead()
        #expect(share.claimsRead([:], at: .at(950)) == [.handle(key), .readFinishedRows])
    }

    @Test func messageThatWasAbandonedDuringAReadNeedsNoReadAfterIt() {
        var share = share()
        _ = share.heard(key, rank: 1, at: .at(0))
        _ = share.heard(other, rank: 1, at: .at(200))
        #expect(share.advance(to: .at(700)) == [.readFinishedRows])
        #expect(share.advance(to: .at(900)) == [])
        share.abandon(other)
        _ = share.finishedRowsRead()
        #expect(share.claimsRead([:], at: .at(950)) == [.handle(key)])
        #expect(share.leftCount == 0)
    }

    @Test(arguments: [(Claim.Kind.registration, 1400), (.request, 2700)])
    func claimedMessageWithoutAnswerIsAnsweredByTheNextRank(kind: Claim.Kind, due: Milliseconds) {
        var share = share()
        let claims = [key: Claim(node: .number(2), kind: kind)]
        _ = share.heard(key, rank: 1, at: .at(0))
        #expect(check(&share, at: 700, claims: claims) == [])
        #expect(share.nextWakeUp == .at(due))
        #expect(check(&share, at: due, claims: claims) == [.takeOverAnswer(key)])
        share.answered(key)
        #expect(share.openCount == 0)
        #expect(share.log.row(at: .at(due))?.prefixes == [key.prefix])
    }

    /// Otherwise each registration would be answered by every node.
    @Test func anotherNodeWaitsForAHeldAnswerToARegistration() {
        var configuration = ClusterConfiguration()
        configuration.replyDelay = .seconds(2)
        var share = MessageShare(.number(1), configuration: configuration)
        let claims = [key: Claim(node: .number(2), kind: .registration)]
        _ = share.heard(key, rank: 1, at: .at(0))
        #expect(check(&share, at: 700, claims: claims) == [])
        #expect(share.nextWakeUp == .at(3400))
        #expect(check(&share, at: 3400, claims: claims) == [.takeOverAnswer(key)])
    }

    @Test func claimedMessageWhoseAnswerWasPublishedIsForgotten() {
        var share = share()
        _ = share.heard(key, rank: 1, at: .at(0))
        #expect(check(&share, at: 700, claims: [key: Claim(node: .number(2), kind: .registration)]) == [])
        _ = share.advance(to: .at(1400))
        share.finishedElsewhere([key.prefix])
        #expect(share.finishedRowsRead() == [] && share.openCount == 0)
    }

    @Test func answerThatCouldNotBeTakenOverIsTriedAgain() {
        var share = share()
        let claims = [key: Claim(node: .number(2), kind: .registration)]
        _ = share.heard(key, rank: 1, at: .at(0))
        _ = check(&share, at: 700, claims: claims)
        #expect(check(&share, at: 1400, claims: claims) == [.takeOverAnswer(key)])
        share.handled(key, .failed, at: .at(1450))
        #expect(check(&share, at: 1700, claims: claims) == [.takeOverAnswer(key)])
        // The claim was on a server that was replaced: no node has it.
        share.handled(key, .failed, at: .at(1750))
        #expect(check(&share, at: 2000) == [.handle(key)])
    }

    @Test func rankZeroThatLostTheClaimWatchesLikeRankOne() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.handled(key, .claimedElsewhere(.registration), at: .at(20))
        #expect(share.nextWakeUp == .at(1400))
    }

    @Test func messageWithoutEffectIsInTheNextRow() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.handled(key, .withoutEffect, at: .at(1))
        #expect(share.log.row(at: .at(1))?.prefixes == [key.prefix])
    }

    @Test func committedMessageIsInTheNextRowOnlyWhenItIsAnswered() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.handled(key, .committed, at: .at(1))
        #expect(share.log.row(at: .at(1)) == nil)
        share.answered(key)
        #expect(share.log.row(at: .at(2))?.prefixes == [key.prefix])
    }

    @Test func unknownOutcomeIsResolvedByTheSameTransaction() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.handled(key, .unknown, at: .at(100))
        #expect(share.advance(to: .at(349)) == [])
        #expect(share.advance(to: .at(350)) == [.repeatTransaction(key)])
        share.handled(key, .unknown, at: .at(9000))
        #expect(share.advance(to: .at(9250)) == [.repeatTransaction(key)])
    }

    @Test func messageThatCantBeStoredIsCheckedAgainAndAtLastAnsweredWithAnError() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.handled(key, .failed, at: .at(10))
        #expect(check(&share, at: 300) == [.handle(key)])
        share.handled(key, .failed, at: .at(2300))
        #expect(share.advance(to: .at(2550)) == [.answerFailure(key)])
        #expect(share.openCount == 0)
        // It is not reported as finished: other nodes may be able to store it.
        #expect(share.log.nextWakeUp == nil)
    }

    @Test func messageWhoseOutcomeIsOpenAtTheDeadlineIsAnsweredWithAnErrorOnce() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.expectAnswer(key, at: .at(5))
        #expect(share.nextWakeUp == .at(2500))
        #expect(share.advance(to: .at(2499)) == [])
        #expect(share.advance(to: .at(2500)) == [.answerFailure(key)])
        #expect(share.isOpen(key) && share.advance(to: .at(20_000)) == [])
        // It took place after all: nobody needs to answer it again.
        share.handled(key, .committed, at: .at(20_000))
        #expect(!share.isOpen(key))
        #expect(share.log.row(at: .at(20_000))?.prefixes == [key.prefix])
    }

    @Test(arguments: [MessageShare.Outcome.failed, .claimedElsewhere(.request)])
    func messageWithoutEffectAfterItsErrorAnswerIsForgotten(outcome: MessageShare.Outcome) {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.expectAnswer(key, at: .at(5))
        _ = share.advance(to: .at(2500))
        share.handled(key, outcome, at: .at(9000))
        #expect(!share.isOpen(key) && share.advance(to: .at(30_000)) == [] && share.log.nextWakeUp == nil)
    }

    @Test func unawaitedMessageHasNoDeadline() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        #expect(share.nextWakeUp == nil)
        #expect(share.advance(to: .at(30_000)) == [] && share.isOpen(key))
        share.handled(key, .committed, at: .at(30_000))
        #expect(share.isOpen(key))
    }

    @Test func answeredMessageHasNoDeadline() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.expectAnswer(key, at: .at(5))
        share.handled(key, .committed, at: .at(20))
        #expect(share.advance(to: .at(2500)) == [] && share.isOpen(key))
        share.answered(key)
        #expect(!share.isOpen(key))
    }

    /// The read of finished messages hangs.
    @Test func messageThatCantBeStoredIsAnsweredWithAnErrorWhileAReadHangs() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.handled(key, .failed, at: .at(10))
        #expect(share.advance(to: .at(300)) == [.readFinishedRows])
        #expect(share.advance(to: .at(2500)) == [.answerFailure(key)])
        #expect(share.readFailed(at: .at(9000)) == [] && share.advance(to: .at(20_000)) == [])
    }

    @Test func nodeThatNeverTriedDoesNotAnswerWithAnError() {
        var share = share()
        _ = share.heard(key, rank: 1, at: .at(0))
        for time in stride(from: 700, through: 10_000, by: 50) {
            for action in share.advance(to: .at(time)) {
                #expect(action == .readFinishedRows)
                _ = share.readFailed(at: .at(time))
            }
        }
        #expect(share.openCount == 1)
    }

    @Test func expiredAnswersAreLeftOut() {
        var share = share()
        _ = share.heard(key, rank: 1, at: .at(0))
        #expect(check(&share, at: 40_000, claims: [key: Claim(node: .number(2), kind: .request)]) == [])
        #expect(share.openCount == 0)
    }

    @Test func abandonedMessageIsLeftToOthers() {
        var share = share()
        _ = share.heard(key, rank: 0, at: .at(0))
        share.abandon(key)
        #expect(share.openCount == 0 && share.log.nextWakeUp == nil)
    }

    @Test func openMessagesAreBounded() {
        var configuration = ClusterConfiguration()
        configuration.openMessageLimit = 2
        var share = MessageShare(.number(1), configuration: configuration)
        #expect(share.heard(MessageKey(prefix: 1), rank: 1, at: .at(0)) == .wait)
        #expect(share.heard(MessageKey(prefix: 2), rank: 1, at: .at(0)) == .wait)
        #expect(share.heard(MessageKey(prefix: 3), rank: 1, at: .at(0)) == .leftToOthers)
        #expect(share.heard(MessageKey(prefix: 4), rank: 0, at: .at(0)) == .handle)
    }
}
