import Core
import Foundation
import NIOPosix
import Synchronization

/// Threads that carry out requests in the order of ``RequestTurns``: a signature takes 60 to 130 µs, and an array may have hundreds.
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

    static let processorCount = max(ProcessInfo.processInfo.activeProcessorCount, 1)

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

    /// Runs `body` on one of the threads when it is the client's turn, and returns the value that it passes to its argument, immediately or later.
    /// So the steps that follow need no further thread switch.
    ///
    /// - Parameter body: must call its argument once, on any thread.
    /// - Returns: nil if too many requests of the client's network wait, or if the request has waited for too long: `body` was not called.
    /// - Throws: `CancellationError` if the threads have stopped.
    func run<Value: Sendable>(
        for client: RequestSender, byteCount: Int, _ body: @escaping @Sendable (@escaping @Sendable (Value) -> Void) -> Void
    ) async throws -> Value? {
        try await withCheckedThrowingContinuation { continuation in
            submit(for: client, byteCount: byteCount) { turn in
                switch turn {
                case .begin: body { continuation.resume(returning: $0) }
                case .refused: continuation.resume(returning: nil)
                case .stopped: continuation.resume(throwing: CancellationError())
                }
            }
        }
    }

    private func runNext() {
        guard let next = turns.withLock({ $0.popFirst(at: .now) }) else { return }
        next.request(next.isLate ? .refused : .begin)
    }
}
