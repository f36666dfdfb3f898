import Synchronization

/// A figure that costs something to read. It is read when somebody asks, at most every few seconds, beside everything else; one that takes
/// long is read so rarely that it takes a hundredth of a core.
package final class ThrottledReading<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var due = ContinuousClock.now
        var cost = Duration.zero
        var reading: Task<Void, Never>?
    }

    /// A caller waits for a reading that took no longer the last time; otherwise it gets the last value.
    private static var shortCost: Duration { .milliseconds(100) }
    /// No caller waits longer: the disk may hang.
    private static var waitLimit: Duration { .seconds(1) }

    private let state = Mutex(State())
    private let pause: Duration
    private let restFactor: Int
    private let read: @Sendable () async throws -> Value

    /// - Parameters:
    ///   - pause: from the end of one reading to the next, at least.
    ///   - restFactor: how many times as long as a reading took there is none, at least.
    package init(pause: Duration = .seconds(5), restFactor: Int = 100, read: @escaping @Sendable () async throws -> Value) {
        self.pause = pause
        self.restFactor = restFactor
        self.read = read
    }

    /// nil when it could not be read yet.
    package func value() async -> Value? {
        let (isReading, last) = state.withLock { state -> (Bool, Value?) in
            if state.reading == nil, ContinuousClock.now >= state.due { state.reading = Task { await self.readNow() } }
            return (state.reading != nil, state.cost > Self.shortCost ? state.value : nil)
        }
        if let last { return last }
        let deadline = ContinuousClock.now + Self.waitLimit
        while isReading, state.withLock({ $0.reading != nil }), ContinuousClock.now < deadline {
            guard (try? await Task.sleep(for: .milliseconds(2))) != nil else { break }
        }
        return state.withLock { $0.value }
    }

    private func readNow() async {
        let start = ContinuousClock.now
        // What failed is not known any more.
        let value = try? await read()
        let cost = start.duration(to: .now)
        state.withLock { state in
            state.reading = nil
            state.cost = cost
            state.due = .now + max(pause, cost * restFactor)
            state.value = value
        }
    }
}
