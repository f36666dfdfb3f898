import CCurl
import Foundation
import Core

/// Runs all transfers of a client on one thread.
///
///     started ──▶ queued ──(connection slot free)──▶ active ──(completed)──▶ response or error
///                    │                                 │
///                    └────────────────┬────────────────┤
///                                     ├─────(cancelled, shut down)──▶ cancelled
///                                     └─────(deadline passed)───────▶ timeout
///
/// Easy handles are pooled, and the multi handle keeps connections. Requests are queued here rather than by libcurl
/// (`CURLMOPT_MAX_HOST_CONNECTIONS`), since libcurl 7.88 sometimes leaves transfers in its queue although connections are free.
final class CurlLoop {
    private let mailbox: CurlMailbox
    private let configuration: CurlConfiguration
    private var active: [UInt64: CurlTransfer] = [:]
    /// Those with active transfers.
    private var origins: [Substring: Origin] = [:]
    /// Queued transfers of each origin.
    private var queues: [Substring: ArraySlice<Waiting>] = [:]
    private var idle: [CurlHandle] = []
    private let connections = ConnectionPace()
    /// Not later than any deadline. It may be earlier: then a check finds nothing overdue and corrects it.
    private var earliestDeadline: Instant?

    private struct Waiting {
        let task: CurlTask
        let deadline: Instant
    }

    private struct Origin {
        var activeCount = 0
        var lastResponse = Instant(sinceEpoch: .zero)
        /// See ``CurlLoop/doubtConnections(of:)``.
        var lastDoubt = Instant(sinceEpoch: .zero)
        /// Active transfers begun before the last doubt.
        var doubtedCount = 0
    }

    /// As many as transfers of one host end at once. Making a handle costs as much as a request.
    private var maximumIdleCount: Int { max(64, configuration.maximumConnectionsPerHost) }
    private static let longestPause: Duration = .seconds(60)

    init(mailbox: CurlMailbox, configuration: CurlConfiguration) {
        self.mailbox = mailbox
        self.configuration = configuration
    }

    /// Returns when the mailbox is closed.
    func run() {
        blockSignals()
        while true {
            let (commands, isClosed) = mailbox.take()
            for command in commands { perform(command) }
            if isClosed { break }
            var running: Int32 = 0
            curl_multi_perform(mailbox.multi, &running)
            finishCompleted()
            finishOverdue()
            curl_multi_poll(mailbox.multi, nil, 0, pauseMilliseconds(), nil)
        }
        let waiting = queues.values.joined()
        queues = [:]
        for waiting in waiting { waiting.task.continuation.resume(returning: .failure(.shutDown)) }
        for id in Array(active.keys) { finish(id, .failure(.shutDown)) }
        idle = []
        curl_multi_cleanup(mailbox.multi)
    }

    private func perform(_ command: CurlMailbox.Command) {
        switch command {
        case .start(let task): start(task)
        case .cancel(let id):
            if !finish(id, .failure(.cancelled)) { failQueued(.cancelled) { $0.task.id == id } }
        }
    }

    private func start(_ task: CurlTask) {
        let deadline = Instant.now + task.request.timeout
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
        let origin = task.request.origin
        queues[origin, default: []].append(Waiting(task: task, deadline: deadline))
        advance(origin)
    }

    /// Starts queued transfers while connection slots are free.
    private func advance(_ origin: Substring) {
        while origins[origin]?.activeCount ?? 0 < configuration.maximumConnectionsPerHost, let next = queues[origin]?.popFirst() {
            if begin(next) { origins[origin, default: Origin()].activeCount += 1 }
        }
        if queues[origin]?.isEmpty == true { queues[origin] = nil }
    }

    private func begin(_ waiting: Waiting) -> Bool {
        let task = waiting.task
        let transfer = CurlTransfer(
            task: task, handle: idle.popLast() ?? CurlHandle(), deadline: waiting.deadline, connections: connections)
        do throws(HTTPError) {
            try transfer.prepare(configuration)
        } catch {
            task.continuation.resume(returning: .failure(error))
            return false
        }
        if origins[task.request.origin]?.doubtedCount ?? 0 > 0 { transfer.handle.set(CURLOPT_FRESH_CONNECT, 1) }
        guard curl_multi_add_handle(mailbox.multi, transfer.handle.pointer) == CURLM_OK else {
            task.continuation.resume(returning: .failure(HTTPError(.other, "libcurl accepts no more transfers")))
            return false
        }
        active[task.id] = transfer
        return true
    }

    /// Resumes the caller of an active transfer with its result. Does nothing the second time. After a failure whose body may not be sent again, libcurl's
    /// handle can fail the next request with CURLE_SEND_FAIL_REWIND, also after a reset: it is not used again.
    ///
    /// - Returns: Whether the transfer was active.
    @discardableResult
    private func finish(_ id: UInt64, _ result: Result<HTTPResponse, HTTPError>) -> Bool {
        guard let transfer = active.removeValue(forKey: id) else { return false }
        // Closes the connection of a transfer that is in progress, as soon as no other uses it. Without this option, libcurl keeps those of HTTP/2.
        transfer.handle.set(CURLOPT_FORBID_REUSE, 1)
        curl_multi_remove_handle(mailbox.multi, transfer.handle.pointer)
        transfer.handle.reset()
        if idle.count < maximumIdleCount, transfer.task.request.isRepeatable || (try? result.get()) != nil { idle.append(transfer.handle) }
        transfer.task.continuation.resume(returning: result)
        let origin = transfer.task.request.origin
        if var state = origins[origin] {
            state.activeCount -= 1
            if transfer.begun < state.lastDoubt { state.doubtedCount -= 1 }
            origins[origin] = state.activeCount > 0 ? state : nil
        }
        advance(origin)
        return true
    }

    /// Lets new transfers open connections of their own, after one that is overdue, until all transfers that are active now have ended. libcurl would go on
    /// using a dead HTTP/2 connection, after a silent break of the path or with a server that hangs, for as long as transfers on it overlap. Not after
    /// another response since the transfer began: then only this request may have been slow.
    private func doubtConnections(of transfer: CurlTransfer) {
        let origin = transfer.task.request.origin
        guard let state = origins[origin], max(state.lastResponse, state.lastDoubt) < transfer.begun else { return }
        origins[origin]?.lastDoubt = .now
        origins[origin]?.doubtedCount = state.activeCount
    }

    private func failQueued(_ error: HTTPError, where isMatch: (Waiting) -> Bool) {
        for (origin, queue) in queues where queue.contains(where: isMatch) {
            for waiting in queue where isMatch(waiting) { waiting.task.continuation.resume(returning: .failure(error)) }
            let rest = queue.filter { !isMatch($0) }
            queues[origin] = rest.isEmpty ? nil : rest[...]
        }
    }

    private func finishCompleted() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(mailbox.multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else { continue }
            // libcurl owns the message and frees it with the handle.
            let result = waku_curl_message_result(message)
            guard let transfer = CurlTransfer.from(handle) else { continue }
            if result == CURLE_OK { origins[transfer.task.request.origin]?.lastResponse = .now }
            finish(transfer.task.id, transfer.result(result))
        }
    }

    /// Ends overdue transfers. libcurl has timeouts too, but does not know about the queues.
    private func finishOverdue() {
        let now = Instant.now
        guard let earliest = earliestDeadline, earliest <= now else { return }
        // Queued ones first, so that none of them takes a free slot.
        failQueued(HTTPError(CURLE_OPERATION_TIMEDOUT, detail: "")) { $0.deadline <= now }
        for (id, transfer) in active where transfer.deadline <= now {
            doubtConnections(of: transfer)
            finish(id, transfer.overdue)
        }
        earliestDeadline = (active.values.lazy.map(\.deadline) + queues.values.lazy.joined().map(\.deadline)).min()
    }

    private func pauseMilliseconds() -> Int32 {
        guard let earliestDeadline else { return Self.longestPause.wholeMilliseconds }
        return max(.zero, min(earliestDeadline - Instant.now, Self.longestPause)).wholeMilliseconds
    }

    /// Blocks all signals on this thread: others handle them, and SIGPIPE of a broken connection is to be ignored.
    private func blockSignals() {
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
    }
}

extension Duration {
    /// Rounded up, so that a wait does not end early; clamped to the range that libcurl accepts.
    var wholeMilliseconds: Int32 {
        let (seconds, attoseconds) = components
        let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        if overflow || milliseconds >= Int64(Int32.max) { return seconds < 0 ? 0 : .max }
        return Int32(max(0, milliseconds + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}
