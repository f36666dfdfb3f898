import NodeMetrics
import Core
import Synchronization

extension DeliveryService {
    /// - Parameter ids: nil for all that wait.
    /// - Returns: those that are retried.
    @discardableResult
    package func retry(_ ids: [Int64]?) -> [Int64] {
        let now = steadyNow
        let hastened = table.withLock { $0.hasten(ids, now: now) }
        wakeUp.signal()
        return hastened
    }

    /// Gives notifications up. One that is already being posted may still arrive.
    ///
    /// - Parameter ids: nil for all that wait.
    /// - Returns: those that are dropped.
    package func drop(_ ids: [Int64]?) async -> [Int64] {
        let waiting = table.withLock { $0.waiting(ids) }
        if !waiting.isEmpty { await drop(waiting, .notificationDropped) }
        return waiting
    }

    package var breakerState: String {
        switch breaker.state {
        case .closed: "closed"
        case .open: "open"
        case .halfOpen: "half-open"
        }
    }
}
