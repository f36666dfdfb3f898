import CSimulation
import Core
import WakuCrypto

/// A device that registers at the node, with everything that its owner ever sent for it.
class Registrant: @unchecked Sendable {
    /// A registration or unregistration, as sent.
    struct Operation {
        let version: UInt64
        let isRegistration: Bool
        let requestID: [UInt8]
        let envelope: [UInt8]
        /// The highest version that was acknowledged before it was sent.
        let acknowledgedBefore: UInt64
        /// How often a copy reached a running node.
        var deliveryCount = 0
    }

    let name: String
    let identity: PrivateKey
    /// Changes come this much less often than those of others.
    let pace: Double
    /// The content topics for its registrations, any of which may be used.
    let topics: [String]
    /// By version, from 1.
    private(set) var operations: [Operation] = []
    /// When nodes answered with success, by the virtual clock, and the highest version answered by then.
    private var acknowledgements: [(time: Int64, version: UInt64)] = []

    /// The highest version that a node answered with success, 0 for none.
    var acknowledged: UInt64 { acknowledgements.last?.version ?? 0 }
    var acknowledgedAt: Int64 { acknowledgements.last?.time ?? 0 }

    init(name: String, identity: PrivateKey, pace: Double, topics: [String]) {
        (self.name, self.identity, self.pace, self.topics) = (name, identity, pace, topics)
    }

    /// Whether the answer to the last operation is outstanding.
    var isPending: Bool { UInt64(operations.count) > acknowledged }

    /// Whether a server must have a registration: it acknowledged one, and nothing was sent since.
    var isRegistered: Bool { !isPending && operations.last?.isRegistration == true }

    /// Whether a server may refuse a version though nothing failed.
    func mayBeRefused(_ version: UInt64) -> Bool { false }

    /// Appends an operation with the next version.
    final func makeOperation(isRegistration: Bool) -> Operation {
        let version = UInt64(operations.count + 1)
        let (requestID, envelope) = encode(version: version, isRegistration: isRegistration)
        let operation = Operation(
            version: version, isRegistration: isRegistration, requestID: requestID, envelope: envelope, acknowledgedBefore: acknowledged)
        operations.append(operation)
        return operation
    }

    /// - Returns: The envelope of an operation, and the id with which it is answered.
    func encode(version: UInt64, isRegistration: Bool) -> (requestID: [UInt8], envelope: [UInt8]) {
        preconditionFailure("subclasses encode")
    }

    final func operation(answeredBy requestID: [UInt8]) -> Operation? { operations.last { $0.requestID == requestID } }

    final func delivered(_ version: UInt64) { operations[Int(version) - 1].deliveryCount += 1 }

    final func acknowledge(_ version: UInt64) {
        acknowledgements.append((simulation_time(), max(acknowledged, version)))
    }

    /// The highest version that was answered with success until then, 0 for none.
    final func acknowledged(by time: Int64) -> UInt64 { acknowledgements.last { $0.time <= time }?.version ?? 0 }

    /// Whether a server may have this registration, or none (nil), when `lowest` was the last acknowledged version.
    final func mayHave(version: UInt64?, since lowest: UInt64) -> Bool {
        possible(since: lowest).contains { $0 == version }
    }

    /// The registrations of which a server may have one when `lowest` was the last acknowledged version; nil for none.
    final func possible(since lowest: UInt64) -> [UInt64?] {
        let sent = operations.dropFirst(Int(max(lowest, 1)) - 1).map { $0.isRegistration ? $0.version : nil }
        return lowest == 0 ? [nil] + sent : sent
    }
}
