import CCurl
import Foundation

/// Runs all transfers of a client on one thread.
///
///     started ──▶ active ──(libcurl is done)──▶ response or error
///                   ├─────(cancelled, shut down)──▶ cancelled
///                   └─────(its time passed)───────▶ timeout
///
/// Easy handles go back into a pool, and connections stay in the multi handle.
final class CurlLoop {
    private let mailbox: CurlMailbox
    private let configuration: CurlConfiguration
    private var active: [UInt64: CurlTransfer] = [:]
    private var idle: [CurlHandle] = []
    /// Never later than any active transfer's deadline. Earlier does no harm: then a look finds nothing, and sets it right.
    private var earliestDeadline: ContinuousClock.Instant?

    private static let maximumIdleCount = 64
    private static let longestPause: Duration = .seconds(60)

    init(mailbox: CurlMailbox, configuration: CurlConfiguration) {
        self.mailbox = mailbox
        self.configuration = configuration
    }

    /// Returns when the mailbox is closed.
    func run() {
        blockSignals()
        waku_curl_multi_set_long(mailbox.multi, CURLMOPT_MAX_HOST_CONNECTIONS, configuration.maximumConnectionsPerHost)
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
        for id in Array(active.keys) { finish(id, .failure(.shutDown)) }
        idle = []
        curl_multi_cleanup(mailbox.multi)
    }

    private func perform(_ command: CurlMailbox.Command) {
        switch command {
        case .start(let task): start(task)
        case .cancel(let id): finish(id, .failure(.cancelled))
        }
    }

    private func start(_ task: CurlTask) {
        let transfer = CurlTransfer(task: task, handle: idle.popLast() ?? CurlHandle())
        do throws(HTTPError) {
            try transfer.prepare(configuration)
        } catch {
            task.continuation.resume(returning: .failure(error))
            return
        }
        guard curl_multi_add_handle(mailbox.multi, transfer.handle.pointer) == CURLM_OK else {
            task.continuation.resume(returning: .failure(HTTPError(.other, "libcurl takes no more transfers")))
            return
        }
        active[task.id] = transfer
        earliestDeadline = min(earliestDeadline ?? transfer.deadline, transfer.deadline)
    }

    /// No more than once for an id: a second time finds nothing.
    private func finish(_ id: UInt64, _ result: Result<HTTPResponse, HTTPError>) {
        guard let transfer = active.removeValue(forKey: id) else { return }
        // Of a transfer that is not over, this closes the connection.
        curl_multi_remove_handle(mailbox.multi, transfer.handle.pointer)
        transfer.handle.reset()
        if idle.count < Self.maximumIdleCount { idle.append(transfer.handle) }
        transfer.task.continuation.resume(returning: result)
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

    /// libcurl watches over time as well, but not while a transfer waits in line for a connection.
    private func finishOverdue() {
        let now = ContinuousClock.now
        guard let earliest = earliestDeadline, earliest <= now else { return }
        for (id, transfer) in active where transfer.deadline <= now {
            finish(id, .failure(HTTPError(CURLE_OPERATION_TIMEDOUT, detail: "")))
        }
        earliestDeadline = active.values.lazy.map(\.deadline).min()
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
