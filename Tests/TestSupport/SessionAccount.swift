import Foundation
package import Core
package import SessionProtocol
import SessionStandIns
package import WakuCrypto

/// An account that subscribes devices, for tests: a session id, or a group.
package struct SessionAccount: Sendable {
    private let client: SessionClient
    package var id: AccountID { client.account }

    package static func sessionID() throws -> SessionAccount { try SessionAccount(.person) }
    package static func group() throws -> SessionAccount { try SessionAccount(.group) }

    private init(_ kind: SessionClient.Kind) throws {
        guard let client = SessionClient(sodium: try Sodium.load(), kind: kind) else { throw CryptoError.invalidKey }
        self.client = client
    }

    package func subscription(
        _ device: SessionDevice = SessionDevice(), namespaces: [Int16] = [0], wantsData: Bool = true, at signedAt: Int64 = .now
    ) -> SubscriptionForm {
        client.subscription(of: device.described(namespaces, wantsData), at: signedAt)
    }

    package func unsubscription(_ device: SessionDevice, at signedAt: Int64 = .now) -> UnsubscriptionForm {
        client.unsubscription(of: device.described([0], true), at: signedAt)
    }

    /// The body of a request.
    package func json(_ form: SubscriptionForm) -> String { SessionClient.json(of: form) }
    package func json(_ form: UnsubscriptionForm) -> String { SessionClient.json(of: form) }
}

package struct SessionDevice: Sendable {
    package let service: PushService
    package let token: String
    package let key = SymmetricKey.random()

    package init(_ service: PushService = .firebase, token: String? = nil) {
        self.service = service
        self.token = token ?? hexString(randomBytes(32))
    }

    fileprivate func described(_ namespaces: [Int16], _ wantsData: Bool) -> SessionClient.Device {
        SessionClient.Device(service: service, token: token, encryptionKey: key, namespaces: namespaces, wantsData: wantsData)
    }
}

extension Int64 {
    /// Unix seconds.
    package static var now: Int64 { Int64(Date().timeIntervalSince1970) }
    /// A day in seconds.
    package static var day: Int64 { 86_400 }
}
