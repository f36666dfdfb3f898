/// Statistics of a run.
struct Figures {
    enum Count: String, CaseIterable {
        case acknowledgedRegistration = "acknowledged: registrations"
        case acknowledgedUpdate = "acknowledged: updates"
        case acknowledgedUnregistration = "acknowledged: unregistrations"
        case reportedDelivered = "reported: success"
        case reportedKept = "reported: INTERNAL_ERROR, to be posted later"
        case unanswered = "questions without an answer in time"
        case asked = "questions"
        case askedAgain = "of these, an earlier one asked again"
        case clientLives = "clients of the library killed and reopened"
        case repeatedByClient = "registrations that they published again"
        case notifiedByClient = "devices that they had notified"
        case repeatedByNetwork = "messages that the network brought again"
        case posts = "notifications posted to gorush"
        case duplicatesBeforeReply = "posted again: killed before gorush's reply"
        case duplicatesBeforeCommit = "posted again: killed between gorush's reply and its commit"
        case duplicatesShownTwice = "of those posted again: shown twice by the device"
        case checkedRegistrations = "checks: registrations"
        case checkedTombstones = "checks: tombstones"
        case checkedNotifications = "checks: notifications"
        case databaseChecks = "checks: whole databases"
        case queries = "checks: registrants queried"
        case silences = "checks: registrants that must not be found"
        case refusals = "checks: registrations that must be refused"
        case sessionSubscribed = "Session: subscriptions acknowledged"
        case sessionUnsubscribed = "Session: unsubscriptions acknowledged"
        case sessionUnanswered = "Session: requests without an answer"
        case sessionReplays = "Session: replays refused"
        case sessionReported = "Session: messages reported by storage servers"
        case sessionPosts = "Session: notifications posted to gorush"
        case sessionCheckedSubscriptions = "Session, checks: subscriptions"
        case sessionCheckedNotifications = "Session, checks: notifications"
        case sessionMonitored = "Session, checks: accounts monitored again"
        case sessionNotified = "Session, checks: devices notified of a new message"
    }

    private(set) var counts: [Count: Int] = [:]
    private(set) var kills: [KillPhase: Int] = [:]
    /// Failures injected into nodes, by kind.
    private var sufferings: [String: Int] = [:]
    /// The longest time between gorush's reply and a kill that led to a second post.
    private var longestGap: Duration = .zero
    /// From a post to its repetition, by whether the device shows it once.
    private var delays: [Bool: [Duration]] = [:]
    var startTimes: [Duration] = []
    var stopTimes: [Duration] = []

    mutating func add(_ count: Count, _ number: Int = 1) {
        counts[count, default: 0] += number
    }

    mutating func noteKill(_ phase: KillPhase) {
        kills[phase, default: 0] += 1
    }

    mutating func noteSuffering(_ what: String) {
        sufferings[what, default: 0] += 1
    }

    /// Counts an allowed second post.
    ///
    /// - Parameters:
    ///   - gap: between gorush's reply and the kill; nil when there was no reply.
    ///   - delay: since the post before.
    ///   - showsOnce: it replaces the first on the device.
    mutating func noteDuplicate(between gap: Duration?, after delay: Duration, showsOnce: Bool) {
        delays[showsOnce, default: []].append(delay)
        if !showsOnce { add(.duplicatesShownTwice) }
        add(gap == nil ? .duplicatesBeforeReply : .duplicatesBeforeCommit)
        longestGap = max(longestGap, gap ?? .zero)
    }

    /// Adds the figures of another part of the run.
    mutating func add(_ other: Figures) {
        for (count, number) in other.counts { add(count, number) }
        longestGap = max(longestGap, other.longestGap)
        delays.merge(other.delays) { $0 + $1 }
    }

    /// A line per figure.
    var lines: [String] {
        var lines = KillPhase.allCases.map { ("rounds ended \($0.rawValue)", "\(kills[$0] ?? 0)") }
        lines += sufferings.sorted { $0.key < $1.key }.map { ("rounds with \($0.key)", "\($0.value)") }
        lines += Count.allCases.map { ($0.rawValue, "\(counts[$0] ?? 0)") }
        if longestGap > .zero { lines.append(("longest time from such a reply to the kill", longestGap.inMilliseconds)) }
        for (showsOnce, name) in [(true, "shown once"), (false, "shown twice")] {
            lines.append(("from a post to its repetition, \(name), median and longest", Self.middleAndEnd(delays[showsOnce] ?? [])))
        }
        lines.append(("start until ready, median and longest", Self.middleAndEnd(startTimes)))
        lines.append(("SIGTERM until exit, median and longest", Self.middleAndEnd(stopTimes)))
        let width = lines.map(\.0.count).max() ?? 0
        return lines.map { $0.0 + String(repeating: " ", count: width + 2 - $0.0.count) + $0.1 }
    }

    private static func middleAndEnd(_ times: [Duration]) -> String {
        let sorted = times.sorted()
        guard let last = sorted.last else { return "none" }
        return "\(sorted[sorted.count / 2].inMilliseconds), \(last.inMilliseconds)"
    }
}

/// The point at which a round's daemon is ended.
enum KillPhase: String, CaseIterable {
    case firstStart = "by kill -9 in the very first start"
    case startUp = "by kill -9 while it starts"
    case load = "by kill -9 under load"
    case delivery = "by kill -9 right after a reply of gorush's"
    case answer = "by kill -9 right after an answer"
    case shutDown = "by SIGTERM, then kill -9 while it stops"
    case goneBeforeKill = "by SIGTERM, gone before the kill -9"
    case stop = "by SIGTERM, in order"
}

extension Duration {
    /// `12 ms`, `0.3 ms`.
    var inMilliseconds: String {
        let tenths = Int((self / .microseconds(100)).rounded())
        return tenths < 100 ? "\(tenths / 10).\(tenths % 10) ms" : "\(tenths / 10) ms"
    }

    var inSeconds: Double { self / .seconds(1) }
}
