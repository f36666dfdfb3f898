import DequeModule
import Dispatch
import Synchronization

/// Runs database reads on their own threads, a few at once, so that a disk that hangs blocks only these threads.
package final class ReaderThreads: Sendable {
    private struct State {
        var waiting: Deque<@Sendable () -> Void> = []
        /// The start time of each thread's current read; nil for an idle thread.
        var started: [ContinuousClock.Instant?]
    }

    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "waku-push.store-reads", attributes: .concurrent)

    /// - Parameter count: the maximum number of simultaneous reads. Engines have five read connections; one is left for callers that read on their
    ///   own thread.
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

    /// The start time of the longest-running read; nil when no read is running.
    package var oldestStart: ContinuousClock.Instant? {
        state.withLock { $0.started.compactMap(\.self).min() }
    }
}
