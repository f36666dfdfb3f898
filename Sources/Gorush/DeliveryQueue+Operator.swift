public import Waku

extension DeliveryQueue {
    /// What waits for another try is due now, and so is a probe when gorush is given up. Returns how many of them wait for gorush alone.
    ///
    /// - Parameter ids: nil for all.
    public mutating func hasten(_ ids: [Int64]?, now: Timestamp) -> Int {
        breaker.hasten(at: now)
        var count = 0
        for id in ids ?? Array(deliveries.keys) {
            switch deliveries[id]?.place {
            case .backlog:
                backlog.remove(id)
                place(id, inBacklogAt: now)
                count += 1
            case .held, .fresh, .halved: count += 1
            case .inFlight, nil: break
            }
        }
        return count
    }
}
