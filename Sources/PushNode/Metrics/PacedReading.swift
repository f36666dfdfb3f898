import Dispatch
import Synchronization

/// A figure that costs something to read. It is read when somebody asks, at most every few seconds, beside everything else; one that takes
/// long is read so rarely that it takes a hundredth of a core.
final class PacedReading<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var due = ContinuousClock.now
        var cost = Duration.zero
        var reading: Task<Value?, Never>?
    }

    /// Who asks waits for what takes no longer; else they get what was read last.
    private static var patience: Duration { .milliseconds(100) }

    private let state = Mutex(State())
    private let pause: Duration
    private let restFactor: Int
    private let read: @Sendable () throws -> Value

    /// - Parameters:
    ///   - pause: from the end of one reading to the next, at least.
    ///   - restFactor: how many times as long as a reading took there is none, at least.
    init(pause: Duration = .seconds(5), restFactor: Int = 100, read: @escaping @Sendable () throws -> Value) {
        self.pause = pause
        self.restFactor = restFactor
        self.read = read
    }

    /// nil when it could not be read yet.
    func value() async -> Value? {
        let (reading, last) = state.withLock { state -> (Task<Value?, Never>?, Value?) in
            if state.reading == nil, ContinuousClock.now >= state.due { state.reading = Task { await self.readNow() } }
            return (state.reading, state.cost > Self.patience ? state.value : nil)
        }
        if let last { return last }
        if let reading { return await reading.value }
        return state.withLock { $0.value }
    }

    private func readNow() async -> Value? {
        let start = ContinuousClock.now
        let result = await withCheckedContinuation { continuation in
            DispatchQueue.global(qos: .utility).async { [read] in continuation.resume(returning: Result { try read() }) }
        }
        let cost = start.duration(to: .now)
        return state.withLock { state in
            state.reading = nil
            state.cost = cost
            state.due = .now + max(pause, cost * restFactor)
            // What failed is not known any more.
            state.value = try? result.get()
            return state.value
        }
    }
}
