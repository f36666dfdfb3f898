public import Core

/// Decides in which order several relays are tried for publishing: the operator's order, except for relays whose publications are never
/// confirmed.
///
///     ranked ──(10 unconfirmed in a row)──▶ demoted ──(10 min)──▶ on trial with one message
///       ▲                                      ▲                      │
///       └──────────────(confirmed)─────────────┼──────────────────────┤
///                                              └────(unconfirmed)─────┘
///
/// A demoted relay comes after all others. Several demoted relays publish at the same time, so that none is relied on alone. The answer of a
/// demoted relay's store does not demote another relay: of two that contradict each other only one is demoted.
public struct RelayRanking: Sendable {
    /// Consecutive unconfirmed publications that demote a relay.
    public static let unconfirmedLimit = 10
    /// From the demotion to the first trial, and from one trial to the next.
    public static let trialPeriod = Duration.seconds(600)

    private struct Standing {
        var unconfirmedCount = 0
        /// nil unless the relay is demoted.
        var nextTrial: Instant?
    }

    private var standings: [Standing]

    /// - Parameter count: The number of relays. They are named by their index in the operator's order, their place.
    public init(count: Int) {
        standings = Array(repeating: Standing(), count: count)
    }

    /// The places of the demoted relays.
    public var demoted: [Int] { standings.indices.filter { standings[$0].nextTrial != nil } }

    /// The groups of relays to publish a message by. All relays of a group publish at the same time; the next group is tried when none of
    /// them accepts the message.
    ///
    /// - Parameters:
    ///   - isAttached: For each relay. Detached ones come later, since they may still publish.
    ///   - avoided: Places of the relays that published the message before: they come last.
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

    /// Records the outcome of a message that a single relay published.
    public mutating func note(_ verdict: RelayVerdict, at now: Instant) {
        guard standings.indices.contains(verdict.place) else { return }
        if verdict.isConfirmed {
            standings[verdict.place] = Standing()
        } else if verdict.isClaimed, verdict.deniedBy.isSubset(of: demoted) {
            // A demoted relay does not demote another one.
        } else {
            standings[verdict.place].unconfirmedCount += 1
            let isDemoted = standings[verdict.place].nextTrial != nil
            if !isDemoted, standings[verdict.place].unconfirmedCount >= Self.unconfirmedLimit {
                standings[verdict.place].nextTrial = now + Self.trialPeriod
            }
        }
    }
}

/// Whether a publication by one relay arrived in the network, according to stores.
public struct RelayVerdict: Hashable, Sendable {
    /// The relay's index in the operator's order.
    public var place: Int
    /// Whether another relay's store has the message, or, where no other store gives information, the relay itself confirms it.
    public var isConfirmed: Bool
    /// Whether only the relay itself confirms it: its own store has the message, or it reports that a peer accepted it.
    public var isClaimed: Bool
    /// The places of the other relays whose stores were queried and do not have the message.
    public var deniedBy: Set<Int>

    /// Creates a verdict on the relay at this place.
    public init(place: Int, isConfirmed: Bool, isClaimed: Bool = false, deniedBy: Set<Int> = []) {
        self.place = place
        self.isConfirmed = isConfirmed
        self.isClaimed = isClaimed
        self.deniedBy = deniedBy
    }
}
