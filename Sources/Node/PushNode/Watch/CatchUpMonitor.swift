import Core
import NodeAPI
import NodeMetrics
import Synchronization
import Waku

/// Reports gaps, and whether what was missed could be looked up, as an alarm and as a finding.
final class CatchUpMonitor: Sendable {
    /// Why attempts fail that continue, unless another relay has what was missed.
    private struct Obstacle {
        var reason: String
        var isReported = false
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
        obstacle.withLock { $0 = Obstacle(reason: reason, isReported: $0?.isReported ?? false) }
    }

    /// The rest stays missing: a later catch-up does not end the alarm.
    func cutShort(_ reason: String) {
        // A store answered.
        obstacle.withLock { $0 = nil }
        alarms.raise(.catchUpIncomplete, "missed messages were not all looked up: \(reason)")
    }

    func caughtUp() {
        obstacle.withLock { $0 = nil }
        alarms.explain(.gap, "missed messages were looked up")
    }

    /// Raises the alarm for look-ups that fail, once the messages are not to be had from another relay. Called regularly.
    func check(seenUntil: Timestamp?, at now: Timestamp) {
        let reason = obstacle.withLock { obstacle -> String? in
            guard let reason = obstacle?.reason, obstacle?.isReported == false, isStanding(seenUntil, at: now) else { return nil }
            obstacle?.isReported = true
            return reason
        }
        if let reason { alarms.raise(.gap, "missed messages can't be looked up: \(reason)") }
    }

    private func isStanding(_ seenUntil: Timestamp?, at now: Timestamp) -> Bool {
        seenUntil.map { now.since($0) > Self.standingAge } ?? false
    }

    /// - Parameter seenUntil: the oldest cursor of a pubsub topic; nil before there is one.
    func finding(seenUntil: Timestamp?, at now: Timestamp) -> Finding? {
        if let alarm = alarms.all.first(where: { $0.kind == .catchUpIncomplete }), alarm.isActive(at: now) {
            return NodeChecks.catchUp(alarm.reason)
        }
        guard let reason = obstacle.withLock(\.self)?.reason, isStanding(seenUntil, at: now) else { return nil }
        return NodeChecks.catchUp("missed messages can't be looked up: \(reason)")
    }
}
