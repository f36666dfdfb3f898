import Synchronization

/// Answers on their way to those who seal and publish them. Bounded; takers wait for answers, givers for nothing.
final class AnswerQueue: Sendable {
    private struct State {
        var items: [Publisher.Item] = []
        /// Those before are gone.
        var head = 0
        var byteCount = 0
        var takers: [CheckedContinuation<Publisher.Item?, Never>] = []
        var isFinished = false

        mutating func take() -> Publisher.Item? {
            guard head < items.count else { return nil }
            let item = items[head]
            byteCount -= item.answer.payload.count
            head += 1
            if head == items.count || head > 1000 {
                items.removeSubrange(..<head)
                head = 0
            }
            return item
        }
    }

    private let state = Mutex(State())
    private let capacity: Int
    private let byteCapacity: Int

    init(capacity: Int, byteCapacity: Int) {
        self.capacity = capacity
        self.byteCapacity = byteCapacity
    }

    var count: Int { state.withLock { $0.items.count - $0.head } }

    /// False when there is no room for it, or nobody to take it any more.
    func put(_ item: Publisher.Item) -> Bool {
        let bytes = item.answer.payload.count
        let (isTaken, taker) = state.withLock { state -> (Bool, CheckedContinuation<Publisher.Item?, Never>?) in
            guard !state.isFinished else { return (false, nil) }
            if let taker = state.takers.popLast() { return (true, taker) }
            guard state.items.count - state.head < capacity, state.byteCount + bytes <= byteCapacity else { return (false, nil) }
            state.items.append(item)
            state.byteCount += bytes
            return (true, nil)
        }
        taker?.resume(returning: item)
        return isTaken
    }

    /// nil at the end.
    func next() async -> Publisher.Item? {
        // Most of the time there is one: then nothing waits.
        if let item = state.withLock({ $0.isFinished || $0.head < $0.items.count ? .some($0.take()) : nil }) { return item }
        return await withCheckedContinuation { (continuation: CheckedContinuation<Publisher.Item?, Never>) in
            let item = state.withLock { state -> Publisher.Item?? in
                guard state.isFinished || state.head < state.items.count else {
                    state.takers.append(continuation)
                    return nil
                }
                return .some(state.take())
            }
            if let item { continuation.resume(returning: item) }
        }
    }

    /// No more will come: takers get what is left, then nil.
    /// - Parameter abandoning: they get nothing any more.
    func finish(abandoning: Bool = false) {
        let takers = state.withLock { state in
            state.isFinished = true
            if abandoning { (state.items, state.head) = ([], 0) }
            defer { state.takers = [] }
            return state.takers
        }
        for taker in takers { taker.resume(returning: nil) }
    }
}
