import Core

/// Decides when to advertise the client's devices: at the start, when servers accepted a change, and every 24 h minus up to an hour.
struct AdvertisingMachine: Sendable {
    static let period = Duration.seconds(24 * 3600)
    static let periodJitter = Duration.seconds(3600)
    static let failureBase = Duration.seconds(15)
    private static let failureLimit = 5

    private(set) var nextWakeUp: Timestamp?
    /// Published, but not yet confirmed by the relay.
    private(set) var isUnderWay = false
    private var isDueAgain = false
    private var failures = 0

    /// - Parameter isActive: Whether there is something to advertise, or an earlier advertisement to withdraw.
    init(isActive: Bool, at now: Timestamp) {
        nextWakeUp = isActive ? now : nil
    }

    mutating func rowsChanged(at now: Timestamp) {
        if isUnderWay { isDueAgain = true } else { nextWakeUp = now }
    }

    /// - Returns: Whether to publish now.
    mutating func wake(at now: Timestamp) -> Bool {
        guard !isUnderWay, let due = nextWakeUp, due <= now else { return false }
        isUnderWay = true
        nextWakeUp = nil
        return true
    }

    /// - Parameter goesOn: Whether to repeat the advertisement. An empty one is not repeated daily.
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
