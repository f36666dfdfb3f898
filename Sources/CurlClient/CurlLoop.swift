import CCurl
import Foundation

/// Runs all transfers of a client on one thread.
///
///     started ──▶ in line ──(a place is free)──▶ active ──(libcurl is done)──▶ response or error
///                    │                             │
///                    └──────────────┬──────────────┤
///                                   ├─────(cancelled, shut down)──▶ cancelled
///                                   └─────(its time passed)───────▶ timeout
///
/// Easy handles go back into a pool, and connections stay in the multi handle. The line is the loop's own: libcurl 7.88 now and then leaves transfers
/// in its own (`CURLMOPT_MAX_HOST_CONNECTIONS`) when all connections are free again.
final class CurlLoop {
    private let mailbox: CurlMailbox
    private let configuration: CurlConfiguration
    private var active: [UInt64: CurlTransfer] = [:]
    /// So many are active, and these wait for that, of each origin.
    private var activeCounts: [Substring: Int] = [:]
    private var lines: [Substring: ArraySlice<Waiting>] = [:]
    private var idle: [CurlHandle] = []
    /// Never later than any deadline. Earlier does no harm: then a look finds nothing, and sets it right.
    private var earliestDeadline: ContinuousClock.Instant?

    private struct Waiting {
        let task: CurlTask
        let deadline: ContinuousClock.Instant
    }

    private static let maximumIdleCount = 64
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
        let waiting = lines.values.joined()
        lines = [:]
        for waiting in waiting { waiting.task.continuation.resume(returning: .failure(.shutDown)) }
        for id in Array(active.keys) { finish(id, .failure(.shutDown)) }
        idle = []
        curl_multi_cleanup(mailbox.multi)
    }

    private func perform(_ command: CurlMailbox.Command) {
        switch command {
        case .start(let task): start(task)
        case .cancel(let id):
            if !finish(id, .failure(.cancelled)) { leaveLines(.cancelled) { $0.task.id == id } }
        }
    }

    private func start(_ task: CurlTask) {
        let deadline = ContinuousClock.now + task.request.timeout
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
        let origin = task.request.origin
        lines[origin, default: []].append(Waiting(task: task, deadline: deadline))
        advance(origin)
    }

    /// Those in line who have a place now.
    private func advance(_ origin: Substring) {
        while activeCounts[origin, default: 0] < configuration.maximumConnectionsPerHost, let next = lines[origin]?.popFirst() {
            if begin(next) { activeCounts[origin, default: 0] += 1 }
        }
        if lines[origin]?.isEmpty == true { lines[origin] = nil }
    }

    private func begin(_ waiting: Waiting) -> Bool {
        let task = waiting.task
        let transfer = CurlTransfer(task: task, handle: idle.popLast() ?? CurlHandle(), deadline: waiting.deadline)
        do throws(HTTPError) {
            try transfer.prepare(configuration)
        } catch {
            task.continuation.resume(returning: .failure(error))
            return false
        }
        guard curl_multi_add_handle(mailbox.multi, transfer.handle.pointer) == CURLM_OK else {
            task.continuation.resume(returning: .failure(HTTPError(.other, "libcurl takes no more transfers")))
            return false
        }
        active[task.id] = transfer
        return true
    }

    /// No more than once for an id: a second time finds nothing.
    ///
    /// - Returns: whether it was active.
    @discardableResult
    private func finish(_ id: UInt64, _ result: Result<HTTPResponse, HTTPError>) -> Bool {
        guard let transfer = active.removeValue(forKey: id) else { return false }
        // Of a transfer that is not over, this closes the connection.
        curl_multi_remove_handle(mailbox.multi, transfer.handle.pointer)
        transfer.handle.reset()
        if idle.count < Self.maximumIdleCount { idle.append(transfer.handle) }
        transfer.task.continuation.resume(returning: result)
        let origin = transfer.task.request.origin
        let left = activeCounts[origin, default: 1] - 1
        activeCounts[origin] = left > 0 ? left : nil
        advance(origin)
        return true
    }

    private func leaveLines(_ error: HTTPError, where isToGo: (Waiting) -> Bool) {
        for (origin, line) in lines where line.contains(where: isToGo) {
            for waiting in line where isToGo(waiting) { waiting.task.continuation.resume(returning: .failure(error)) }
            let rest = line.filter { !isToGo($0) }
            lines[origin] = rest.isEmpty ? nil : rest[...]
        }
    }

    private func finishCompleted() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(mailbox.multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else { continue }
            // The message is libcurl's, and gone with the handle.
            let result = waku_curl_message_result(message)
            guard let transfer = CurlTransfer.from(handle) else { continue }
            finish(transfer.task.id, transfer.result(result))
        }
    }

    /// libcurl watches over time as well, but knows nothing of the line.
    private func finishOverdue() {
        let now = ContinuousClock.now
        guard let earliest = earliestDeadline, earliest <= now else { return }
        let error = HTTPError(CURLE_OPERATION_TIMEDOUT, detail: "")
        // First: none of them is to take a place.
        leaveLines(error) { $0.deadline <= now }
        for (id, transfer) in active where transfer.deadline <= now { finish(id, .failure(error)) }
        earliestDeadline = (active.values.lazy.map(\.deadline) + lines.values.lazy.joined().map(\.deadline)).min()
    }

    private func pauseMilliseconds() -> Int32 {
        guard let earliestDeadline else { return Self.longestPause.wholeMilliseconds }
        return max(.zero, min(ContinuousClock.now.duration(to: earliestDeadline), Self.longestPause)).wholeMilliseconds
    }

    /// Signals go to the threads that wait for them. SIGPIPE, which a broken connection may raise, is not for anyone.
    private func blockSignals() {
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
    }
}

extension Duration {
    /// Rounded up, so that what it waits for has passed; within what libcurl takes.
    var wholeMilliseconds: Int32 {
        let (seconds, attoseconds) = components
        let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        if overflow || milliseconds >= Int64(Int32.max) { return seconds < 0 ? 0 : .max }
        return Int32(max(0, milliseconds + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}
