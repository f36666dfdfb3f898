import CCurl
import Synchronization

/// A request and the continuation of its caller.
struct CurlTask: Sendable {
    let id: UInt64
    let request: HTTPRequest
    let continuation: CheckedContinuation<Result<HTTPResponse, HTTPError>, Never>
}

/// Passes commands to the loop's thread and wakes it.
///
///     open ──close──▶ closed: the loop ends, further tasks are refused
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
    /// Used only by the loop's thread, except for `curl_multi_wakeup`, which libcurl allows on any thread. That is called only with the lock
    /// held and the mailbox open; the loop frees the handle after it saw the mailbox closed under the same lock.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer

    init() {
        guard let multi = curl_multi_init() else { preconditionFailure("libcurl has no memory for a multi handle") }
        self.multi = multi
    }

    func post(_ command: Command) {
        let refused = state.withLock { state in
            guard !state.isClosed else { return true }
            state.commands.append(command)
            // The first command woke the loop, which takes all commands at once.
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

    /// Takes all commands, for the loop. No command follows after `isClosed` was returned.
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
