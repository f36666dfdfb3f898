/// Judges the difference between this machine's clock and a reference clock, such as the database's.
///
///     in step ──(beyond 2 s)──▶ differs ──(beyond 15 s)──▶ wrong
///        ▲                         ▲                        │
///        └──────(up to 2 s)────────┴──────(up to 10 s)──────┘
///
/// Relays drop messages whose timestamp is more than 20 s off, so nobody gets the answers of a node whose clock is wrong. The limit is lower, since
/// the relays' clocks may differ from the reference.
package struct ClockWatch: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case inStep
        case differs
        case wrong
    }

    private static let noticeable = Duration.seconds(2)
    /// Beyond this difference a clock is wrong.
    package static let tolerable = Duration.seconds(15)
    /// Lower than ``tolerable``, so that a difference near it does not change the state each time.
    private static let tolerableAgain = Duration.seconds(10)

    package private(set) var state = State.inStep
    /// By how much this clock is ahead of the reference, below zero when it is behind; nil before the first comparison.
    package private(set) var ahead: Duration?

    package init() {}

    /// - Parameter ahead: the certain difference: see ``certainDifference(to:from:until:)``.
    /// - Returns: the new state, if it has changed.
    package mutating func compared(ahead: Duration) -> State? {
        self.ahead = ahead
        let difference = ahead < .zero ? .zero - ahead : ahead
        let before = state
        if difference > (before == .wrong ? Self.tolerableAgain : Self.tolerable) {
            state = .wrong
        } else {
            state = difference > Self.noticeable ? .differs : .inStep
        }
        return state == before ? nil : state
    }

    /// The part of this clock's lead over another clock that is certain. The other clock was read at an unknown time between the request and the
    /// answer, so the result is the smallest difference that is consistent with both; negative when this clock is behind. All times are since 1970.
    ///
    /// - Parameters:
    ///   - other: the other clock's time in the answer.
    ///   - start: when the request was sent, by this clock.
    ///   - end: when the answer was received, by this clock.
    package static func certainDifference(to other: Duration, from start: Duration, until end: Duration) -> Duration {
        if start > other { return start - other }
        return end < other ? end - other : .zero
    }
}
