/// The price of a piece of work: charged to its payer before the work begins.
package struct WorkCost: Hashable, Sendable {
    /// CPU time in microseconds, on one core.
    package var cpuMicroseconds = 0
    /// Bytes written to the database.
    package var storedByteCount = 0
    /// Bytes sent to the network.
    package var sentByteCount = 0
    /// Bytes held in memory until the work is done.
    package var heldByteCount = 0

    /// Saturates.
    package static func * (cost: WorkCost, count: Int) -> WorkCost {
        func times(_ number: Int) -> Int {
            let (product, overflow) = number.multipliedReportingOverflow(by: count)
            return overflow ? .max : product
        }
        return WorkCost(
            cpuMicroseconds: times(cost.cpuMicroseconds), storedByteCount: times(cost.storedByteCount),
            sentByteCount: times(cost.sentByteCount), heldByteCount: times(cost.heldByteCount))
    }
}

/// The kinds of work that senders cause.
package enum WorkKind: String, CaseIterable, Sendable {
    case openMessage = "open_message"
    case holdSegment = "hold_segment"
    case registration
    case query
    case answer
    case deriveTopicKey = "derive_topic_key"
    case request
    case notification
    case checkSignature = "check_signature"
    case subscription
    case onionRequest = "onion_request"
    case storageMessage = "storage_message"
    case connection

    /// The cost of one piece of work of typical size, on the machine of the benchmarks (`bench`): a release build, one core.
    package var cost: WorkCost {
        switch self {
        case .openMessage: WorkCost(cpuMicroseconds: 150)
        // The segment's own bytes are added.
        case .holdSegment: WorkCost(cpuMicroseconds: 5, heldByteCount: 1_024)
        case .registration: WorkCost(cpuMicroseconds: 550, storedByteCount: 1_024)
        case .query: WorkCost(cpuMicroseconds: 130)
        case .answer: WorkCost(cpuMicroseconds: 100, sentByteCount: 1_024)
        case .deriveTopicKey: WorkCost(cpuMicroseconds: 12_000, storedByteCount: 100, heldByteCount: 256)
        case .request: WorkCost(cpuMicroseconds: 200)
        case .notification: WorkCost(cpuMicroseconds: 190, storedByteCount: 512, heldByteCount: 1_024)
        case .checkSignature: WorkCost(cpuMicroseconds: 205)
        case .subscription: WorkCost(cpuMicroseconds: 400, storedByteCount: 512)
        case .onionRequest: WorkCost(cpuMicroseconds: 200)
        case .storageMessage: WorkCost(cpuMicroseconds: 60, heldByteCount: 2_048)
        case .connection: WorkCost(cpuMicroseconds: 300, heldByteCount: 65_536)
        }
    }
}
