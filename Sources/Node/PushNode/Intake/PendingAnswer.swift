import Storage
import Synchronization

/// The answer to a message whose effect is being stored. It is sent only once: with the outcome, or with an error.
final class PendingAnswer: Sendable {
    private let failure: Mutex<(@Sendable (StoreError) -> Void)?>

    /// - Parameter failure: answers with an error.
    init(failure: @escaping @Sendable (StoreError) -> Void) {
        self.failure = Mutex(failure)
    }

    var isOpen: Bool { failure.withLock { $0 != nil } }

    /// - Returns: whether the caller must answer; false if an error was sent already.
    func take() -> Bool { failure.withLock { $0.take() } != nil }

    /// - Returns: false if the message was answered already.
    func fail(_ error: StoreError) -> Bool {
        let answer = failure.withLock { $0.take() }
        answer?(error)
        return answer != nil
    }
}

/// Answers with deadlines, in any order. While ``isEmpty`` is false, ``due(at:)`` must be called every ``interval``.
struct AnswerDeadlines {
    static let interval = Duration.milliseconds(50)

    private var waiting: [(answer: PendingAnswer, deadline: ContinuousClock.Instant)] = []

    var isEmpty: Bool { waiting.isEmpty }

    /// - Returns: whether no answer was waiting before, so that the caller must start to call ``due(at:)``.
    mutating func add(_ answers: [(answer: PendingAnswer, deadline: ContinuousClock.Instant)]) -> Bool {
        defer { waiting += answers }
        return waiting.isEmpty
    }

    /// Removes the answers whose deadline has passed, and those that were given.
    mutating func due(at now: ContinuousClock.Instant) -> [PendingAnswer] {
        let open = waiting.filter(\.answer.isOpen)
        waiting = open.filter { $0.deadline > now }
        return open.filter { $0.deadline <= now }.map(\.answer)
    }
}
