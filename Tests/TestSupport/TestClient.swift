import Core
package import StatusProtocol
import Waku
package import WakuCrypto

/// A registrant with one device, and its messages to a server.
package struct TestClient: Sendable {
    package let identity: PrivateKey
    package let server: PublicKey
    package let installationID: InstallationID
    package let accessToken: AccessToken

    package init(
        of server: PublicKey, identity: PrivateKey = .generate(), installationID: InstallationID = InstallationID("installation-1"),
        accessToken: AccessToken = AccessToken("9f1b0c6e-52d3-4b7a-8a57-0d2c6d1e4f3a")
    ) {
        self.identity = identity
        self.server = server
        self.installationID = installationID
        self.accessToken = accessToken
    }

    package var keyHash: KeyHash { KeyHash(of: identity.publicKey) }
    package var key: RegistrationKey { RegistrationKey(keyHash: keyHash, installationID: installationID) }

    /// A valid registration, modified by `change`.
    package func registration(
        version: UInt64 = 1, _ change: (inout PushNotificationRegistration) -> Void = { _ in }
    ) -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = UInt32(Platform.apn.rawValue)
        registration.deviceToken = DeviceToken("a-device-token")
        registration.installationID = installationID
        registration.accessToken = accessToken
        registration.enabled = true
        registration.version = version
        registration.grant = Grant.make(client: identity, server: server, accessToken: accessToken)
        registration.apnTopic = "im.status.ethereum"
        change(&registration)
        return registration
    }

    /// The form expected in ``PushNotificationRegistration/unregister``: only a version.
    package func unregistration(version: UInt64) -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.installationID = installationID
        registration.version = version
        registration.unregister = true
        return registration
    }

    /// Encrypts an encoded message for the server, nonce first.
    package func sealed(_ plain: [UInt8]) -> [UInt8] {
        AESGCM.seal(plain, key: identity.sharedKey(with: server), layout: .nonceFirst)
    }

    /// The signed envelope of a registration.
    package func envelope(_ registration: PushNotificationRegistration) -> [UInt8] {
        MetadataEnvelope.encode(.registration, payload: sealed(registration.encoded()), signedBy: identity).bytes
    }

    /// An entry of a request that notifies this device.
    package func notification(
        _ kind: NotificationKind = .message, _ change: (inout PushNotification) -> Void = { _ in }
    ) -> PushNotification {
        var notification = PushNotification(
            accessToken: accessToken, chatID: Shake256.hash64(Array("a chat".utf8)), publicKey: keyHash.bytes,
            installationID: installationID,
            kind: kind, author: Shake256.hash64(Array("an author".utf8)))
        change(&notification)
        return notification
    }
}

/// Creates Waku payloads around an envelope, signed and encrypted as clients do.
package enum TestPayload {
    package static func sealed(_ envelope: [UInt8], signedBy signer: PrivateKey, to recipient: PublicKey) -> [UInt8] {
        ECIES.seal(PayloadFrame.encode(envelope, signedBy: signer), to: recipient)
    }

    package static func sealed(_ envelope: [UInt8], signedBy signer: PrivateKey, topic: String) -> [UInt8] {
        AESGCM.seal(PayloadFrame.encode(envelope, signedBy: signer), key: KeyDerivation.topicKey(topic), layout: .nonceLast)
    }
}
