import Core
import StatusProtocol
import TestSupport
import Waku
import WakuCrypto

/// A device with a registration of its own.
final class Device: Registrant, @unchecked Sendable {
    let number: Int
    let client: TestClient

    init(number: Int, client: TestClient, pace: Double) {
        self.number = number
        self.client = client
        super.init(
            name: "device \(number)", identity: client.identity, pace: pace,
            topics: [StatusTopics.personal(client.server), StatusTopics.partitioned(client.server)])
    }

    func token(ofVersion version: UInt64) -> String { "device-\(number)-version-\(version)" }

    /// The version of a token; nil for a token of another device.
    func version(ofToken token: String) -> UInt64? {
        let prefix = self.token(ofVersion: 0).dropLast()
        return token.hasPrefix(prefix) ? UInt64(token.dropFirst(prefix.count)) : nil
    }

    override func encode(version: UInt64, isRegistration: Bool) -> (requestID: [UInt8], envelope: [UInt8]) {
        let registration =
            isRegistration
            ? client.registration(version: version) { $0.deviceToken = DeviceToken(self.token(ofVersion: version)) }
            : client.unregistration(version: version)
        let sealed = client.sealed(registration.encoded())
        return (Shake256.hash64(sealed), MetadataEnvelope.encode(.registration, payload: sealed, signedBy: client.identity).bytes)
    }
}
