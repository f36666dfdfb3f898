public import Core
public import StatusProtocol
public import WakuCrypto

/// A device registration with the owner's settings. The client adds the grant.
public struct DeviceRegistration: Sendable {
    /// The push service that issued ``deviceToken``.
    public var platform: Platform
    /// The device's identifier at the push service; not empty.
    public var deviceToken: DeviceToken
    /// The app's topic for APNs.
    public var apnTopic: String
    /// 1 to `InstallationID.maximumByteCount` bytes.
    public var installationID: InstallationID
    /// The secret that senders need to notify the device: a UUID.
    public var accessToken: AccessToken
    /// At least 1, and higher than that of the device's last registration or unregistration with the server.
    public var version: UInt64
    /// False registers the device without notifications.
    public var enabled = true
    /// The keys that get the access token. If empty and ``allowFromContactsOnly`` is false, everyone gets it.
    public var contacts: [PublicKey] = []
    /// Gives the access token to ``contacts`` only, even if there are none.
    public var allowFromContactsOnly = false
    /// Hashes of chats and of authors.
    public var blockedChatList: [[UInt8]] = []
    /// SHAKE-256 of the ids of chats without notifications for messages, 64 bytes each.
    public var mutedChatList: [[UInt8]] = []
    /// No notifications for mentions, in any chat.
    public var blockMentions = false
    /// SHAKE-256 of the ids of chats in which mentions cause notifications, 64 bytes each.
    public var allowedMentionsChatList: [[UInt8]] = []

    /// Creates a registration with notifications of all chats and from everyone. APNs requires a topic.
    public init(
        platform: Platform, deviceToken: DeviceToken, apnTopic: String = "", installationID: InstallationID, accessToken: AccessToken,
        version: UInt64
    ) {
        self.platform = platform
        self.deviceToken = deviceToken
        self.apnTopic = apnTopic
        self.installationID = installationID
        self.accessToken = accessToken
        self.version = version
    }
}

extension StatusPushClient {
    /// Registers a device of this client's identity.
    ///
    /// - Parameters:
    ///   - vapidKey: The VAPID public key of a server for Web Push; required for Web Push subscriptions, which other servers would lose. It
    ///     is added to a subscription that names none.
    ///   - timeout: How long to wait for the answer.
    /// - Returns: The server's error, or nil for success.
    public func register(
        _ device: DeviceRegistration, with server: PublicKey, vapidKey: String? = nil, timeout: Duration = .seconds(10)
    ) async throws(PushClientError) -> PushNotificationRegistrationResponse.ErrorType? {
        var deviceToken = device.deviceToken
        if device.platform == .webPush {
            guard let vapidKey else { throw .notForWebPush }
            deviceToken = try deviceToken.naming(vapidKey)
        }
        let cryptography = IdentityCryptography(identity: identity)
        var registration = PushNotificationRegistration()
        registration.tokenType = device.platform.tokenType
        registration.deviceToken = deviceToken
        registration.apnTopic = device.apnTopic
        registration.installationID = device.installationID
        registration.accessToken = device.accessToken
        registration.version = device.version
        registration.enabled = device.enabled
        registration.allowFromContactsOnly = device.allowFromContactsOnly
        // As for a profile: servers of the published dialect would give the token to everyone if the list were empty.
        let allowed = device.allowFromContactsOnly && device.contacts.isEmpty ? [publicKey] : device.contacts
        registration.allowedKeyList = allowed.map { cryptography.seal(device.accessToken, for: $0) }
        registration.blockedChatList = device.blockedChatList
        registration.mutedChatList = device.mutedChatList
        registration.blockMentions = device.blockMentions
        registration.allowedMentionsChatList = device.allowedMentionsChatList
        registration.grant = cryptography.makeGrant(for: server, accessToken: device.accessToken)
        return try await send(registration, to: server, timeout: timeout)
    }

    /// Ends a registration. `version` must be higher than the registered one.
    ///
    /// - Returns: The server's error, or nil for success.
    public func unregister(
        _ installationID: InstallationID, version: UInt64, with server: PublicKey, timeout: Duration = .seconds(10)
    ) async throws(PushClientError) -> PushNotificationRegistrationResponse.ErrorType? {
        var registration = PushNotificationRegistration()
        registration.installationID = installationID
        registration.version = version
        registration.unregister = true
        return try await send(registration, to: server, timeout: timeout)
    }

    private func send(
        _ registration: PushNotificationRegistration, to server: PublicKey, timeout: Duration
    ) async throws(PushClientError) -> PushNotificationRegistrationResponse.ErrorType? {
        let sealed = IdentityCryptography(identity: identity).seal(registration, for: server)
        let envelope = MetadataEnvelope.encode(.registration, payload: sealed, signedBy: identity)
        let requestID = Shake256.hash64(sealed)
        return try await ask(envelope.bytes, to: .personal(server), sender: identity, server: server, timeout: timeout) { answer in
            answer.registrationResponse.flatMap { $0.requestID == requestID ? $0 : nil }
        }.error
    }
}
