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

    private let threads: NIOThreadPool
    private let timeout: Duration
    private let turns = Mutex(RequestTurns<Request>())

    /// - Parameter timeout: a request that has waited for this long is not begun.
    init(threadCount: Int, timeout: Duration) {
        threads = NIOThreadPool(numberOfThreads: threadCount)
        self.timeout = timeout
    }

    func start() { threads.start() }
    func stop() { threads.shutdownGracefully { _ in } }

    /// - Parameter request: called once, on any thread.
    func submit(for client: HTTPClient, byteCount: Int, _ request: @escaping Request) {
        let isAdmitted = turns.withLock { $0.append(request, from: client, byteCount: byteCount, deadline: .now + timeout) }
        guard isAdmitted else { return request(.refused) }
        // One call for each waiting request; a thread takes the next in turn, not this one.
        threads.submit { [self] state in
            guard let next = turns.withLock({ $0.popFirst(at: .now) }) else { return }
            guard case .active = state else { return next.request(.stopped) }
            next.request(next.isLate ? .refused : .begin)
        }
    }
}
