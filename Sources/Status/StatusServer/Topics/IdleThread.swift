import Foundation

/// A thread that runs only on idle cores (SCHED_IDLE). On Linux, Dispatch's quality of service does not affect priorities.
///
/// It must not hold locks that other threads wait for, because it may not be scheduled for a long time.
enum IdleThread {
    /// Linux's SCHED_IDLE, which the C library's module does not export.
    static let policy: Int32 = 5

    /// A stream of results in the order of `inputs`. The thread ends after the current element if the reading task is cancelled.
    ///
    /// - Parameter isIdle: false for a thread with normal scheduling.
    static func map<Input: Sendable, Output: Sendable>(
        _ inputs: [Input], isIdle: Bool = true, _ transform: @escaping @Sendable (Input) -> Output
    ) -> AsyncStream<Output> {
        AsyncStream { continuation in
            guard !inputs.isEmpty else { return continuation.finish() }
            let thread = Thread {
                if isIdle { becomeIdle() }
                for input in inputs {
                    if case .terminated = continuation.yield(transform(input)) { return }
                }
                continuation.finish()
            }
            thread.name = "idle"
            thread.start()
        }
    }

    private static func becomeIdle() {
        var parameters = sched_param()
        if sched_setscheduler(0, policy, &parameters) == 0 { return }
        // If that is not permitted: the highest nice value, which on Linux applies to this thread only.
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
    }
}
