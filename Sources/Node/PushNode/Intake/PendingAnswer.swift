import DequeModule
import Storage
import Synchronization

/// The answer to a message whose effect is being stored. It is given once: by the outcome, or with an error.
final class PendingAnswer: Sendable {
    private let failure: Mutex<(@Sendable (StoreError) -> Void)?>

    /// - Parameter failure: answers with an error.
    init(failure: @escaping @Sendable (StoreError) -> Void) {
        self.failure = Mutex(failure)
    }

    var isOpen: Bool { failure.withLock { $0 != nil } }

    /// - Returns: whether the caller is to answer; false when it was answered with an error.
    func take() -> Bool {
        failure.withLock { failure in
            defer { failure = nil }
            return failure != nil
        }
    }

    /// - Returns: false when it was answered already.
    func fail(_ error: StoreError) -> Bool {
        let answer = failure.withLock { failure in
            defer { failure = nil }
            return failure
        }
        answer?(error)
        return answer != nil
    }
}

/// Answers that must be given by a deadline. Messages come in, and so deadlines are added, in their order.
struct AnswerDeadlines {
    /// Deadlines within so long of each other are met together.
    static let interval = Duration.milliseconds(50)

    private var waiting: Deque<(answer: PendingAnswer, deadline: ContinuousClock.Instant)> = []

    /// - Returns: whether nothing waited before: ``next`` is to be looked at from now on.
    mutating func add(_ answers: [(answer: PendingAnswer, deadline: ContinuousClock.Instant)]) -> Bool {
        defer { waiting += answers }
        return waiting.isEmpty
    }

    /// nil when no answer is open. Removes answers that were given.
    var next: ContinuousClock.Instant? {
        mutating get {
            while let first = waiting.first, !first.answer.isOpen { waiting.removeFirst() }
            return waiting.first?.deadline
        }
    }

    mutating func due(at now: ContinuousClock.Instant) -> [PendingAnswer] {
        var due: [PendingAnswer] = []
        while let first = waiting.first, first.deadline <= now { due.append(waiting.removeFirst().answer) }
        return due
    }
}
