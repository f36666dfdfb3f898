import NIOCore

/// The progress of a client's requests on one connection, and the deadline of its next step. Time comes in as a value.
///
///     reading head ──(head)──▶ reading body ──(end)──▶ reading the next head
///     (response started) ──▶ sending ──(response sent)──▶ idle, once no request is outstanding
///
/// The time that the server takes to respond has no deadline here, except in a stop.
struct ConnectionProgress {
    private enum Reading {
        case firstHead
        case nextHead
        case body(since: NIODeadline)
    }

    let limits: HTTPLimits
    private var reading = Reading.firstHead
    /// Requests whose response was not sent completely.
    private var outstandingCount = 0
    /// Responses that have begun and were not sent completely. Those to pipelined requests overlap: one begins while the end of the one before waits for
    /// the client.
    private var begunCount = 0
    /// When the first of them began, or the one before it was sent.
    private var responseBegan: NIODeadline?
    /// When the last outstanding request ended.
    private var idleSince: NIODeadline
    /// When the listener began to stop.
    private var stopBegan: NIODeadline?

    init(limits: HTTPLimits, openedAt now: NIODeadline) {
        self.limits = limits
        idleSince = now
    }

    mutating func readHead(at now: NIODeadline) {
        outstandingCount += 1
        reading = .body(since: now)
    }

    mutating func readEnd() {
        reading = .nextHead
    }

    /// May be called before a request was read completely: errors are answered early.
    mutating func beganResponse(at now: NIODeadline) {
        begunCount += 1
        responseBegan = responseBegan ?? now
    }

    /// The whole response was handed to the operating system.
    mutating func finishedResponse(at now: NIODeadline) {
        begunCount = max(begunCount - 1, 0)
        responseBegan = begunCount > 0 ? now : nil
        outstandingCount = max(outstandingCount - 1, 0)
        if outstandingCount == 0 { idleSince = now }
    }

    /// The listener waits for all its connections.
    mutating func beganStop(at now: NIODeadline) {
        stopBegan = stopBegan ?? now
    }

    /// Whether the server is processing a complete request, and no further one was sent: a client that does not wait for its responses is as busy as it
    /// wants.
    var isBusy: Bool {
        if case .body = reading { return false }
        return outstandingCount == 1 && responseBegan == nil
    }

    /// When to close the connection unless the client makes progress; nil while the server is the one to act. During a stop, when to close it at the
    /// latest.
    var deadline: NIODeadline? {
        let sending = responseBegan.map { $0 + limits.responseTimeout }
        let stopping = stopBegan.map { $0 + limits.stopTimeout }
        return [readingDeadline, sending, stopping].compactMap(\.self).min()
    }

    private var readingDeadline: NIODeadline? {
        switch reading {
        case .body(let since): since + limits.bodyTimeout
        case .firstHead: idleSince + limits.headerTimeout
        case .nextHead: outstandingCount == 0 ? idleSince + limits.idleTimeout : nil
        }
    }
}
