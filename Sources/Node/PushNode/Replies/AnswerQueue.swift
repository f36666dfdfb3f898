import Core
import Synchronization

/// An ``AnswerBuffer`` shared by threads: `next` waits for an answer, `put` never waits.
final class AnswerQueue: Sendable {
    /// How late a held answer may be released.
    private static let resolution = Duration.milliseconds(10)

    private typealias Served = (CheckedContinuation<Publisher.Item?, Never>, Publisher.Item?)

    private struct State: Sendable {
        var buffer: AnswerBuffer
        var takers: [CheckedContinuation<Publisher.Item?, Never>] = []
        var isFinished = false

        /// The queue is empty, and nothing will be added.
        var isOver: Bool { isFinished && buffer.isEmpty }

        /// Pairs answers with waiting takers. When the queue is over, all takers get nil.
        mutating func served() -> [Served] {
            var served: [Served] = []
            while !takers.isEmpty, let item = buffer.take() { served.append((takers.removeLast(), item)) }
            guard isOver else { return served }
            defer { takers = [] }
            return served + takers.map { ($0, nil) }
        }
    }

    private let state: Mutex<State>
    /// Signals that an answer is held, after none was.
    private let wakeUp = WakeUpSignal()

    init(_ buffer: AnswerBuffer) {
        state = Mutex(State(buffer: buffer))
    }

    var count: Int { state.withLock { $0.buffer.count } }

    /// Adds an answer.
    ///
    /// - Parameter due: when it may be published at the earliest; nil for at once.
    /// - Returns: the number of answers that were dropped, for lack of space or because the queue has ended.
    func put(_ item: Publisher.Item, due: Duration? = nil, at now: Duration) -> Int {
        let (lost, mustRelease) = change { state in
            guard !state.isFinished else { return (1, false) }
            let hadHeld = state.buffer.hasHeld
            let lost = state.buffer.add(item, due: due, at: now)
            return (lost, !hadHeld && state.buffer.hasHeld)
        }
        if mustRelease { wakeUp.signal() }
        return lost
    }

    /// Changes the state, and gives takers the answers that are ready then.
    private func change<Outcome: Sendable>(_ body: (inout State) -> Outcome) -> Outcome {
        let (outcome, served) = state.withLock { state in (body(&state), state.served()) }
        for (taker, item) in served { taker.resume(returning: item) }
        return outcome
    }

    /// Releases held answers when they are due. Runs until cancelled.
    ///
    /// - Parameter uptime: the current time, from the same clock as that of ``put(_:due:at:)``.
    func releaseHeld(uptime: @Sendable () -> Duration) async {
        for await _ in wakeUp {
            while let pause = release(at: uptime()) {
                guard (try? await Task.sleep(for: pause)) != nil else { return }
            }
        }
    }

    /// Releases answers that are due. Returns the time until the next release; nil if nothing is held.
    private func release(at now: Duration) -> Duration? {
        change { state in
            state.buffer.release(at: now)
            return state.buffer.hasHeld ? Self.resolution : nil
        }
    }

    /// The next answer; nil at the end.
    func next() async -> Publisher.Item? {
        // Usually an answer is ready, and no continuation is needed.
        let (item, isOver) = state.withLock { state in (state.buffer.take(), state.isOver) }
        if item != nil || isOver { return item }
        return await withCheckedContinuation { continuation in change { $0.takers.append(continuation) } }
    }

    /// Ends the queue: takers get the remaining answers when they are due, then nil.
    ///
    /// - Parameter abandoning: whether to discard the remaining answers instead.
    func finish(abandoning: Bool = false) {
        change { state in
            state.isFinished = true
            if abandoning { state.buffer.removeAll() }
        }
    }
}
