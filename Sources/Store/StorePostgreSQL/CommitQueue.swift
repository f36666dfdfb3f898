import Dispatch
import Core
import Storage
import Synchronization

/// Commands that were submitted together.
protocol CommitBatch: Sendable {
    var count: Int { get }
    /// Keeps its outcome for ``complete()``.
    func command(_ index: Int) -> StoreCommand<Void>
    /// Nothing of this command was kept.
    func fail(_ index: Int, _ error: any Error)
    /// Every command is durable, or has failed. Called on the writer's thread, which others wait for.
    func complete()
}

/// One writer, on a thread of its own. Everything that waits becomes one transaction; what comes meanwhile gathers for the next, and a little
/// longer where commits are paced.
final class CommitQueue: Sendable {
    private struct State {
        var waiting: [any CommitBatch] = []
        var isRunning = false
        var pacing = Pacing()
        /// What waits for commits alone needs no transaction.
        var hasCommands: Bool { waiting.contains { $0.count > 0 } }
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "waku-push.store")
    /// Used on `queue` alone.
    nonisolated(unsafe) private let writer: Writer
    private let closing: DispatchSemaphore

    /// - Parameter makeWriter: gets what is signalled when the queue is closed.
    init(_ makeWriter: (DispatchSemaphore) -> Writer) {
        closing = DispatchSemaphore(value: 0)
        writer = makeWriter(closing)
    }

    func add(_ batch: any CommitBatch) {
        let mustStart = state.withLock { state in
            state.waiting.append(batch)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { queue.async { self.drain() } }
    }

    /// See ``Primitives/Pacing/interval``.
    func pace(_ interval: Duration) {
        state.withLock { $0.pacing = Pacing(interval: interval) }
    }

    /// Whether all that was added is done.
    var isIdle: Bool { state.withLock { !$0.isRunning } }

    /// Between two groups.
    func run<T: Sendable>(_ work: @escaping @Sendable (Writer) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in continuation.resume(with: Result { try work(writer) }) }
        }
    }

    /// Between two groups. Blocks.
    func runAndWait<T>(_ work: (Writer) throws -> T) rethrows -> T {
        try queue.sync { try work(writer) }
    }

    /// From now on nothing is waited for: a commit whose outcome no server can tell fails.
    func stopWaiting() {
        closing.signal()
    }

    /// Returns when everything that was added before is done.
    func finish() {
        stopWaiting()
        queue.sync {
            while let group = nextGroup() { commit(group) }
            writer.close()
        }
    }

    /// One group at a time, so that others get their turn on the queue.
    private func drain() {
        let delay = state.withLock { $0.hasCommands ? $0.pacing.delay(at: .now) : .zero }
        guard delay == .zero else {
            return queue.asyncAfter(deadline: .now() + .microseconds(Int(delay / .microseconds(1)) + 1)) { self.drain() }
        }
        guard let group = nextGroup() else { return }
        commit(group)
        queue.async { self.drain() }
    }

    private func commit(_ group: [any CommitBatch]) {
        let commands = group.flatMap { batch in (0..<batch.count).map { PendingCommand(batch, $0) } }
        if !commands.isEmpty { writer.commit(commands) }
        for batch in group { batch.complete() }
    }

    private func nextGroup() -> [any CommitBatch]? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.isRunning = false
                return nil
            }
            defer { state.waiting = [] }
            if state.hasCommands { state.pacing.begin(at: .now) }
            return state.waiting
        }
    }
}
