import NodeAPI
import Cluster
package import Delivery
import NodeMetrics
import Core
import Storage
import Synchronization

/// Limits that are too low to divide: what this node takes from them, others are told by the database's notifications. Nothing of it is stored.
extension ClusterNode {
    static let takesChannel = "limits"
    private static let pause = Duration.milliseconds(10)
    private static let pauseAfterFailure = Duration.seconds(1)

    /// - Parameters:
    ///   - number: of the protocol whose limits they are.
    ///   - takes: names that mean the same to all nodes, and how much was taken.
    package func tell(_ number: ProtocolNumber, taken takes: [(String, Int)]) {
        self.takes.withLock { waiting in
            for (name, cost) in takes { waiting.add(name, of: number, cost) }
        }
        takesWakeUp.signal()
    }

    /// Until cancelled.
    func tellTakes() async {
        for await _ in takesWakeUp {
            while true {
                let taken = takes.withLock { $0.take() }
                guard !taken.isEmpty else { break }
                let payloads = taken.payloads(from: first)
                let result = await onThread(messageThread) { [database] () throws(StoreError) in
                    try database.notify(Self.takesChannel, payloads)
                }
                if case .failure = result { takes.withLock { $0.putBack(taken) } }
                let pause = if case .failure = result { Self.pauseAfterFailure } else { Self.pause }
                guard (try? await Task.sleep(for: pause)) != nil else { return }
            }
        }
    }

    func takeLimits(_ payloads: [String]) {
        for payload in payloads {
            guard let take = TakesToTell.parse(payload), take.node != first else { continue }
            attached?.taken(take.number, take.name, take.cost)
            // After it counts: whoever sees the count may rely on that.
            counters.add(.clusterTake, take.cost)
        }
    }
}

/// Takes that wait to be told, added up: of equal notifications in a transaction PostgreSQL sends one.
struct TakesToTell {
    struct Name: Hashable {
        let number: ProtocolNumber
        let name: String
    }

    /// Others are not told of more at once: whoever takes so much has other limits.
    static let limit = 10_000

    private(set) var costs: [Name: Int] = [:]

    var isEmpty: Bool { costs.isEmpty }

    mutating func add(_ name: String, of number: ProtocolNumber, _ cost: Int) {
        let key = Name(number: number, name: name)
        guard costs[key] != nil || costs.count < Self.limit else { return }
        costs[key] = min(costs[key, default: 0] + cost, Int(Int32.max))
    }

    mutating func take() -> TakesToTell {
        defer { costs = [:] }
        return self
    }

    mutating func putBack(_ others: TakesToTell) {
        for (key, cost) in others.costs { add(key.name, of: key.number, cost) }
    }

    /// `node number cost name`
    func payloads(from node: NodeID) -> [String] {
        costs.map { key, cost in "\(node) \(key.number.rawValue) \(cost) \(key.name)" }
    }

    /// nil for what is none.
    static func parse(_ payload: String) -> (node: NodeID, number: ProtocolNumber, name: String, cost: Int)? {
        let parts = payload.split(separator: " ", maxSplits: 3)
        guard parts.count == 4, let node = UInt64(parts[0], radix: 16), let number = Int64(parts[1]), let cost = Int(parts[2]), cost > 0
        else { return nil }
        return (NodeID(rawValue: node), ProtocolNumber(rawValue: number), String(parts[3]), cost)
    }
}
