import Synchronization
package import Core
import Waku

/// The node's ``AlarmLog``, shared by its parts, with metrics.
package final class Alarms: Sendable {
    private let log = Mutex(AlarmLog())
    private let registry: MetricRegistry
    private let now: @Sendable () -> Timestamp

    package init(registry: MetricRegistry, now: @escaping @Sendable () -> Timestamp) {
        self.registry = registry
        self.now = now
        // Creates the series, so that alarms that were never raised are shown as 0.
        for kind in AlarmKind.allCases { _ = registry.counter(.alarms, kind) }
    }

    /// - Parameter reason: as logged, without secrets.
    package func raise(_ kind: AlarmKind, _ reason: String) {
        let time = now()
        if log.withLock({ $0.raise(kind, reason, at: time) }) { registry.counter(.alarms, kind).increment(by: 1) }
    }

    /// Replaces the reason of the alarm if it is active.
    package func explain(_ kind: AlarmKind, _ reason: String) {
        let time = now()
        log.withLock { $0.explain(kind, reason, at: time) }
    }

    package func clear(_ kind: AlarmKind) {
        let time = now()
        log.withLock { $0.clear(kind, at: time) }
    }

    /// Raises the alarm if there is a reason, and clears it otherwise.
    package func set(_ kind: AlarmKind, _ reason: String?) {
        if let reason { raise(kind, reason) } else { clear(kind) }
    }

    /// Latest first.
    package var all: [Alarm] { log.withLock { $0.alarms } }

    package var active: [Alarm] {
        let time = now()
        return all.filter { $0.isActive(at: time) }
    }

    package func isActive(_ kind: AlarmKind) -> Bool { active(kind) != nil }

    /// The alarm of this kind if it is active.
    package func active(_ kind: AlarmKind) -> Alarm? {
        let time = now()
        return log.withLock { $0.active(kind, at: time) }
    }
}
