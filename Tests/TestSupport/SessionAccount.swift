import Foundation
package import PushTypes
package import SessionProtocol
import Sodium
package import WakuCrypto

/// An account that subscribes devices: a session id, or a group.
package struct SessionAccount: Sendable {
    package let key = Ed25519PrivateKey.generate()
    package let id: AccountID
    package let sessionKey: Ed25519PublicKey?

    package static func sessionID() throws -> SessionAccount { try SessionAccount(isSession: true) }
    package static func group() throws -> SessionAccount { try SessionAccount(isSession: false) }

    private init(isSession: Bool) throws {
        let sodium = try Sodium.load()
        let accountKey = isSession ? sodium.x25519Key(of: key.publicKey) ?? [] : key.publicKey.bytes
        guard let id = AccountID([isSession ? 5 : 3] + accountKey) else { throw CryptoError.invalidKey }
        self.id = id
        sessionKey = isSession ? key.publicKey : nil
    }

    package func subscription(
        _ device: SessionDevice = SessionDevice(), namespaces: [Int16] = [0], wantsData: Bool = true, at signedAt: Int64 = .now
    ) -> SubscriptionForm {
        let text = SubscriptionForm.signedText(of: id, signedAt: signedAt, wantsData: wantsData, namespaces: namespaces)
        return SubscriptionForm(
            authority: authority(text, at: signedAt), namespaces: namespaces, wantsData: wantsData,
            device: SubscriberDevice(service: device.service, token: device.token), encryptionKey: device.key)
    }

    package func unsubscription(_ device: SessionDevice, at signedAt: Int64 = .now) -> UnsubscriptionForm {
        UnsubscriptionForm(
            authority: authority(UnsubscriptionForm.signedText(of: id, signedAt: signedAt), at: signedAt),
            device: SubscriberDevice(service: device.service, token: device.token))
    }

    private func authority(_ text: [UInt8], at signedAt: Int64) -> SignedAuthority {
        SignedAuthority(
            account: id, sessionKey: sessionKey, delegation: .none, signedAt: signedAt,
            signature: Confidential(key.signature(of: text)))
    }

    /// The body of a request.
    package func json(_ form: SubscriptionForm) -> String {
        object(
            fields(form.authority, form.device) + [
                #""namespaces":[\#(form.namespaces.map(String.init).joined(separator: ","))]"#, #""data":\#(form.wantsData)"#,
                #""enc_key":"\#(form.encryptionKey.secret.withBytes { hexString($0) })""#,
            ])
    }

    package func json(_ form: UnsubscriptionForm) -> String { object(fields(form.authority, form.device)) }

    private func object(_ members: [String]) -> String { "{" + members.joined(separator: ",") + "}" }

    private func fields(_ authority: SignedAuthority, _ device: SubscriberDevice) -> [String] {
        [
            #""pubkey":"\#(id.hex)""#, #""sig_ts":\#(authority.signedAt)"#,
            #""signature":"\#(hexString(authority.signature.value))""#, #""service":"\#(device.service.rawValue)""#,
            #""service_info":{"token":"\#(device.token.value)"}"#,
        ] + (authority.sessionKey.map { [#""session_ed25519":"\#(hexString($0.bytes))""#] } ?? [])
    }
}

package struct SessionDevice: Sendable {
    package let service: PushService
    package let token: String
    package let key = SymmetricKey.random()

    package init(_ service: PushService = .firebase, token: String? = nil) {
        self.service = service
        self.token = token ?? hexString(randomBytes(32))
    }
}

extension Int64 {
    /// Unix seconds.
    package static var now: Int64 { Int64(Date().timeIntervalSince1970) }
    /// In seconds.
    package static var day: Int64 { 86_400 }
}
