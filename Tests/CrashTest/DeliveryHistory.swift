import Core

/// What was promised of a notification, and what came of it.
struct DeliveryHistory {
    typealias Instant = ContinuousClock.Instant

    enum Promise: Int, Comparable {
        case none
        /// It waits in the outbox.
        case kept
        /// gorush has it.
        case delivered

        static func < (left: Promise, right: Promise) -> Bool { left.rawValue < right.rawValue }
    }

    private struct Post {
        /// Which daemon posted it.
        let daemon: Int
        let at: Instant
        /// nil until gorush's reply left.
        var replied: Instant?
    }

    enum Repetition {
        /// Its daemon was killed, or one of several nodes was suspended, before it could note that gorush took it. The time from gorush's reply to
        /// the kill, nil if there was no reply, or no kill; and the time from the post before to this one.
        case allowed(Duration?, delay: Duration)
        case wrong(String)
    }

    /// With what is tried again after it.
    private static let longestSuspension = Duration.seconds(20)

    var promise = Promise.none
    private var posts: [Post] = []
    /// The first daemon whose database said that gorush took it.
    private(set) var acceptedBy: Int?

    var isPosted: Bool { !posts.isEmpty }

    /// gorush was posted the notification, and will take it.
    ///
    /// - Parameters:
    ///   - daemon: the one that posted it.
    ///   - now: when.
    ///   - ends: how daemons ended, by their numbers.
    /// - Returns: nil when it is the first post.
    mutating func post(by daemon: Int, at now: Instant, _ ends: (Int) -> DaemonEnd?) -> Repetition? {
        defer { posts.append(Post(daemon: daemon, at: now)) }
        guard let last = posts.last else { return nil }
        // It may have been suspended between its last look and the socket, or have lost gorush's reply and its share meanwhile.
        if case .suspended(let time) = ends(daemon), time >= last.at - Self.longestSuspension { return .allowed(nil, delay: now - last.at) }
        guard daemon != last.daemon else { return .wrong("posted twice by daemon \(daemon)") }
        if let acceptedBy {
            return .wrong("posted again by daemon \(daemon), though daemon \(acceptedBy) had noted that gorush took it")
        }
        switch ends(last.daemon) {
        case .killed(let killed): return .allowed(last.replied.flatMap { $0 <= killed ? killed - $0 : nil }, delay: now - last.at)
        case .suspended(let time) where time >= last.at - Self.longestSuspension: return .allowed(nil, delay: now - last.at)
        case .suspended, .stopped, nil: return .wrong("posted again by daemon \(daemon), though daemon \(last.daemon) was not killed")
        }
    }

    /// gorush's reply leaves.
    mutating func reply(to daemon: Int, at now: Instant) {
        guard let index = posts.lastIndex(where: { $0.daemon == daemon }) else { return }
        posts[index].replied = now
    }

    /// Compares it with a database, and learns from it: what a process has committed survives it.
    ///
    /// - Parameters:
    ///   - isAccepted: the database says that gorush took it.
    ///   - isWaiting: it is in the outbox.
    ///   - before: the history before the database was looked at.
    ///   - daemon: the one that has, or had, the database, and how it ended.
    ///   - mayBeDropped: its device may have ended since.
    /// - Returns: What is wrong.
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
    /// By itself, after SIGTERM.
    case stopped
    /// Not ended: it was suspended for some time, or cut off from its database.
    case suspended(ContinuousClock.Instant)
}
