import CoreMetrics
import Prometheus
import Synchronization
import Waku

/// The node's ``AlarmLog``, for all of its parts, and counted.
final class Alarms: Sendable {
    private let log = Mutex(AlarmLog())
    private let registry: MetricRegistry
    private let now: @Sendable () -> Timestamp

    init(registry: MetricRegistry, now: @escaping @Sendable () -> Timestamp) {
        self.registry = registry
        self.now = now
        // So that an alarm that never was shows as such.
        for kind in AlarmKind.allCases { registry.counter(.alarms, kind).increment(by: 0) }
    }

    /// - Parameter reason: as the log tells it: it holds nobody's secrets.
    func raise(_ kind: AlarmKind, _ reason: String) {
        let time = now()
        if log.withLock({ $0.raise(kind, reason, at: time) }) { registry.counter(.alarms, kind).increment() }
    }

    func clear(_ kind: AlarmKind) {
        let time = now()
        log.withLock { $0.clear(kind, at: time) }
    }

    /// Raised while there is a reason, cleared when there is none.
    func set(_ kind: AlarmKind, _ reason: String?) {
        if let reason { raise(kind, reason) } else { clear(kind) }
    }

    /// The latest first.
    var all: [Alarm] { log.withLock { $0.alarms } }

    func isActive(_ kind: AlarmKind) -> Bool {
        let time = now()
        return log.withLock { $0.isActive(kind, at: time) }
    }
}
