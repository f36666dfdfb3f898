import NodeAPI
import StatusProtocol
import Testing
import Waku
import WakuCrypto

@testable import PushNode

/// Findings of the stores of several relays.
struct ConfirmationEvidenceTests {
    private typealias Message = Confirmations.Message
    private static let recipient = PrivateKey.generate().publicKey

    private func hash(_ number: UInt8) -> MessageHash { MessageHash(bytes: [number]) }

    private func message(_ number: UInt8, by places: Set<Int>, isAcknowledged: Bool = false) -> Message {
        Message(hash: hash(number), places: places, isAcknowledged: isAcknowledged)
    }

    /// - Parameter found: The numbers of messages, by the places of stores.
    private func findings(_ found: [Int: [UInt8]], unavailable: Set<Int> = [], relayCount: Int = 2) -> StoreFindings {
        StoreFindings(found: found.mapValues { Set($0.map(hash)) }, unavailable: unavailable, relayCount: relayCount)
    }

    private func lookUp(
        _ publications: [[Message]], _ findings: StoreFindings, after age: Duration = .seconds(1)
    ) throws -> Confirmations.Outcome {
        var confirmations = Confirmations()
        _ = confirmations.add(sent(publications), at: .zero)
        return confirmations.finish(try batch(confirmations.next(at: .seconds(1))), .found(findings), at: age)
    }

    private func sent(_ publications: [[Message]]) -> Confirmations.Sent {
        let answer = Reply.test([1], to: Self.recipient)
        return Confirmations.Sent(answer: answer, publications: publications, publishedAt: .zero)
    }

    private func batch(_ action: Confirmations.Action) throws -> Confirmations.Batch {
        guard case .lookUp(let batch) = action else { throw NoLookUp() }
        return batch
    }

    private struct NoLookUp: Error {}

    @Test func theStoreOfAnotherRelayConfirms() throws {
        let outcome = try lookUp([[message(1, by: [0])]], findings([0: [], 1: [1]]))
        #expect(outcome.confirmedCount == 1 && outcome.verdicts == [RelayVerdict(place: 0, isConfirmed: true)])
    }

    @Test(arguments: [false, true]) func anotherStoreOverridesThePublishersClaim(isAcknowledged: Bool) throws {
        let outcome = try lookUp([[message(1, by: [0], isAcknowledged: isAcknowledged)]], findings([0: [1], 1: []]))
        #expect(outcome.confirmedCount == 0 && outcome.toRepublish.map(\.places) == [[0]])
        #expect(outcome.verdicts == [RelayVerdict(place: 0, isConfirmed: false, isClaimed: true, deniedBy: [1])])
    }

    @Test func thePublishersClaimCountsWithoutAnotherStore() throws {
        #expect(try lookUp([[message(1, by: [0])]], findings([0: [1]])).confirmedCount == 1)
        #expect(try lookUp([[message(1, by: [1], isAcknowledged: true)]], findings([1: []])).confirmedCount == 1)
        #expect(try lookUp([[message(1, by: [0])]], findings([0: []])).toRepublish.count == 1)
    }

    @Test func aStoreThatDoesNotAnswerIsQueriedAgainUntilTheTimeout() throws {
        let findings = findings([0: [1]], unavailable: [1])
        let early = try lookUp([[message(1, by: [0])]], findings)
        #expect(early.confirmedCount == 0 && early.toRepublish.isEmpty && early.givenUpCount == 0 && early.verdicts.isEmpty)
        let late = try lookUp([[message(1, by: [0])]], findings, after: .seconds(10))
        #expect(late.confirmedCount == 1 && late.verdicts.isEmpty)
        let unclaimed = try lookUp([[message(1, by: [0])]], self.findings([0: []], unavailable: [1]), after: .seconds(10))
        #expect(unclaimed.givenUpCount == 1)
    }

    @Test func anUndecidedAnswerIsLookedUpAgain() throws {
        var confirmations = Confirmations()
        _ = confirmations.add(sent([[message(1, by: [0])]]), at: .zero)
        let first = try batch(confirmations.next(at: .seconds(1)))
        _ = confirmations.finish(first, .found(findings([0: [1]], unavailable: [1])), at: .seconds(1))
        #expect(confirmations.count == 1)
        guard case .wait(until: .seconds(2)) = confirmations.next(at: .seconds(1)) else {
            Issue.record("not waited for")
            return
        }
        let second = try batch(confirmations.next(at: .seconds(2)))
        #expect(confirmations.finish(second, .found(findings([0: [1], 1: [1]])), at: .seconds(2)).confirmedCount == 1)
        #expect(confirmations.count == 0)
    }

    /// Two relays claim to have published it, and neither's store has the other's: it is unknown which claim is false.
    @Test func anAnswerThatTwoRelaysClaimIsNotRepeated() throws {
        let publications = [[message(1, by: [0])], [message(2, by: [1])]]
        let outcome = try lookUp(publications, findings([0: [1], 1: [2]]))
        #expect(outcome.confirmedCount == 1 && outcome.toRepublish.isEmpty)
        // The first was judged when it was looked up before.
        #expect(outcome.verdicts == [RelayVerdict(place: 1, isConfirmed: false, isClaimed: true, deniedBy: [0])])
    }

    @Test func anAnswerPublishedByAllRelaysIsNotRepeatedIfOneHasIt() throws {
        let publications = [[message(1, by: [0])], [message(2, by: [1])]]
        #expect(try lookUp(publications, findings([0: [], 1: [2]])).confirmedCount == 1)
        #expect(try lookUp(publications, findings([0: [], 1: [2]], relayCount: 3)).toRepublish.map(\.places) == [[0, 1]])
        #expect(try lookUp(publications, findings([0: [], 1: []])).toRepublish.count == 1)
    }

    @Test func anEarlierPublicationThatIsFoundLateCounts() throws {
        let outcome = try lookUp([[message(1, by: [0])], [message(2, by: [1])]], findings([0: [1], 1: [1]]))
        #expect(outcome.confirmedCount == 1)
        #expect(outcome.verdicts.contains(RelayVerdict(place: 0, isConfirmed: true)))
    }

    @Test func aPublicationBySeveralRelaysGivesNoVerdictOnOne() throws {
        let outcome = try lookUp([[message(1, by: [0, 1])]], findings([0: [], 1: [1]]))
        #expect(outcome.confirmedCount == 1 && outcome.verdicts.isEmpty)
        #expect(try lookUp([[message(1, by: [0, 1])]], findings([0: [], 1: []])).toRepublish.count == 1)
    }

    /// A store that keeps nothing is not a witness.
    @Test func aStoreThatHasNoneOfManyAnswersIsIgnored() throws {
        var confirmations = Confirmations(configuration: .init(distrustLimit: 5))
        var repeatedCount = 0
        for number in 1...10 as ClosedRange<UInt8> {
            _ = confirmations.add(sent([[message(number, by: [0])]]), at: .zero)
            let outcome = confirmations.finish(
                try batch(confirmations.next(at: .seconds(1))), .found(findings([0: [number], 1: []])), at: .seconds(1))
            repeatedCount += outcome.toRepublish.count
            #expect(outcome.confirmedCount == (number > 5 ? 1 : 0))
        }
        #expect(repeatedCount == 5)
    }

    @Test func withoutAnyStoreThePublishersClaimCounts() throws {
        for finding in [Confirmations.Finding.impossible, .failed] {
            for isAcknowledged in [false, true] {
                var confirmations = Confirmations()
                _ = confirmations.add(sent([[message(1, by: [0], isAcknowledged: isAcknowledged)]]), at: .zero)
                let outcome = confirmations.finish(try batch(confirmations.next(at: .seconds(1))), finding, at: .seconds(10))
                #expect(outcome.confirmedCount == (isAcknowledged ? 1 : 0) && outcome.givenUpCount == (isAcknowledged ? 0 : 1))
            }
        }
    }
}
