public import Primitives

/// In which order relays publish: the operator's, but for those whose answers nobody confirms. What was asked, verdicts and time come in, an
/// order comes out.
///
///     ranked ──(10 unconfirmed in a row)──▶ demoted ──(10 min)──▶ on trial with one message
///       ▲                                      ▲                      │
///       └──────────────(confirmed)─────────────┼──────────────────────┤
///                                              └────(unconfirmed)─────┘
///
/// A demoted relay comes after all others, and is never relied on alone while there are several: all that are demoted publish at once. Nor
/// does its store's word cost another relay its rank, so that of two that contradict each other only one is demoted.
public struct RelayRanking: Sendable {
    /// So many publications in a row that are looked up and not confirmed cost a relay its rank.
    public static let unconfirmedLimit = 10
    /// From the loss of the rank to the trial, and from one trial to the next.
    public static let trialPeriod = Duration.seconds(600)

    private struct Standing {
        var unconfirmedCount = 0
        /// nil while it has its rank.
        var nextTrial: Instant?
    }

    private var standings: [Standing]

    /// - Parameter count: Of relays, which are named by their places in the operator's order.
    public init(count: Int) {
        standings = Array(repeating: Standing(), count: count)
    }

    /// The places of those without their rank.
    public var demoted: [Int] { standings.indices.filter { standings[$0].nextTrial != nil } }

    /// How a message is to be published: by the first group; if none of it takes the message, by the next. All of a group publish at once.
    /// - Parameters:
    ///   - isAttached: For each relay. One that is not may still publish.
    ///   - avoided: Places of those by which it went out before: they come last.
    ///   - now: Since a fixed start.
    public mutating func groups(isAttached: [Bool], avoiding avoided: Set<Int> = [], at now: Instant) -> [[Int]] {
        var groups: [[Int]] = []
        if let trial = takeTrial(isAttached: isAttached, avoiding: avoided, at: now) { groups.append([trial]) }
        for isAvoided in [false, true] {
            let places = standings.indices.filter { avoided.contains($0) == isAvoided && groups.first != [$0] }
            let ranked = places.filter { standings[$0].nextTrial == nil }
            groups += ranked.filter { isAttached[$0] }.map { [$0] }
            groups += ranked.filter { !isAttached[$0] }.map { [$0] }
            let demoted = places.filter { standings[$0].nextTrial != nil }
            if !demoted.isEmpty { groups.append(demoted) }
        }
        return groups
    }

    private mutating func takeTrial(isAttached: [Bool], avoiding avoided: Set<Int>, at now: Instant) -> Int? {
        let due = standings.indices.first { place in
            guard let nextTrial = standings[place].nextTrial else { return false }
            return nextTrial <= now && isAttached[place] && !avoided.contains(place)
        }
        if let due { standings[due].nextTrial = now + Self.trialPeriod }
        return due
    }

    /// What became of a message that one relay alone published.
    public mutating func note(_ verdict: RelayVerdict, at now: Instant) {
        guard standings.indices.contains(verdict.place) else { return }
        if verdict.isConfirmed {
            standings[verdict.place] = Standing()
        } else if verdict.isClaimed, verdict.deniedBy.isSubset(of: demoted) {
            // A relay without its rank takes nobody else's.
        } else {
            standings[verdict.place].unconfirmedCount += 1
            let isDemoted = standings[verdict.place].nextTrial != nil
            if !isDemoted, standings[verdict.place].unconfirmedCount >= Self.unconfirmedLimit {
                standings[verdict.place].nextTrial = now + Self.trialPeriod
            }
        }
    }
}

/// Whether a publication by one relay arrived, as far as stores tell.
public struct RelayVerdict: Hashable, Sendable {
    /// Of the relay, in the operator's order.
    public var place: Int
    public var isConfirmed: Bool
    /// Whether the relay's own store has the message, or the relay says that a peer took it.
    public var isClaimed: Bool
    /// The places of the other relays whose stores were asked and don't have it.
    public var deniedBy: Set<Int>

    public init(place: Int, isConfirmed: Bool, isClaimed: Bool = false, deniedBy: Set<Int> = []) {
        self.place = place
        self.isConfirmed = isConfirmed
        self.isClaimed = isClaimed
        self.deniedBy = deniedBy
    }
}
