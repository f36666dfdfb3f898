import Cluster
import Core
import Testing

/// Milliseconds of simulated time: plain integers, since the simulation compares millions of them.
typealias Milliseconds = Int

extension Instant {
    static func at(_ time: Milliseconds) -> Instant { Instant(sinceEpoch: .milliseconds(time)) }
}

extension Duration {
    var milliseconds: Milliseconds { Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000) }
}

/// What a run of the simulation does, and with which faults.
struct SimulationPlan {
    var seed: UInt64
    var nodeCount = 3
    var messageCount = 40
    var deviceCount = 5
    /// Faults begin before this.
    var faultsEnd: Milliseconds = 40_000
    /// A message network, database and gorush that work, for as long as everything needs to settle.
    var end: Milliseconds = 80_000
    /// Between the beginnings of two faults, on average. 0: no faults at all.
    var faultInterval: Milliseconds = 4000
    /// Of each message at each node, in percent.
    var hearingLoss = 3
    /// Of requests to the database and of their replies, in per mille.
    var lineLoss = 4
    /// gorush is in trouble all the time that faults occur.
    var isGorushTroubled = false
    /// Messages that are handed in again later, in percent.
    var repetitions = 12
    var faults = Fault.allCases
    var mutation: Mutation?

    init(seed: UInt64) {
        self.seed = seed
    }

    enum Fault: CaseIterable {
        case kill, pause, cutFromDatabase, deafen, drain, stepNodeClock, stepDatabaseClock, databaseOutage, failover, gorushTrouble
    }
}

/// A driver, or a database, with one mistake. The simulation must find each of them.
enum Mutation: String, CaseIterable, CustomTestStringConvertible {
    /// Posts whatever it has marked, without asking whether its lease is valid.
    case ignoresLease
    /// Passes a clock that stands still while the node is stopped.
    case clockWithoutSuspension
    /// Passes the wall clock, which is set now and then.
    case wallClock
    /// Leases end by the database's clock: `until < clock_timestamp()`.
    case leasesByDatabaseClock
    /// Marks without the owner and epoch of the partition as a condition.
    case marksWithoutEpoch
    /// Posts without a committed mark.
    case postsWithoutMark
    /// Does not wait for the posts of the former owner.
    case repeatsMarkedRowsAtOnce
    /// Holds marked rows from its take-over on, not from their first mark.
    case holdsFromTakeOver
    /// Says that a partition is settled while posts of it are unanswered.
    case releasesUnsettled
    /// Marks without looking for earlier rows of the device.
    case ignoresEarlierRows
    /// Finds new rows by `id > last`.
    case readsBeyondLastID
    /// Looks for a claim, and then writes without one.
    case claimsByReading
    /// Drops claims without keeping the first hour that is left.
    case forgetsFirstHour
    /// Takes a COMMIT without a reply for a success.
    case trustsLostCommits
    /// Takes a COMMIT on a server that was replaced for a success.
    case trustsOldPrimary
    /// Publishes answers for other nodes from what it read, without a committed transaction.
    case answersFromReads
    /// Does not read the rows of finished messages.
    case ignoresFinishedRows
    /// Leaves claimed messages to the node that claimed them.
    case leavesClaimedMessages
    /// Queries are answered by rank 0 alone, as long as its lease holds.
    case queriesByRankZeroOnly
    /// Divides messages by the latest rules that it knows, whatever the others know.
    case ignoresOlderRules

    var testDescription: String { rawValue }
}

/// Something that must never happen.
struct Violation: Hashable, CustomStringConvertible {
    enum Kind: String {
        /// What was acknowledged is not in the database.
        case acknowledgedIsLost
        /// A committed notification was never accepted by gorush.
        case notificationIsLost
        case effectTwice
        case unanswered
        case answeredLate
        /// Posted again without one of the reasons in the article.
        case doubled
        /// Held longer than from its first mark.
        case heldTooLong
        case order
        case unowned
        case unfair
        case junkHandledTwice
        case maintenanceByTwo
    }

    let kind: Kind
    let at: Milliseconds
    let text: String

    var description: String { "\(at) ms: \(kind): \(text)" }
}

/// How often something happened, so that a test can tell that the run was not idle.
struct SimulationFigures {
    var committed = 0
    var queries = 0
    var answers = 0
    var posts = 0
    /// Posts of what gorush had accepted before, for one of the allowed reasons.
    var repeatedPosts = 0
    var takeovers = 0
    var endedLeases = 0
    var handovers = 0
    var takenByOtherRank = 0
    var answeredForOthers = 0
    var unknownCommits = 0
    var fencedOutcomes = 0
    var failovers = 0
    var checkedTimely = 0
    var checkedJunk = 0
    var maintenance = 0
    var faults = 0
    var longestGap: Milliseconds = 0

    static func += (left: inout SimulationFigures, right: SimulationFigures) {
        left.committed += right.committed
        left.queries += right.queries
        left.answers += right.answers
        left.posts += right.posts
        left.repeatedPosts += right.repeatedPosts
        left.takeovers += right.takeovers
        left.endedLeases += right.endedLeases
        left.handovers += right.handovers
        left.takenByOtherRank += right.takenByOtherRank
        left.answeredForOthers += right.answeredForOthers
        left.unknownCommits += right.unknownCommits
        left.fencedOutcomes += right.fencedOutcomes
        left.failovers += right.failovers
        left.checkedTimely += right.checkedTimely
        left.checkedJunk += right.checkedJunk
        left.maintenance += right.maintenance
        left.faults += right.faults
        left.longestGap = max(left.longestGap, right.longestGap)
    }
}
