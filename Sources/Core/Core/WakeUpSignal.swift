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
/// is cancelled: later iterations end at once. A consumer that is started again after a cancellation needs a new signal.
package struct WakeUpSignal: AsyncSequence, Sendable {
    package typealias Element = Void
    package typealias Failure = Never

    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    package init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Wakes the waiting task, or keeps it from waiting the next time. Does nothing after ``finish()``.
    package func signal() {
        continuation.yield()
    }

    /// Ends the iteration, after a signal that is still pending.
    package func finish() {
        continuation.finish()
    }

    /// - Precondition: Only one task iterates at a time.
    package func makeAsyncIterator() -> AsyncStream<Void>.Iterator {
        stream.makeAsyncIterator()
    }
}
