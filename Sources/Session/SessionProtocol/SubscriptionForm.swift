package import Core
package import WakuCrypto

/// The device of a subscription; for Web Push its token is the JSON of a `PushSubscription`, or, to end its subscription, the endpoint alone. Its token
/// prints as `<redacted>`.
package struct SubscriberDevice: Hashable, Sendable {
    package let service: PushService
    package let token: Confidential<String>
    /// The Web Push subscription in the token; nil for other services, and for an endpoint alone.
    package let subscription: PushSubscription?

    package init(service: PushService, token: String) {
        self.service = service
        self.token = Confidential(token)
        subscription = service == .webPush ? PushSubscription(json: Array(token.utf8)) : nil
    }

    init(_ subscription: PushSubscription) {
        service = .webPush
        token = Confidential(String(decoding: subscription.json, as: UTF8.self))
        self.subscription = subscription
    }

    /// The text by which the device is known: its token; for Web Push the endpoint of its subscription, whose keys may change.
    package var identifier: String {
        subscription?.endpoint ?? token.value
    }

    /// The push service of a Web Push device; nil for other services.
    package var origin: WebPushOrigin? {
        service == .webPush ? subscription?.origin ?? WebPushOrigin(endpoint: token.value) : nil
    }

    /// The VAPID key that a Web Push subscription was made for; nil if it names none, and for other services.
    package var webPushKey: P256PublicKey? { subscription?.vapidKey }
}

/// The account of a request, and its signature.
package struct SignedAuthority: Hashable, Sendable {
    package let account: AccountID
    /// The Ed25519 key of a session id; nil for other accounts.
    package let sessionKey: Ed25519PublicKey?
    package let delegation: Delegation
    /// `sig_ts`, Unix seconds, from 1 to 2^53.
    package let signedAt: Int64
    /// The signature of the request's text, 64 bytes.
    package let signature: Confidential<[UInt8]>

    package init(
        account: AccountID, sessionKey: Ed25519PublicKey?, delegation: Delegation, signedAt: Int64, signature: Confidential<[UInt8]>
    ) {
        self.account = account
        self.sessionKey = sessionKey
        self.delegation = delegation
        self.signedAt = signedAt
        self.signature = signature
    }
}

/// A signed request of a client.
package protocol SignedForm: Sendable {
    var authority: SignedAuthority { get }
    var device: SubscriberDevice { get }
    var signedText: [UInt8] { get }
}

/// The body of `POST /subscribe` with every field in range. Signature and time are not checked yet.
package struct SubscriptionForm: SignedForm {
    package let authority: SignedAuthority
    /// Strictly ascending, at least one.
    package let namespaces: [Int16]
    package let wantsData: Bool
    package let device: SubscriberDevice
    /// The key that encrypts notifications for the device, 32 bytes.
    package let encryptionKey: SymmetricKey

    package init(
        authority: SignedAuthority, namespaces: [Int16], wantsData: Bool, device: SubscriberDevice, encryptionKey: SymmetricKey
    ) {
        self.authority = authority
        self.namespaces = namespaces
        self.wantsData = wantsData
        self.device = device
        self.encryptionKey = encryptionKey
    }

    /// Checks the shape of every field, then the service.
    ///
    /// - Throws: ``RequestError/Code/badInput``, ``RequestError/Code/serviceNotAvailable``
    package init(_ value: JSONValue) throws(RequestError) {
        let fields = try RequestFields(value)
        authority = try fields.authority()
        namespaces = try fields.namespaces()
        wantsData = try fields.wantsData()
        encryptionKey = try fields.value("enc_key", count: SymmetricKey.byteCount) { SymmetricKey(bytes: $0) }
        device = try fields.device()
    }

    /// ASCII: `MONITOR` ‖ hex(pubkey) ‖ sig_ts ‖ 1 or 0 ‖ namespaces joined by commas.
    package var signedText: [UInt8] {
        Self.signedText(of: authority.account, signedAt: authority.signedAt, wantsData: wantsData, namespaces: namespaces)
    }

    package static func signedText(of account: AccountID, signedAt: Int64, wantsData: Bool, namespaces: [Int16]) -> [UInt8] {
        let names = namespaces.map(String.init).joined(separator: ",")
        return Array("MONITOR\(account.hex)\(signedAt)\(wantsData ? 1 : 0)\(names)".utf8)
    }
}

/// The body of `POST /unsubscribe` with every field in range. Signature and time are not checked yet.
package struct UnsubscriptionForm: SignedForm {
    package let authority: SignedAuthority
    package let device: SubscriberDevice

    package init(authority: SignedAuthority, device: SubscriberDevice) {
        self.authority = authority
        self.device = device
    }

    /// Checks the shape of every field, then the service.
    ///
    /// - Throws: ``RequestError/Code/badInput``, ``RequestError/Code/serviceNotAvailable``
    package init(_ value: JSONValue) throws(RequestError) {
        let fields = try RequestFields(value)
        authority = try fields.authority()
        device = try fields.endedDevice()
    }

    /// ASCII: `UNSUBSCRIBE` ‖ hex(pubkey) ‖ sig_ts.
    package var signedText: [UInt8] { Self.signedText(of: authority.account, signedAt: authority.signedAt) }

    package static func signedText(of account: AccountID, signedAt: Int64) -> [UInt8] {
        Array("UNSUBSCRIBE\(account.hex)\(signedAt)".utf8)
    }
}
