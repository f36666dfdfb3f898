import Gorush
import NodeMetrics
import PushStore
import StatusProtocol
import Synchronization
import Waku

/// What an operator does to the outbox.
extension Deliveries {
    /// - Parameter ids: nil for all that wait.
    func retry(_ ids: [Int64]?) -> Int {
        let now = steadyNow
        let count = state.withLock { state in
            state.queues.indices.reduce(0) { $0 + state.queues[$1].hasten(ids, now: now) }
        }
        wakeUp()
        return count
    }

    /// Gives notifications up. One that is on its way to gorush may still arrive.
    func drop(_ ids: [Int64]?) async -> Int {
        let waiting = state.withLock { state in ids.map { $0.filter { state.deliveries[$0] != nil } } ?? Array(state.deliveries.keys) }
        if !waiting.isEmpty { await drop(waiting, .notificationDropped) }
        return waiting.count
    }

    var breakerState: String {
        switch breaker.state {
        case .closed: "closed"
        case .open: "open"
        case .halfOpen: "half-open"
        }
    }
}
