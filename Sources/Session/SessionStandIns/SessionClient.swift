package import Core
package import SessionProtocol
package import WakuCrypto

/// A Session client with an account: subscribes and unsubscribes devices.
package struct SessionClient: Sendable {
    package enum Kind: Hashable, Sendable {
        /// A session id: 05 and the X25519 form of its Ed25519 key.
        case person
        /// 03 and the Ed25519 key.
        case group
    }

    package let account: AccountID
    private let key: Ed25519PrivateKey

    package init?(sodium: Sodium, kind: Kind = .person, key: Ed25519PrivateKey = .generate()) {
        let prefixed: [UInt8]? =
            switch kind {
            case .person: sodium.x25519Key(of: key.publicKey).map { [AccountID.sessionPrefix] + $0 }
            case .group: [3] + key.publicKey.bytes
            }
        guard let account = prefixed.flatMap({ AccountID($0) }) else { return nil }
        (self.account, self.key) = (account, key)
    }

    /// A device in a client's subscription.
    package struct Device: Sendable {
        package var service: PushService
        package var token: String
        package var encryptionKey: SymmetricKey
        package var namespaces: [Int16]
        package var wantsData: Bool

        package init(
            service: PushService = .firebase, token: String, encryptionKey: SymmetricKey = .random(), namespaces: [Int16] = [0],
            wantsData: Bool = true
        ) {
            (self.service, self.token, self.encryptionKey) = (service, token, encryptionKey)
            (self.namespaces, self.wantsData) = (namespaces, wantsData)
        }
    }

    /// A signed subscription.
    ///
    /// - Parameter signedAt: Unix seconds.
    package func subscription(of device: Device, at signedAt: Int64) -> SubscriptionForm {
        let text = SubscriptionForm.signedText(
            of: account, signedAt: signedAt, wantsData: device.wantsData, namespaces: device.namespaces)
        return SubscriptionForm(
            authority: authority(over: text, at: signedAt), namespaces: device.namespaces, wantsData: device.wantsData,
            device: SubscriberDevice(service: device.service, token: device.token), encryptionKey: device.encryptionKey)
    }

    /// The entry with which storage servers are asked to monitor the account for this device.
    package func monitorEntry(of device: Device, at signedAt: Int64) -> MonitorEntry {
        let form = subscription(of: device, at: signedAt)
        return MonitorEntry(form.authority, namespaces: form.namespaces, wantsData: form.wantsData)
    }

    private func authority(over text: [UInt8], at signedAt: Int64) -> SignedAuthority {
        SignedAuthority(
            account: account, sessionKey: account.isSessionID ? key.publicKey : nil, delegation: .none, signedAt: signedAt,
            signature: Confidential(key.signature(of: text)))
    }

    /// A signed unsubscription.
    ///
    /// - Parameter signedAt: Unix seconds.
    package func unsubscription(of device: Device, at signedAt: Int64) -> UnsubscriptionForm {
        UnsubscriptionForm(
            authority: authority(over: UnsubscriptionForm.signedText(of: account, signedAt: signedAt), at: signedAt),
            device: SubscriberDevice(service: device.service, token: device.token))
    }

    // MARK: Bodies

    /// The body of `POST /subscribe`.
    package func subscribeBody(for device: Device, at signedAt: Int64) -> [UInt8] {
        Array(Self.json(of: subscription(of: device, at: signedAt)).utf8)
    }

    /// The body of `POST /unsubscribe`.
    package func unsubscribeBody(for device: Device, at signedAt: Int64) -> [UInt8] {
        Array(Self.json(of: unsubscription(of: device, at: signedAt)).utf8)
    }

    package static func json(of form: SubscriptionForm) -> String {
        json(
            [
                ("namespaces", "[\(form.namespaces.map(String.init).joined(separator: ","))]"), ("data", "\(form.wantsData)"),
                ("enc_key", jsonText(form.encryptionKey.secret.withBytes { hexString($0) })),
            ], authority: form.authority, device: form.device)
    }

    package static func json(of form: UnsubscriptionForm) -> String { json([], authority: form.authority, device: form.device) }

    private static func json(_ fields: [(String, String)], authority: SignedAuthority, device: SubscriberDevice) -> String {
        var all = [("pubkey", jsonText(authority.account.hex))]
        if let key = authority.sessionKey { all.append(("session_ed25519", jsonText(hexString(key.bytes)))) }
        all += fields
        all += [
            ("sig_ts", "\(authority.signedAt)"), ("signature", jsonText(hexString(authority.signature.value))),
            ("service", jsonText(device.service.rawValue)), ("service_info", serviceInfo(device)),
        ]
        return "{\(all.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}"
    }

    private static func serviceInfo(_ device: SubscriberDevice) -> String {
        guard device.service == .webPush, let subscription = PushSubscription(json: Array(device.token.value.utf8)) else {
            return "{\"token\":\(jsonText(device.token.value))}"
        }
        let keys = subscription.keys
        let vapid = subscription.vapidKey.map { ",\"vapid\":\(jsonText(Base64URL.encode($0.bytes)))" } ?? ""
        return """
            {"endpoint":\(jsonText(subscription.endpoint)),"p256dh":\(jsonText(Base64URL.encode(keys.publicKey.bytes))),\
            "auth":\(jsonText(Base64URL.encode(keys.secret)))\(vapid)}
            """
    }
}
