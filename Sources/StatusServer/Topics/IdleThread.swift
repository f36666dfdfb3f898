import Foundation

/// A thread that gets a core only when no other thread wants one: SCHED_IDLE. A quality of service of Dispatch lowers nothing on Linux.
///
/// It holds no lock that others wait for, since it may be kept from running at any moment, for long.
enum IdleThread {
    /// SCHED_IDLE of Linux, which the module of the C library leaves out.
    static let policy: Int32 = 5

    /// The results, in the order of `inputs`, as they come. The thread ends after the current one when the task that reads them is cancelled.
    ///
    /// - Parameter isIdle: false for a thread like any other.
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
        // Where that is not allowed: the lowest priority among the others. Of this thread alone, on Linux.
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
    }
}
