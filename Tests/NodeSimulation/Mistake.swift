import Core
import Delivery
import Foundation
import PushNode
import StatusServer
import Storage

/// A defect at one of the node's seams, planted to show that the simulation finds such defects. `Tests/simulation-mistakes` has defects of the
/// node's own code.
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

    func change(_ node: inout NodeConfiguration, _ status: inout StatusPush.Configuration) {
        switch self {
        case .slowReplies: node.replyDelay = .seconds(5)
        case .shortMemory: node.retention = .seconds(1)
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
        case .lostChanges: LossyStore(store)
        default: store
        }
    }

    func posting(_ gorush: SimulatedGorush) -> any NotificationPosting {
        switch self {
        case .doublePosts, .acceptedFailures, .lostPosts, .impatientPosts: MistakenGorush(gorush: gorush, mistake: self)
        default: gorush
        }
    }

    /// Changes what a crash left of the database.
    func restore(_ path: String) {
        if self == .lostLog { try? FileManager.default.removeItem(atPath: path + "-wal") }
    }
}

private struct MistakenGorush: NotificationPosting {
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
        default: return await gorush.post(notifications)
        }
    }

    func healthFailure() async -> String? { await gorush.healthFailure() }
}

/// A store that leaves out a tenth of the changes, except for insertions, whose ids the commands need.
private final class LossyStore: Store {
    private let base: any Store

    init(_ base: any Store) {
        self.base = base
    }

    var sealer: Sealer { base.sealer }

    func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        base.submit(commands.map(withoutUpdates), completion: completion)
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
        try base.readEach(commands)
    }

    func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) { try base.scan(read, visit) }
    func onReader(_ body: @escaping @Sendable () -> Void) { base.onReader(body) }
    var failure: String? { base.failure }
    var byteCount: Int { base.byteCount }
    func maintain() async { await base.maintain() }
    func close() throws { try base.close() }
}
