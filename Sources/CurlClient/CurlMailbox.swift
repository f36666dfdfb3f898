import CCurl
import Synchronization

/// A request with the one who waits for its result.
struct CurlTask: Sendable {
    let id: UInt64
    let request: HTTPRequest
    let continuation: CheckedContinuation<Result<HTTPResponse, HTTPError>, Never>
}

/// Hands commands to the loop's thread, and wakes it.
///
///     open ──close──▶ closed: the loop ends when it sees it; tasks are refused
final class CurlMailbox: Sendable {
    enum Command: Sendable {
        case start(CurlTask)
        case cancel(UInt64)
    }

    private struct State {
        var commands: [Command] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Used by the loop's thread, except for `curl_multi_wakeup`, which libcurl allows on any. That is called with the lock held and
    /// the mailbox open only; the loop frees the handle after it saw the mailbox closed, under the same lock.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer

    init() {
        guard let multi = curl_multi_init() else { preconditionFailure("libcurl has no memory for a multi handle") }
        self.multi = multi
    }

    func post(_ command: Command) {
        let refused = state.withLock { state in
            guard !state.isClosed else { return true }
            state.commands.append(command)
            // Whoever put the first one woke the loop, and it takes all there is.
            if state.commands.count == 1 { curl_multi_wakeup(multi) }
            return false
        }
        if refused, case .start(let task) = command { task.continuation.resume(returning: .failure(.shutDown)) }
    }

    func close() {
        state.withLock { state in
            guard !state.isClosed else { return }
            curl_multi_wakeup(multi)
            state.isClosed = true
        }
    }

    /// For the loop. Nothing comes any more once it says closed.
    func take() -> (commands: [Command], isClosed: Bool) {
        state.withLock { state in
            defer { state.commands = [] }
            return (state.commands, state.isClosed)
        }
    }
}

extension HTTPError {
    static let cancelled = HTTPError(.cancelled, "cancelled")
    static let shutDown = HTTPError(.cancelled, "the client is shut down")
}
