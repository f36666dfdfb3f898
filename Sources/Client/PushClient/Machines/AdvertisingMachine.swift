import Core
import Waku

/// Decides when the own devices are advertised: at the start, when servers accepted something new, and every 24 h less up to an hour.
struct AdvertisingMachine: Sendable {
    static let period = Duration.seconds(24 * 3600)
    static let periodJitter = Duration.seconds(3600)
    static let failureBase = Duration.seconds(15)
    private static let failureLimit = 5

    private(set) var nextWakeUp: Timestamp?
    /// Published, but the relay did not say so yet.
    private(set) var isUnderWay = false
    private var isDueAgain = false
    private var failures = 0

    /// - Parameter isActive: Whether there is, or was, anything to tell.
    init(isActive: Bool, at now: Timestamp) {
        nextWakeUp = isActive ? now : nil
    }

    /// What would be advertised changed.
    mutating func rowsChanged(at now: Timestamp) {
        if isUnderWay { isDueAgain = true } else { nextWakeUp = now }
    }

    /// Nothing is advertised any more.
    mutating func stop() {
        nextWakeUp = nil
        isDueAgain = false
    }

    /// - Returns: Whether to publish now.
    mutating func wake(at now: Timestamp) -> Bool {
        guard !isUnderWay, let due = nextWakeUp, due <= now else { return false }
        isUnderWay = true
        nextWakeUp = nil
        return true
    }

    /// - Parameter goesOn: Whether it is repeated: nobody needs to be told daily that there is nothing.
    mutating func published(goesOn: Bool, at now: Timestamp, jitter: Double) {
        isUnderWay = false
        failures = 0
        nextWakeUp = isDueAgain ? now : goesOn ? now + (Self.period - Self.periodJitter * min(max(jitter, 0), 1)) : nil
        isDueAgain = false
    }

    mutating func notPublished(at now: Timestamp, jitter: Double) {
        isUnderWay = false
        isDueAgain = false
        failures = min(failures + 1, Self.failureLimit)
        nextWakeUp = now + RetryDelay.after(failures: failures, base: Self.failureBase, jitter: jitter)
    }
}
