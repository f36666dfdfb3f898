import Core
import NIOPosix
import Synchronization

/// Threads that carry out requests in the order of ``RequestTurns``.
final class FairWorkers: Sendable {
    /// The reason why a request is called.
    enum Turn: Sendable {
        case begin
        /// Too many requests of its network wait, or it has waited for too long.
        case refused
        /// The threads have stopped.
        case stopped
    }

    typealias Request = @Sendable (Turn) -> Void

    /// nil: requests are carried out by tasks.
    private let threads: NIOThreadPool?
    private let timeout: Duration
    private let turns = Mutex(RequestTurns<Request>())

    /// - Parameters:
    ///   - threadCount: the number of threads; with 0, requests are carried out by tasks.
    ///   - timeout: a request that has waited for this long is not begun.
    init(threadCount: Int, timeout: Duration) {
        threads = threadCount > 0 ? NIOThreadPool(numberOfThreads: threadCount) : nil
        self.timeout = timeout
    }

    func start() { threads?.start() }
    func stop() { threads?.shutdownGracefully { _ in } }

    /// - Parameter request: called once, on any thread.
    func submit(for client: RequestSender, byteCount: Int, _ request: @escaping Request) {
        let isAdmitted = turns.withLock { $0.append(request, from: client, byteCount: byteCount, deadline: .now + timeout) }
        guard isAdmitted else { return request(.refused) }
        // One call for each waiting request; a thread takes the next in turn, not this one.
        if let threads {
            threads.submit { [self] state in
                if case .active = state { runNext() } else { turns.withLock { $0.popFirst(at: .now) }?.request(.stopped) }
            }
        } else {
            Task { runNext() }
        }
    }

    private func runNext() {
        guard let next = turns.withLock({ $0.popFirst(at: .now) }) else { return }
        next.request(next.isLate ? .refused : .begin)
    }
}
