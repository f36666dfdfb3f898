import Synchronization

/// A cached value that is expensive to read. It is read on demand, in a separate task, at most every few seconds. A slow reading is repeated so
/// rarely that it takes at most 1 % of a core, but at least every ten minutes: a reading that was slow because the disk or the database hung says
/// nothing about the next.
package final class ThrottledReading<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var due = ContinuousClock.now
        var cost = Duration.zero
        var reading: Task<Void, Never>?
    }

    /// A caller waits for a reading only if the previous one took at most this long; otherwise it gets the previous value.
    private static var shortCost: Duration { .milliseconds(100) }

    private let state = Mutex(State())
    private let pause: Duration
    private let restFactor: Int
    private let restLimit: Duration
    private let read: @Sendable () async throws -> Value

    /// - Parameters:
    ///   - pause: minimum time from the end of a reading to the next.
    ///   - restFactor: the same minimum, in multiples of the duration of the last reading, unless that failed.
    ///   - restLimit: maximum of that multiple.
    package init(
        pause: Duration = .seconds(5), restFactor: Int = 100, restLimit: Duration = .seconds(600),
        read: @escaping @Sendable () async throws -> Value
    ) {
        self.pause = pause
        self.restFactor = restFactor
        self.restLimit = restLimit
        self.read = read
    }

    /// The value of the last reading, without a new one; nil if there is none.
    package var latest: Value? { state.withLock(\.value) }

    /// The value; nil if it could not be read yet.
    ///
    /// - Parameter limit: how long a caller waits for a reading, because the disk may hang.
    package func value(within limit: Duration = .seconds(1)) async -> Value? {
        let (isReading, last) = state.withLock { state -> (Bool, Value?) in
            if state.reading == nil, ContinuousClock.now >= state.due { state.reading = Task { await self.readNow() } }
            return (state.reading != nil, state.cost > Self.shortCost ? state.value : nil)
        }
        if let last { return last }
        let deadline = ContinuousClock.now + limit
        while isReading, state.withLock({ $0.reading != nil }), ContinuousClock.now < deadline {
            guard (try? await Task.sleep(for: .milliseconds(2))) != nil else { break }
        }
        return state.withLock { $0.value }
    }

    /// Reads the value at the start, for ``latest``. The next call of ``value(within:)`` reads it again.
    package func readAhead() async {
        _ = await value(within: .seconds(60))
        state.withLock { $0.due = .now }
    }

    private func readNow() async {
        let start = ContinuousClock.now
        // After a failure the value is unknown.
        let value = try? await read()
        let cost = start.duration(to: .now)
        state.withLock { state in
            state.reading = nil
            state.cost = cost
            state.due = .now + max(pause, value == nil ? .zero : min(cost * restFactor, restLimit))
            state.value = value
        }
    }
}
