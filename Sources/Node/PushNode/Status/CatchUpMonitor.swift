import Core
import NodeAPI
import NodeMetrics
import Synchronization
import Waku

/// Reports gaps, and whether what was missed could be looked up, as an alarm and as a finding.
final class CatchUpMonitor: Sendable {
    private enum Obstacle {
        /// Attempts continue, unless another relay has what was missed.
        case failing(String, isReported: Bool = false)
        case cutShort(String)
    }

    /// A cursor that is older has been waiting for a store.
    private static let standingAge = Duration.seconds(30)

    private let alarms: Alarms
    private let obstacle = Mutex<Obstacle?>(nil)

    init(alarms: Alarms) {
        self.alarms = alarms
    }

    func gapFound() {
        alarms.raise(.gap, "missed messages are looked up in stores")
    }

    func failed(_ reason: String) {
        obstacle.withLock { $0 = .failing(reason) }
    }

    func cutShort(_ reason: String) {
        obstacle.withLock { $0 = .cutShort(reason) }
        alarms.raise(.gap, "missed messages were not all looked up: \(reason)")
    }

    func caughtUp() {
        obstacle.withLock { $0 = nil }
        alarms.explain(.gap, "missed messages were looked up")
    }

    /// Raises the alarm for look-ups that fail, once the messages are not to be had from another relay. Called regularly.
    func check(seenUntil: Timestamp?, at now: Timestamp) {
        let reason = obstacle.withLock { obstacle -> String? in
            guard case .failing(let reason, isReported: false) = obstacle, isStanding(seenUntil, at: now) else { return nil }
            obstacle = .failing(reason, isReported: true)
            return reason
        }
        if let reason { alarms.raise(.gap, "missed messages can't be looked up: \(reason)") }
    }

    private func isStanding(_ seenUntil: Timestamp?, at now: Timestamp) -> Bool {
        seenUntil.map { now.since($0) > Self.standingAge } ?? false
    }

    /// - Parameter seenUntil: the oldest cursor of a pubsub topic; nil before there is one.
    func finding(seenUntil: Timestamp?, at now: Timestamp) -> Finding? {
        switch obstacle.withLock(\.self) {
        case nil: return nil
        case .cutShort(let reason): return NodeChecks.catchUp("missed messages were not all looked up: \(reason)")
        case .failing(let reason, _):
            return isStanding(seenUntil, at: now) ? NodeChecks.catchUp("missed messages can't be looked up: \(reason)") : nil
        }
    }
}
