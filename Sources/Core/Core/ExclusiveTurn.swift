import Synchronization

/// Lets one task at a time do something; others wait until it has ended.
package final class ExclusiveTurn: Sendable {
    private struct State {
        var isTaken = false
        /// The tasks that wait, including those that were cancelled meanwhile.
        var waiting: [WakeUpSignal] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Calls `body` once no other task has the turn; not if the task is cancelled before.
    ///
    /// - Parameter whenTaken: Called before waiting for another task.
    package func run(_ body: () async -> Void, whenTaken: () -> Void = {}) async {
        while !Task.isCancelled {
            let ended = WakeUpSignal()
            if take(orSignal: ended) {
                await body()
                return pass()
            }
            whenTaken()
            for await _ in ended { break }
        }
    }

    private func take(orSignal ended: WakeUpSignal) -> Bool {
        state.withLock { state in
            defer { state.isTaken = true }
            if state.isTaken { state.waiting.append(ended) }
            return !state.isTaken
        }
    }

    private func pass() {
        let waiting = state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
        for ended in waiting { ended.signal() }
    }
}
