import Dispatch
import Synchronization

/// Prints lines whole, one after the other. A reader that takes nothing blocks only the printer's own thread, so that signals still end the command.
final class LinePrinter: Sendable {
    private struct State {
        /// The lines that are not printed yet, by their numbers.
        var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
        var lastNumber = 0
        var isStopped = false
    }

    private let invocation = Invocation.current
    private let thread = DispatchQueue(label: "printer")
    private let state = Mutex(State())

    /// Returns once the line is printed.
    ///
    /// - Throws: `CancellationError` if the printer stopped before.
    func print(_ text: String) async throws {
        try await withCheckedThrowingContinuation { continuation in
            let number = state.withLock { state -> Int? in
                guard !state.isStopped else { return nil }
                state.lastNumber += 1
                state.waiting[state.lastNumber] = continuation
                return state.lastNumber
            }
            guard let number else { return continuation.resume(throwing: CancellationError()) }
            thread.async { [self] in
                guard state.withLock({ $0.waiting[number] != nil }) else { return }
                Invocation.$current.withValue(invocation) { Output.text(text) }
                state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
            }
        }
    }

    /// Ends the waits for a reader that takes nothing.
    func stop() {
        let waiting = state.withLock { state in
            state.isStopped = true
            defer { state.waiting = [:] }
            return state.waiting
        }
        for continuation in waiting.values { continuation.resume(throwing: CancellationError()) }
    }
}
