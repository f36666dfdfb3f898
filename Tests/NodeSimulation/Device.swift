import Core
import StatusProtocol
import TestSupport
import Waku
import WakuCrypto

/// A device with everything that its owner ever sent for it.
final class Device {
    /// A registration or unregistration, as sent.
    struct Operation {
        let version: UInt64
        let isRegistration: Bool
        let requestID: [UInt8]
        let envelope: [UInt8]
        /// How often a copy reached a running node.
        var deliveryCount = 0
    }

    let number: Int
    let client: TestClient
    /// Changes come this much less often than those of others.
    let pace: Double
    /// By version, from 1.
    private(set) var operations: [Operation] = []
    /// The highest version that a node answered with success, 0 for none.
    private(set) var acknowledged: UInt64 = 0

    init(number: Int, client: TestClient, pace: Double) {
        self.pace = pace
        self.number = number
        self.client = client
    }

    var name: String { "device \(number)" }

    /// Whether the answer to the last operation is outstanding.
    var isPending: Bool { UInt64(operations.count) > acknowledged }

    /// Whether a server must have a registration: it acknowledged one, and nothing was sent since.
    var isRegistered: Bool { !isPending && operations.last?.isRegistration == true }

    func token(ofVersion version: UInt64) -> String { "device-\(number)-version-\(version)" }

    /// The version of a token; nil for a token of another device.
    func version(ofToken token: String) -> UInt64? {
        let prefix = self.token(ofVersion: 0).dropLast()
        return token.hasPrefix(prefix) ? UInt64(token.dropFirst(prefix.count)) : nil
    }

    /// Appends an operation with the next version.
    func makeOperation(isRegistration: Bool) -> Operation {
        let version = UInt64(operations.count + 1)
        let registration =
            isRegistration
            ? client.registration(version: version) { $0.deviceToken = DeviceToken(self.token(ofVersion: version)) }
            : client.unregistration(version: version)
        let sealed = client.sealed(registration.encoded())
        let operation = Operation(
            version: version, isRegistration: isRegistration, requestID: Shake256.hash64(sealed),
            envelope: MetadataEnvelope.encode(.registration, payload: sealed, signedBy: client.identity).bytes)
        operations.append(operation)
        return operation
    }

    func operation(answeredBy requestID: [UInt8]) -> Operation? { operations.last { $0.requestID == requestID } }

    func delivered(_ version: UInt64) { operations[Int(version) - 1].deliveryCount += 1 }

    func acknowledge(_ version: UInt64) { acknowledged = max(acknowledged, version) }

    /// Whether a server may have this registration, or none (nil), when `lowest` was the last acknowledged version.
    func mayHave(version: UInt64?, since lowest: UInt64) -> Bool {
        if let version {
            return version >= max(lowest, 1) && version <= UInt64(operations.count) && operations[Int(version) - 1].isRegistration
        }
        return lowest == 0 || operations.contains { $0.version >= lowest && !$0.isRegistration }
    }
}
