import NodeMetrics
import Core
import Synchronization

extension DeliveryService {
    /// - Parameter ids: nil for all that wait.
    package func retry(_ ids: [Int64]?) -> Int {
        let now = steadyNow
        let count = table.withLock { $0.hasten(ids, now: now) }
        wakeUp.signal()
        return count
    }

    /// Gives notifications up. One that is already being posted may still arrive.
    ///
    /// - Parameter ids: nil for all that wait.
    package func drop(_ ids: [Int64]?) async -> Int {
        let waiting = table.withLock { $0.waiting(ids) }
        if !waiting.isEmpty { await drop(waiting, .notificationDropped) }
        return waiting.count
    }

    package var breakerState: String {
        switch breaker.state {
        case .closed: "closed"
        case .open: "open"
        case .halfOpen: "half-open"
        }
    }
}
