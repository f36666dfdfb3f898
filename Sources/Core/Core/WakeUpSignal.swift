import Synchronization

/// Wakes the one task that waits for it. Signals coalesce: any number of them while the task is busy wakes it once more, so none is lost
/// and none piles up.
///
///     // Producers, from any thread, after they changed what the consumer looks at:
///     queue.withLock { $0.append(item) }
///     itemAdded.signal()
///
///     // The consumer:
///     for await _ in itemAdded {
///         while let item = queue.withLock({ $0.popFirst() }) { await handle(item) }
///     }
///
/// A signal that was sent before the consumer began to wait is kept. Waiting ends permanently with ``finish()``, and when the task that waits
/// is cancelled. A consumer that is started again after a cancellation is woken at once, since the cancelled one may have left something.
package final class WakeUpSignal: AsyncSequence, Sendable {
    package typealias Element = Void
    package typealias Failure = Never

    private struct State {
        /// Of the latest iteration; nil before the first.
        var iteration: AsyncStream<Void>.Continuation?
        /// Whether a signal was sent before the first iteration.
        var isPending = false
        var isFinished = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Wakes the waiting task, or keeps it from waiting the next time. Does nothing after ``finish()``.
    package func signal() {
        let iteration = state.withLock { state in
            if state.iteration == nil, !state.isFinished { state.isPending = true }
            return state.iteration
        }
        iteration?.yield()
    }

    /// Ends the iteration, after a signal that is still pending.
    package func finish() {
        let iteration = state.withLock { state in
            state.isFinished = true
            return state.iteration
        }
        iteration?.finish()
    }

    /// - Precondition: Only one task iterates at a time.
    package func makeAsyncIterator() -> AsyncStream<Void>.Iterator {
        let (stream, iteration) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let (isPending, isFinished) = state.withLock { state in
            defer { (state.iteration, state.isPending) = (iteration, false) }
            return (state.isPending || state.iteration != nil && !state.isFinished, state.isFinished)
        }
        if isPending { iteration.yield() }
        if isFinished { iteration.finish() }
        return stream.makeAsyncIterator()
    }
}
