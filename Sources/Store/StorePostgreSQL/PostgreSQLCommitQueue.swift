import Dispatch
import Core
import Storage
import Synchronization

/// Commits with one writer, on its own thread. All waiting commands become one transaction; commands that arrive meanwhile wait for the next one, or
/// somewhat longer where commits are paced.
final class PostgreSQLCommitQueue: Sendable {
    private struct State {
        var waiting = WaitingBatches()
        var pacing = Pacing()
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "waku-push.store")
    /// Used only on `queue`.
    nonisolated(unsafe) private let writer: Writer
    private let closing: DispatchSemaphore

    /// - Parameter makeWriter: receives the semaphore that is signalled when the queue is closed.
    init(_ makeWriter: (DispatchSemaphore) -> Writer) {
        closing = DispatchSemaphore(value: 0)
        writer = makeWriter(closing)
    }

    func add(_ batch: any CommitBatch) {
        if state.withLock({ $0.waiting.add(batch) }) { queue.async { self.drain() } }
    }

    /// See ``Core/Pacing/interval``.
    func pace(_ interval: Duration) {
        state.withLock { $0.pacing = Pacing(interval: interval) }
    }

    /// Whether no work is waiting or running.
    var isIdle: Bool { state.withLock { !$0.waiting.isRunning } }

    /// Runs work on the writer between two groups.
    func run<T: Sendable>(_ work: @escaping @Sendable (Writer) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in continuation.resume(with: Result { try work(writer) }) }
        }
    }

    /// As ``run(_:)``, but blocks the calling thread.
    func runAndWait<T>(_ work: (Writer) throws -> T) rethrows -> T {
        try queue.sync { try work(writer) }
    }

    /// Stops waiting for servers: a commit whose outcome no server can report fails.
    func stopWaiting() {
        closing.signal()
    }

    /// Waits until everything added before is done.
    func finish() {
        stopWaiting()
        queue.sync {
            while let group = nextGroup() { commit(group) }
            writer.close()
        }
    }

    /// Runs one group per turn, so that other work on the queue can run in between.
    private func drain() {
        let delay = state.withLock { $0.waiting.hasCommands ? $0.pacing.delay(at: .now) : .zero }
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
            if state.waiting.hasCommands { state.pacing.begin(at: .now) }
            return state.waiting.takeGroup()
        }
    }
}
