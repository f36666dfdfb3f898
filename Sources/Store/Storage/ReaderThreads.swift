import DequeModule
import Dispatch
import Synchronization

/// Runs what reads the database on threads of its own, a few at once: a disk that hangs holds these up, and nothing else.
package final class ReaderThreads: Sendable {
    private struct State {
        var waiting: Deque<@Sendable () -> Void> = []
        /// When each of the current reads began; nil: the place is free.
        var started: [ContinuousClock.Instant?]
    }

    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "waku-push.store-reads", attributes: .concurrent)

    /// - Parameter count: reads at once. Engines have five connections for them; one is left for who reads on a thread of their own.
    package init(count: Int = 4) {
        state = Mutex(State(started: Array(repeating: nil, count: count)))
    }

    /// Runs `body` as soon as a thread is free, in the order of the calls.
    package func run(_ body: @escaping @Sendable () -> Void) {
        let place = state.withLock { state -> Int? in
            guard let free = state.started.firstIndex(of: nil) else {
                state.waiting.append(body)
                return nil
            }
            state.started[free] = .now
            return free
        }
        guard let place else { return }
        queue.async {
            var next: (@Sendable () -> Void)? = body
            while let body = next {
                body()
                next = self.state.withLock { state in
                    let next = state.waiting.popFirst()
                    state.started[place] = next == nil ? nil : .now
                    return next
                }
            }
        }
    }

    /// Since when the read has been going on that began first; nil when there is none.
    package var oldestStart: ContinuousClock.Instant? {
        state.withLock { $0.started.compactMap(\.self).min() }
    }
}
