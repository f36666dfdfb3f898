import Primitives
import Synchronization

/// An ``AnswerBuffer`` between threads: takers wait for answers, givers for nothing.
final class AnswerQueue: Sendable {
    private typealias Served = (CheckedContinuation<Publisher.Item?, Never>, Publisher.Item?)

    private struct State: Sendable {
        var buffer: AnswerBuffer
        var takers: [CheckedContinuation<Publisher.Item?, Never>] = []
        var isFinished = false

        /// Nothing is left, and nothing will come.
        var isOver: Bool { isFinished && buffer.isEmpty }

        /// Pairs answers with those who wait for one; at the end all are told.
        mutating func served() -> [Served] {
            var served: [Served] = []
            while !takers.isEmpty, let item = buffer.take() { served.append((takers.removeLast(), item)) }
            guard isOver else { return served }
            defer { takers = [] }
            return served + takers.map { ($0, nil) }
        }
    }

    private struct Put {
        var lost: Int
        var served: [Served] = []
        var mustRelease = false
    }

    private let state: Mutex<State>
    /// There is something to release, after there was nothing.
    private let wakeUp = WakeUpSignal()

    init(_ buffer: AnswerBuffer) {
        state = Mutex(State(buffer: buffer))
    }

    var count: Int { state.withLock { $0.buffer.count } }

    /// - Parameter due: when it may leave at the earliest; nil: at once.
    /// - Returns: How many answers are lost for it: there was no room, or nobody takes any more.
    func put(_ item: Publisher.Item, due: Duration? = nil, at now: Duration) -> Int {
        let put = state.withLock { state -> Put in
            guard !state.isFinished else { return Put(lost: 1) }
            let hadHeld = state.buffer.hasHeld
            let lost = state.buffer.add(item, due: due, at: now)
            return Put(lost: lost, served: state.served(), mustRelease: !hadHeld && state.buffer.hasHeld)
        }
        for (taker, item) in put.served { taker.resume(returning: item) }
        if put.mustRelease { wakeUp.signal() }
        return put.lost
    }

    /// Lets answers go when their time has come. Runs until cancelled.
    ///
    /// - Parameter uptime: by the clock of ``put(_:due:at:)``.
    func releaseHeld(uptime: @Sendable () -> Duration) async {
        for await _ in wakeUp {
            while let pause = release(at: uptime()) {
                guard (try? await Task.sleep(for: pause)) != nil else { return }
            }
        }
    }

    /// Returns how long to wait before the next release; nil when nothing is held.
    private func release(at now: Duration) -> Duration? {
        let (served, pause) = state.withLock { state in
            state.buffer.release(at: now)
            return (state.served(), state.buffer.hasHeld ? state.buffer.resolution : nil)
        }
        for (taker, item) in served { taker.resume(returning: item) }
        return pause
    }

    /// nil at the end.
    func next() async -> Publisher.Item? {
        // Most of the time there is one: then nothing waits.
        let (item, isOver) = state.withLock { state in (state.buffer.take(), state.isOver) }
        if item != nil || isOver { return item }
        return await withCheckedContinuation { (continuation: CheckedContinuation<Publisher.Item?, Never>) in
            let served = state.withLock { state in
                state.takers.append(continuation)
                return state.served()
            }
            for (taker, item) in served { taker.resume(returning: item) }
        }
    }

    /// No more will come: takers get what is left once it is due, then nil.
    /// - Parameter abandoning: they get nothing any more.
    func finish(abandoning: Bool = false) {
        let served = state.withLock { state in
            state.isFinished = true
            if abandoning { state.buffer.removeAll() }
            return state.served()
        }
        for (taker, item) in served { taker.resume(returning: item) }
    }
}
