import Core
package import StatusProtocol
package import Waku
package import WakuCrypto

/// A version 0.1 account with a record of devices, and its messages to a server.
package struct V01Account: Sendable {
    package let identity: PrivateKey
    package let server: PublicKey
    package var accessToken: AccessToken
    package var devices: [V01.Device]

    package init(
        of server: PublicKey, identity: PrivateKey = .generate(), accessToken: AccessToken = V01Account.newToken(),
        devices: [V01.Device] = [V01Account.device()]
    ) {
        self.identity = identity
        self.server = server
        self.accessToken = accessToken
        self.devices = devices
    }

    package var keyHash: V01.KeyHash { V01.KeyHash(of: identity.publicKey) }

    /// A random UUID.
    package static func newToken() -> AccessToken {
        let digits = Array(hexString(randomBytes(16)))
        let parts = [digits[..<8], digits[8..<12], digits[12..<16], digits[16..<20], digits[20...]]
        return AccessToken(parts.map { String($0) }.joined(separator: "-"))
    }

    package static func device(
        _ installation: String = "phone", token: String = "a-device-token", tokenType: UInt32 = 1, isEnabled: Bool = true,
        allowed: [[UInt8]] = [], blocked: [[UInt8]] = []
    ) -> V01.Device {
        V01.Device(
            tokenType: tokenType, token: DeviceToken(token), installationID: InstallationID(installation),
            filters: V01.FilterSettings(isEnabled: isEnabled, allowedKeyList: allowed, blockedChatList: blocked))
    }

    package func preferences(
        version: UInt64 = 1, _ change: (inout V01.Preferences) -> Void = { _ in }
    ) -> V01.Preferences {
        var preferences = V01.Preferences(devices: devices, version: version, accessToken: accessToken)
        change(&preferences)
        return preferences
    }

    package func register(_ preferences: V01.Preferences) -> V01.Register {
        V01.Register(preferences, for: server, signedBy: identity)
    }

    package func register(version: UInt64) -> V01.Register { register(preferences(version: version)) }

    package func unregister(version: UInt64) -> V01.Register {
        register(V01.Preferences(version: version, unregister: true, accessToken: AccessToken("")))
    }

    /// A message on the server's topic, signed by the account.
    package func message(_ register: V01.Register) -> WakuMessage {
        Self.message(.register, register.encoded(), to: server, signedBy: identity)
    }

    package func entry(chat: [UInt8] = V01.chatHash("a chat")) -> V01.PushNotification {
        V01.PushNotification(accessToken: accessToken, chatID: chat)
    }

    /// A message on the server's topic; AMM and Waku payload are signed by the same key.
    package static func message(
        _ type: V01.MessageType, _ payload: [UInt8], to server: PublicKey, signedBy key: PrivateKey
    ) -> WakuMessage {
        let envelope = V01.Envelope.encode(type, payload: payload, signedBy: key)
        return WakuMessage(
            payload: ECIES.seal(PayloadFrame.encode(envelope, signedBy: key), to: server),
            contentTopic: ContentTopic(TopicTag(of: V01.serverTopic(server))), timestamp: .now())
    }
}
