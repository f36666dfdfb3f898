import NIOCore

/// How far a client is with its requests on one connection, and until when it must go on. Time comes in as a value.
///
///     head ──(head)──▶ body ──(end)──▶ head of the next request
///     (response begins) ──▶ taking it ──(response taken)──▶ idle, once no request is outstanding
///
/// What the listener itself takes to answer has no limit here.
struct ConnectionProgress {
    private enum Reading {
        case firstHead
        case nextHead
        case body(since: NIODeadline)
    }

    let limits: HTTPLimits
    private var reading = Reading.firstHead
    /// Requests whose response was not taken whole.
    private var outstandingCount = 0
    private var responseBegan: NIODeadline?
    /// Since when no request is outstanding.
    private var idleSince: NIODeadline

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

    /// An error may be answered before a request was read.
    mutating func beganResponse(at now: NIODeadline) {
        responseBegan = now
    }

    /// All of a response is with the operating system.
    mutating func finishedResponse(at now: NIODeadline) {
        responseBegan = nil
        outstandingCount = max(outstandingCount - 1, 0)
        if outstandingCount == 0 { idleSince = now }
    }

    /// Whether the next step is the listener's: it has a whole request, and no answer yet.
    var isBusy: Bool {
        if case .body = reading { return false }
        return outstandingCount > 0 && responseBegan == nil
    }

    /// When the connection is closed unless something happens; nil while the client has nothing to do.
    var deadline: NIODeadline? {
        [readingDeadline, responseBegan.map { $0 + limits.responseTimeout }].compactMap(\.self).min()
    }

    private var readingDeadline: NIODeadline? {
        switch reading {
        case .body(let since): since + limits.bodyTimeout
        case .firstHead: idleSince + limits.headerTimeout
        case .nextHead: outstandingCount == 0 ? idleSince + limits.idleTimeout : nil
        }
    }
}
