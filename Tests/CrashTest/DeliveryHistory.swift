/// A notification's promised state, and its posts.
struct DeliveryHistory {
    typealias Instant = ContinuousClock.Instant

    enum Promise: Int, Comparable {
        case none
        /// In the outbox.
        case kept
        /// Accepted by gorush.
        case delivered

        static func < (left: Promise, right: Promise) -> Bool { left.rawValue < right.rawValue }
    }

    private struct Post {
        /// The number of the daemon that posted it.
        let daemon: Int
        let at: Instant
        /// When gorush's reply was sent; nil before.
        var replied: Instant?
    }

    enum Repetition {
        /// Its daemon was killed, or one of several nodes was suspended, before it could record that gorush accepted it, or it had no time to read a late
        /// reply. The time from gorush's reply to the kill, nil if there was no reply, or no kill; and the time from the post before to this one.
        case allowed(Duration?, delay: Duration)
        case wrong(String)
    }

    /// Replies that are sent later than intended: the machine is so busy that the daemon may not read them before its `--gorush-timeout`.
    private static let lateReply = Duration.seconds(1)
    /// The `--gorush-timeout` of several nodes; that of a single one is longer.
    static let gorushTimeout = Duration.seconds(5)
    /// The longest suspension, including retries after it.
    private static let longestSuspension = Duration.seconds(20)

    var promise = Promise.none
    private var posts: [Post] = []
    /// The first daemon with gorush's acceptance in its database.
    private(set) var acceptedBy: Int?

    var isPosted: Bool { !posts.isEmpty }

    /// Records a post to gorush, which will accept the notification.
    ///
    /// - Parameters:
    ///   - daemon: the one that posted it.
    ///   - now: when.
    ///   - ends: how daemons ended, by their numbers.
    /// - Returns: nil when it is the first post.
    mutating func post(by daemon: Int, at now: Instant, _ ends: (Int) -> DaemonEnd?) -> Repetition? {
        defer { posts.append(Post(daemon: daemon, at: now)) }
        guard let last = posts.last else { return nil }
        // It may have been suspended between its last check and the write to the socket, or have lost gorush's reply and its partition meanwhile.
        if case .suspended(let time) = ends(daemon), time >= last.at - Self.longestSuspension { return .allowed(nil, delay: now - last.at) }
        guard daemon != last.daemon else {
            if now - last.at >= Self.gorushTimeout, last.replied.map({ $0 - last.at >= Self.lateReply }) ?? true {
                return .allowed(nil, delay: now - last.at)
            }
            let reply = last.replied.map { "gorush's reply after \($0 - last.at)" } ?? "no reply"
            return .wrong("posted twice by daemon \(daemon), with \(reply), and again after \(now - last.at)")
        }
        if let acceptedBy {
            return .wrong("posted again by daemon \(daemon), though daemon \(acceptedBy) had noted that gorush took it")
        }
        switch ends(last.daemon) {
        case .killed(let killed): return .allowed(last.replied.flatMap { $0 <= killed ? killed - $0 : nil }, delay: now - last.at)
        case .suspended(let time) where time >= last.at - Self.longestSuspension: return .allowed(nil, delay: now - last.at)
        case .suspended, .stopped, nil: return .wrong("posted again by daemon \(daemon), though daemon \(last.daemon) was not killed")
        }
    }

    /// Records that gorush's reply is sent.
    mutating func reply(to daemon: Int, at now: Instant) {
        guard let index = posts.lastIndex(where: { $0.daemon == daemon }) else { return }
        posts[index].replied = now
    }

    /// Compares the history with a database, and learns from it: committed data survives the process.
    ///
    /// - Parameters:
    ///   - isAccepted: the database contains gorush's acceptance.
    ///   - isWaiting: it is in the outbox.
    ///   - before: the history before the database was read.
    ///   - daemon: the daemon of the database, and how it ended.
    ///   - mayBeDropped: its device may have been unregistered since.
    /// - Returns: The violations.
    mutating func compare(
        isAccepted: Bool, isWaiting: Bool, before: DeliveryHistory, daemon: (number: Int, end: DaemonEnd?), mayBeDropped: Bool
    ) -> [String] {
        var complaints: [String] = []
        if isAccepted, isWaiting { complaints.append("it waits in the outbox, and was taken by gorush as well") }
        if isAccepted, !isPosted { complaints.append("noted as taken by gorush, which never got it") }
        if !isAccepted, before.promise == .delivered { complaints.append("reported as delivered, and that is not noted") }
        if !isAccepted, let first = before.acceptedBy { complaints.append("noted as taken by daemon \(first), and not any more") }
        if !isAccepted, !isWaiting, before.promise == .kept, !mayBeDropped {
            complaints.append("it was in the outbox, or so it was said, and is gone")
        }
        if isAccepted, acceptedBy == nil { acceptedBy = daemon.number }
        if isWaiting { promise = max(promise, .kept) }
        if case .stopped = daemon.end, !isAccepted, posts.contains(where: { $0.daemon == daemon.number && $0.replied != nil }) {
            complaints.append("posted by a daemon that stopped in order, which did not note it")
        }
        return complaints
    }
}

/// How a daemon ended.
enum DaemonEnd {
    case killed(ContinuousClock.Instant)
    /// Gracefully, after SIGTERM.
    case stopped
    /// Not ended: it was suspended for some time, or cut off from its database.
    case suspended(ContinuousClock.Instant)
}
