import HealthChecks
import Logging
import NodeMetrics
import Primitives
import Synchronization

/// Compares this machine's clock with a reference, logs and raises the alarm when it differs. ``Primitives/ClockWatch`` decides.
final class ClockMonitor: Sendable {
    /// The other clock, for operators: `the database's`.
    private let reference: String
    private let alarms: Alarms
    private let logger: Logger
    private let watch = Mutex(ClockWatch())

    init(reference: String, alarms: Alarms, logger: Logger) {
        self.reference = reference
        self.alarms = alarms
        self.logger = logger
    }

    /// - Parameter ahead: by how much this clock is certainly ahead of the reference.
    /// - Returns: whether it is wrong.
    @discardableResult
    func compared(ahead: Duration) -> Bool {
        let (change, watch) = watch.withLock { watch in (watch.compared(ahead: ahead), watch) }
        alarms.set(.clock, watch.state == .inStep ? nil : difference(watch))
        switch change {
        case .wrong: logger.error("clock is wrong", metadata: ["difference": "\(difference(watch))"])
        case .differs: logger.warning("clock differs", metadata: ["difference": "\(difference(watch))"])
        case .inStep: logger.info("clock in step again")
        case nil: break
        }
        return watch.state == .wrong
    }

    /// nil before the first comparison.
    var ahead: Duration? { watch.withLock(\.ahead) }

    /// nil before the first comparison.
    var finding: Finding? {
        let watch = watch.withLock(\.self)
        guard watch.ahead != nil else { return nil }
        return NodeChecks.clock(difference(watch), isWrong: watch.state == .wrong, isInStep: watch.state == .inStep)
    }

    /// `1200.0 s behind the database's`
    private func difference(_ watch: ClockWatch) -> String {
        let ahead = watch.ahead ?? .zero
        let tenths = (ahead < .zero ? .zero - ahead : ahead) / .milliseconds(100)
        return "\(tenths.rounded() / 10) s \(ahead < .zero ? "behind" : "ahead of") \(reference)"
    }
}
