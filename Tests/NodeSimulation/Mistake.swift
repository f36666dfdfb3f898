import Core
import Delivery
import Foundation
import PushNode
import SessionProtocol
import SessionServer
import StatusServer
import StatusV01Server
import Storage

/// A defect of the node's environment or of one of its interfaces, planted to show that the simulation finds such defects.
/// `Tests/simulation-mistakes` has defects of the node's own code.
enum Mistake: String, CaseIterable {
    /// Replies leave 5 s after their question.
    case slowReplies = "slow-replies"
    /// The node's clock is 20 minutes ahead.
    case clockAhead = "clock-ahead"
    /// Deliveries are remembered for a second.
    case shortMemory = "short-memory"
    /// Some changes of rows are not applied, though the command succeeds.
    case lostChanges = "lost-changes"
    /// A crash loses the write-ahead log.
    case lostLog = "lost-log"
    /// Posts are made twice.
    case doublePosts = "double-posts"
    /// Posts that fail count as accepted.
    case acceptedFailures = "accepted-failures"
    /// Some posts are not made, and count as accepted.
    case lostPosts = "lost-posts"
    /// Posts without an answer are repeated at once.
    case impatientPosts = "impatient-posts"
    /// gorush's refusals are attributed to other notifications of the post.
    case confusedRefusals = "confused-refusals"
    /// Only the first notification of a post is posted.
    case shortPosts = "short-posts"
    /// Some commands are never completed.
    case lostCompletions = "lost-completions"
    /// Some publications are confirmed and not made.
    case lostPublications = "lost-publications"
    /// The outbox has room for one notification.
    case tinyOutbox = "tiny-outbox"
    /// A start finds no waiting notifications.
    case unreadOutbox = "unread-outbox"
    /// Notifications expire after 20 s.
    case hastyExpiry = "hasty-expiry"
    /// Registrations are removed when they were not renewed for two minutes.
    case shortLifetime = "short-lifetime"
    /// Some subscriptions are answered with success and not stored.
    case falseSubscriptions = "false-subscriptions"
    /// Subscriptions are monitored after a restart only.
    case deafMonitor = "deaf-monitor"
    /// Storage servers are not asked about some subscriptions.
    case missingEntries = "missing-entries"
    /// Some reports of storage servers are dropped.
    case droppedReports = "dropped-reports"

    /// A node whose lease was ended by others continues as if it were valid.
    case ignoredLease = "ignored-lease"
    /// Nodes do not find the notifications that other nodes stored for their devices.
    case unreadShare = "unread-share"
    /// Leases of killed nodes do not end.
    case endlessLeases = "endless-leases"

    /// nil: any.
    var engine: World.Engine? {
        switch self {
        case .lostLog: .sqlite
        case .ignoredLease, .unreadShare, .endlessLeases: .cluster
        default: nil
        }
    }

    func change(
        _ node: inout NodeConfiguration, _ status: inout StatusPush.Configuration, _ statusV01: inout StatusPushV01.Configuration
    ) {
        switch self {
        case .slowReplies: node.replyDelay = .seconds(5)
        case .shortMemory: node.retention = .seconds(1)
        case .tinyOutbox: node.outboxLimit = 1
        case .hastyExpiry: (status.requestAgeLimit, statusV01.requestAgeLimit) = (.seconds(20), .seconds(20))
        case .shortLifetime: (status.registrationLifetime, statusV01.registrationLifetime) = (.seconds(120), .seconds(120))
        default: break
        }
    }

    var clock: (@Sendable () -> Timestamp)? {
        switch self {
        case .clockAhead: { Timestamp.now() + .seconds(1_200) }
        default: nil
        }
    }

    func store(_ store: any Store) -> any Store {
        switch self {
        case .lostChanges, .lostCompletions, .unreadOutbox: LossyStore(store, mistake: self)
        default: store
        }
    }

    func posting(_ gorush: SimulatedGorush) -> any NotificationPosting {
        switch self {
        case .doublePosts, .acceptedFailures, .lostPosts, .impatientPosts, .confusedRefusals, .shortPosts:
            MistakenGorush(gorush: gorush, mistake: self)
        default: gorush
        }
    }

    /// Changes the database files that a crash left.
    func restore(_ path: String) {
        if self == .lostLog { try? FileManager.default.removeItem(atPath: path + "-wal") }
    }
}

private struct MistakenGorush: NotificationPosting {
    var certificateEnd: Int? { nil }
    let gorush: SimulatedGorush
    let mistake: Mistake

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        let accepted = PostResult(outcome: .accepted, status: 200, postedTokenCount: notifications.count)
        switch mistake {
        case .lostPosts where gorush.world.chance(0.2): return accepted
        case .acceptedFailures:
            _ = await gorush.post(notifications)
            return accepted
        case .impatientPosts:
            let result = await gorush.post(notifications)
            if case .failed = result.outcome { return await gorush.post(notifications) }
            return result
        case .doublePosts:
            _ = await gorush.post(notifications)
            return await gorush.post(notifications)
        case .confusedRefusals:
            let result = await gorush.post(notifications)
            guard case .accepted = result.outcome else { return result }
            let others = notifications.map(\.id).filter { id in !result.failures.contains { $0.notificationID == id } }
            return PostResult(
                outcome: .accepted, status: 200, postedTokenCount: notifications.count,
                failures: zip(result.failures, others).map { PostResult.Failure(notificationID: $1, reason: $0.reason) })
        case .shortPosts:
            _ = await gorush.post(Array(notifications.prefix(1)))
            return accepted
        default: return await gorush.post(notifications)
        }
    }

    func healthFailure() async -> String? { await gorush.healthFailure() }
}

/// A store that leaves out a tenth of the changes, except for insertions, whose ids the commands need; or a hundredth of the completions; or all waiting
/// notifications when they are read.
private final class LossyStore: Store {
    private let base: any Store
    private let mistake: Mistake

    init(_ base: any Store, mistake: Mistake) {
        (self.base, self.mistake) = (base, mistake)
    }

    var sealer: Sealer { base.sealer }

    func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        if mistake == .lostChanges { return base.submit(commands.map(withoutUpdates), completion: completion) }
        let isLost = mistake == .lostCompletions && !commands.isEmpty && Int.random(in: 0..<100) == 0
        base.submit(commands) { if !isLost { completion($0) } }
    }

    private func withoutUpdates<Outcome>(_ command: StoreCommand<Outcome>) -> StoreCommand<Outcome> {
        switch command {
        case .read(let reads, let next): .read(reads) { self.withoutUpdates(try next($0)) }
        case .apply(let changes, let outcome):
            .apply(Int.random(in: 0..<10) == 0 ? changes.filter(\.mutation.isInsert) : changes, outcome)
        }
    }

    func afterCommits(_ body: @escaping @Sendable () -> Void) {
        base.afterCommits(body)
    }

    func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
        // Compared first: an empty array can be cast to an array of anything.
        if mistake == .unreadOutbox, Outcome.self == [WaitingDelivery].self, let none = [WaitingDelivery]() as? Outcome {
            return commands.map { _ in .success(none) }
        }
        return try base.readEach(commands)
    }

    func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) { try base.scan(read, visit) }
    func onReader(_ body: @escaping @Sendable () -> Void) { base.onReader(body) }
    var failure: String? { base.failure }
    var byteCount: Int { base.byteCount }
    func maintain() async { await base.maintain() }
    func recheck() async { await base.recheck() }
    func stopWaiting() { base.stopWaiting() }
    func close() throws { try base.close() }
}

// MARK: Session

extension Mistake {
    func answer(_ answer: @escaping AnswerSession) -> AnswerSession {
        guard self == .falseSubscriptions else { return answer }
        return { body, endpoint in
            Int.random(in: 0..<4) == 0 ? (#"{"success":true}"#, false) : try await answer(body, endpoint)
        }
    }

    func entries(_ entries: any MonitorEntrySource) -> any MonitorEntrySource {
        self == .missingEntries ? MissingEntries(base: entries) : entries
    }

    func receiver(_ receiver: any SessionMessageReceiver) -> any SessionMessageReceiver {
        self == .droppedReports ? ForgetfulReceiver(base: receiver) : receiver
    }

    func monitor(_ monitor: SubscriptionMonitor) -> any SubscriptionMonitoring {
        self == .deafMonitor ? DeafMonitor(base: monitor) : monitor
    }
}

private struct MissingEntries: MonitorEntrySource {
    let base: any MonitorEntrySource

    func entries(of ids: [SubscriptionID]) async throws -> (found: [SubscriptionID: MonitorEntry], ended: [SubscriptionID]) {
        let (found, ended) = try await base.entries(of: ids)
        return (found.filter { $0.key.rawValue % 2 == 0 }, ended)
    }
}

private struct ForgetfulReceiver: SessionMessageReceiver {
    let base: any SessionMessageReceiver

    func take(_ messages: [ReportedMessage]) async { await base.take(messages.filter { $0.message.hash < "8" }) }
    func settle() async { await base.settle() }
}

private final class DeafMonitor: SubscriptionMonitoring {
    private let base: SubscriptionMonitor

    init(base: SubscriptionMonitor) { self.base = base }

    func load(_ all: [MonitoredSubscription]) { base.load(all) }
    func apply(_ change: MonitoringChange) { if case .remove = change { base.apply(change) } }
    func removeAccounts(where isAssignedElsewhere: @escaping @Sendable (AccountID) -> Bool) {
        base.removeAccounts(where: isAssignedElsewhere)
    }
    func run() async throws { try await base.run() }
    func reloadServers() { base.reloadServers() }
    var figures: SubscriptionMonitor.Figures { base.figures }
}
