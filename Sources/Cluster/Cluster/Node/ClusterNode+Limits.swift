package import Delivery
import Core
import Storage
import Synchronization

/// Rate limits that are too low to divide between nodes: each node counts the usage of all nodes, which notify each other through the database.
/// Nothing is stored.
extension ClusterNode {
    static let limitsChannel = "limits"
    private static let pause = Duration.milliseconds(10)
    private static let pauseAfterFailure = Duration.seconds(1)

    /// - Parameter usage: names of limits, the same on all nodes, each with the cost that was charged.
    package func publishUsage(_ usage: [(String, Int)], of number: ProtocolNumber) {
        unpublishedUsage.withLock { waiting in
            for (name, cost) in usage { waiting.add(name, of: number, cost) }
        }
        limitUsageWakeUp.signal()
    }

    /// Sends the usage of shared limits to the other nodes. Runs until cancelled.
    func publishLimitUsage() async {
        for await _ in limitUsageWakeUp {
            while true {
                let taken = unpublishedUsage.withLock { $0.take() }
                guard !taken.isEmpty else { break }
                let payloads = taken.payloads(from: first)
                let result = await onThread(messageThread) { database throws(StoreError) in
                    try database.notify(Self.limitsChannel, payloads)
                }
                if case .failure = result { unpublishedUsage.withLock { $0.putBack(taken) } }
                let pause = if case .failure = result { Self.pauseAfterFailure } else { Self.pause }
                guard (try? await Task.sleep(for: pause)) != nil else { return }
            }
        }
    }
}

/// Usage of shared limits that waits to be sent to other nodes, summed by limit: PostgreSQL sends equal notifications of a transaction only once.
struct UnpublishedLimitUsage {
    struct Name: Hashable {
        let number: ProtocolNumber
        let name: String
    }

    /// Maximum number of limits that wait to be sent; usage of further ones is not sent. Other limits apply at such rates.
    static let limit = 10_000

    private(set) var costs: [Name: Int] = [:]

    var isEmpty: Bool { costs.isEmpty }

    mutating func add(_ name: String, of number: ProtocolNumber, _ cost: Int) {
        let key = Name(number: number, name: name)
        guard costs[key] != nil || costs.count < Self.limit else { return }
        costs[key] = min(costs[key, default: 0] + cost, Int(Int32.max))
    }

    mutating func take() -> UnpublishedLimitUsage {
        defer { costs = [:] }
        return self
    }

    mutating func putBack(_ others: UnpublishedLimitUsage) {
        for (key, cost) in others.costs { add(key.name, of: key.number, cost) }
    }

    /// `node number cost name`
    func payloads(from node: NodeID) -> [String] {
        costs.map { key, cost in "\(node) \(key.number.rawValue) \(cost) \(key.name)" }
    }

    /// Returns nil unless the payload has the format of ``payloads(from:)``.
    static func parse(_ payload: String) -> (node: NodeID, number: ProtocolNumber, name: String, cost: Int)? {
        let parts = payload.split(separator: " ", maxSplits: 3)
        guard parts.count == 4, let node = UInt64(parts[0], radix: 16), let number = Int64(parts[1]), let cost = Int(parts[2]), cost > 0
        else { return nil }
        return (NodeID(rawValue: node), ProtocolNumber(rawValue: number), String(parts[3]), cost)
    }
}
