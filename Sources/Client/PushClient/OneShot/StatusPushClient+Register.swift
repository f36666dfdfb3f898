import Core
public import StatusProtocol
public import WakuCrypto

extension StatusPushClient {
    /// Registers a device of this client's identity with one server, and remembers nothing.
    ///
    /// - Parameters:
    ///   - installationID: 1 to `InstallationID.maximumByteCount` bytes.
    ///   - accessToken: The secret that senders need to notify the device: a UUID.
    ///   - version: At least 1, and higher than that of the device's last registration or unregistration with the server.
    ///   - vapidKey: The VAPID public key of a server for Web Push; required for Web Push subscriptions, which other servers would lose. It
    ///     is added to a subscription that names none.
    ///   - timeout: How long to wait for the answer.
    /// - Returns: The server's error, or nil for success.
    public func register(
        _ profile: DeviceProfile, as installationID: InstallationID, accessToken: AccessToken, version: UInt64, with server: PublicKey,
        vapidKey: String? = nil, timeout: Duration = .seconds(10)
    ) async throws(PushClientError) -> PushNotificationRegistrationResponse.ErrorType? {
        var profile = profile
        if profile.platform == .webPush {
            guard let vapidKey else { throw .notForWebPush }
            profile.deviceToken = try profile.deviceToken.naming(vapidKey)
        }
        let cryptography = IdentityCryptography(identity: identity)
        var registration = profile.registration(
            with: server, accessToken: accessToken, allowedKeyList: profile.allowedKeyList(accessToken, by: cryptography), by: cryptography)
        registration.installationID = installationID
        registration.version = version
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
