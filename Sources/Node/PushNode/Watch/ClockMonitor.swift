import Core
import Logging
import NodeAPI
import NodeMetrics
import Synchronization

/// Compares this machine's clock with a reference, logs and raises the alarm when it differs. ``Core/ClockWatch`` decides.
final class ClockMonitor: Sendable {
    private struct State {
        var watch = ClockWatch()
        /// The other clock, for operators: `the database's`.
        var reference = ""

        /// `1200.0 s behind the database's`
        var difference: String {
            let ahead = watch.ahead ?? .zero
            let tenths = (ahead < .zero ? .zero - ahead : ahead) / .milliseconds(100)
            return "\((tenths).rounded() / 10) s \(ahead < .zero ? "behind" : "ahead of") \(reference)"
        }
    }

    private let alarms: Alarms
    private let logger: Logger
    private let state = Mutex(State())

    init(alarms: Alarms, logger: Logger) {
        self.alarms = alarms
        self.logger = logger
    }

    /// - Parameters:
    ///   - ahead: by how much this clock is certainly ahead of the reference.
    ///   - reference: the other clock, for operators.
    /// - Returns: whether the clock is wrong.
    @discardableResult
    func compared(ahead: Duration, of reference: String) -> Bool {
        let (change, state) = state.withLock { state in
            state.reference = reference
            return (state.watch.compared(ahead: ahead), state)
        }
        alarms.set(.clock, state.watch.state == .inStep ? nil : state.difference)
        switch change {
        case .wrong: logger.error("clock offset too large", metadata: ["difference": "\(state.difference)"])
        case .differs: logger.warning("clock offset", metadata: ["difference": "\(state.difference)"])
        case .inStep: logger.info("clock synchronized again")
        case nil: break
        }
        return state.watch.state == .wrong
    }

    /// Whether the clock is so far off that relays drop this node's messages.
    var isWrong: Bool { state.withLock { $0.watch.state == .wrong } }

    /// nil before the first comparison.
    var ahead: Duration? { state.withLock(\.watch.ahead) }

    /// - Parameter areAllOff: whether the clocks of all nodes differ from the database's.
    /// - Returns: nil before the first comparison.
    func finding(areAllOff: Bool) -> Finding? {
        let state = state.withLock(\.self)
        guard state.watch.ahead != nil else { return nil }
        let watch = state.watch.state
        return NodeChecks.clock(state.difference, isWrong: watch == .wrong, isInStep: watch == .inStep, areAllOff: areAllOff)
    }
}
