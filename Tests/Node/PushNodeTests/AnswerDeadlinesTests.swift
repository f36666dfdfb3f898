import Storage
import Synchronization
import Testing

@testable import PushNode

@Suite struct AnswerDeadlinesTests {
    private let start = ContinuousClock.now
    private let error = StoreError(code: .unavailable, message: "away")

    @Test func anAnswerIsGivenOnce() {
        let failures = Mutex(0)
        let answer = PendingAnswer { _ in failures.withLock { $0 += 1 } }
        #expect(answer.isOpen && answer.take() && !answer.isOpen && !answer.take() && !answer.fail(error))
        let other = PendingAnswer { _ in failures.withLock { $0 += 1 } }
        #expect(other.fail(error) && !other.fail(error) && !other.take())
        #expect(failures.withLock { $0 } == 1)
    }

    @Test func openAnswersAreDueAtTheirDeadlines() {
        let answers = (0..<3).map { _ in PendingAnswer { _ in } }
        var deadlines = AnswerDeadlines()
        let isFirst = deadlines.add([(answers[0], start + .seconds(3))])
        // Batches are committed concurrently: a later one may have waited longer.
        let isFirstAgain = deadlines.add([(answers[1], start + .seconds(2)), (answers[2], start + .seconds(1))])
        #expect(isFirst && !isFirstAgain)
        _ = answers[2].take()
        let due = deadlines.due(at: start + .seconds(2))
        #expect(due.map(ObjectIdentifier.init) == [ObjectIdentifier(answers[1])])
        #expect(!deadlines.isEmpty)
        _ = answers[0].take()
        let dueLater = deadlines.due(at: start + .seconds(2))
        #expect(dueLater.isEmpty && deadlines.isEmpty)
        let isFirstLater = deadlines.add([(PendingAnswer { _ in }, start + .seconds(9))])
        #expect(isFirstLater)
    }
}
