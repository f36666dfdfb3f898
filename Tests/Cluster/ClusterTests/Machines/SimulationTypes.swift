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

/// The schedule of a simulation run, and its faults.
struct SimulationPlan {
    var seed: UInt64
    var nodeCount = 3
    var messageCount = 40
    var deviceCount = 5
    /// Faults begin before this.
    var faultsEnd: Milliseconds = 40_000
    /// After the faults, everything works until this time, so that the nodes settle.
    var end: Milliseconds = 80_000
    /// The average time between the beginnings of two faults. 0: no faults.
    var faultInterval: Milliseconds = 4000
    /// Loss of each message at each node, in percent.
    var hearingLoss = 3
    /// Loss of requests to the database and of their replies, in per mille.
    var lineLoss = 4
    /// gorush fails during the whole time of faults.
    var isGorushTroubled = false
    /// Messages that are delivered again later, in percent.
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

/// A driver, or a database, with one defect. The simulation must detect each of them.
enum Mutation: String, CaseIterable, CustomTestStringConvertible {
    /// Posts marked rows without checking that its lease is valid.
    case ignoresLease
    /// Passes a clock that stands still while the node is stopped.
    case clockWithoutSuspension
    /// Passes the wall clock, which is set from time to time.
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
    /// Checks for a claim, and then writes without one.
    case claimsByReading
    /// Drops claims without storing the first retained hour.
    case forgetsFirstHour
    /// Treats a COMMIT without a reply as a success.
    case trustsLostCommits
    /// Treats a COMMIT on a server that was replaced as a success.
    case trustsOldPrimary
    /// Publishes answers for other nodes after reading the rows, without a committed transaction.
    case answersFromReads
    /// Does not read the rows of finished messages.
    case ignoresFinishedRows
    /// Leaves claimed messages to the node that claimed them.
    case leavesClaimedMessages
    /// Queries are answered by rank 0 alone, as long as its lease holds.
    case queriesByRankZeroOnly
    /// Divides messages by the latest rules that it knows, regardless of the other nodes' rules.
    case ignoresOlderRules

    var testDescription: String { rawValue }
}

/// Something that must never happen.
struct Violation: Hashable, CustomStringConvertible {
    enum Kind: String {
        /// Acknowledged changes are not in the database.
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

/// Counts of events, by which tests verify that a run was not idle.
struct SimulationFigures {
    var committed = 0
    var queries = 0
    var answers = 0
    var posts = 0
    /// Repeated posts of notifications that gorush had accepted, for one of the allowed reasons.
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
