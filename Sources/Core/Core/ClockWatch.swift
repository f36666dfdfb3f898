/// Judges the difference between this machine's clock and a reference clock, such as the database's.
///
///     in step ──(beyond 2 s)──▶ differs ──(beyond 30 s)──▶ wrong
///        ▲                         ▲                        │
///        └──────(up to 2 s)────────┴──────(up to 20 s)──────┘
///
/// A node whose clock is wrong drops messages as too old or as from the future, and its answers are dropped by relays.
package struct ClockWatch: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case inStep
        case differs
        case wrong
    }

    private static let noticeable = Duration.seconds(2)
    private static let tolerable = Duration.seconds(30)
    /// Lower than ``tolerable``, so that a difference near it does not change the state each time.
    private static let tolerableAgain = Duration.seconds(20)

    package private(set) var state = State.inStep
    /// By how much this clock is ahead of the reference, below zero when it is behind; nil before the first comparison.
    package private(set) var ahead: Duration?

    package init() {}

    /// - Parameter ahead: the difference that is certain: see ``certainDifference(to:from:until:)``.
    /// - Returns: the state, when it has changed.
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

    /// By how much this clock is certainly ahead of another: the smallest difference that explains an answer, which the other clock's time was
    /// written into at some time between the request and the answer. All are times since 1970.
    ///
    /// - Parameters:
    ///   - start: when the request was sent, by this clock.
    ///   - end: when the answer was received, by this clock.
    package static func certainDifference(to other: Duration, from start: Duration, until end: Duration) -> Duration {
        if start > other { return start - other }
        return end < other ? end - other : .zero
    }
}
