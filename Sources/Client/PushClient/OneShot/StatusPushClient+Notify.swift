import Core
public import StatusProtocol
public import WakuCrypto

/// A device that may be notified: its registrant's grant for the server is valid.
public struct ReachableDevice: Sendable {
    /// The device, for `PushNotification.installationID`.
    public let installationID: InstallationID
    /// The version of the registration.
    public let version: UInt64
    /// nil when the registrant gave the token to other clients only.
    public let accessToken: AccessToken?
}

extension StatusPushClient {
    /// Queries the servers for a registrant's devices. Any server may answer; only the answer of `server` is accepted.
    ///
    /// - Returns: The devices with valid grants. A device whose token is for other clients only can't be checked, and is returned without a token.
    /// - Throws: ``PushClientError`` with `noAnswer` also when nothing is registered, since servers do not answer then.
    public func query(
        _ registrant: PublicKey, at server: PublicKey, timeout: Duration = .seconds(3)
    ) async throws(PushClientError) -> [ReachableDevice] {
        let keyHash = KeyHash(of: registrant)
        let ephemeral = PrivateKey.generate()
        let query = PushNotificationQuery(publicKeys: [keyHash]).encoded()
        let envelope = MetadataEnvelope.encode(.query, payload: query, signedBy: ephemeral)
        let response = try await ask(
            envelope.bytes, to: .topic(StatusTopics.query(keyHash)), sender: ephemeral, server: server, timeout: timeout
        ) { answer in
            answer.queryResponse.flatMap { $0.messageID == envelope.id ? $0 : nil }
        }
        return response.info.compactMap { device(in: $0, of: registrant, at: server) }
    }

    private func device(in info: PushNotificationQueryInfo, of registrant: PublicKey, at server: PublicKey) -> ReachableDevice? {
        guard info.publicKey == KeyHash(of: registrant).bytes else { return nil }
        let token =
            info.accessToken.isEmpty
            ? IdentityCryptography(identity: identity).accessToken(in: info.allowedKeyList, of: registrant) : info.accessToken
        if let token, !Grant.isValid(info.grant, client: registrant, server: server, accessToken: token) { return nil }
        return ReachableDevice(installationID: info.installationID, version: info.version, accessToken: token)
    }

    /// The number of devices of a request above which servers drop it.
    private static let serverDeviceLimit = 1000

    /// Requests notifications about a message. The same `messageID` notifies a device once, however often it is requested. More than 1,000 devices
    /// are divided into several requests, one after the other.
    ///
    /// - Parameter timeout: How long to wait for all answers.
    /// - Throws: ``PushClientError``, with `invalid` for an id or content that servers do not accept.
    public func notify(
        _ notifications: [PushNotification], messageID: [UInt8], at server: PublicKey, timeout: Duration = .seconds(3)
    ) async throws(PushClientError) -> [PushNotificationReport] {
        guard (1...OutgoingNotification.messageIDByteLimit).contains(messageID.count) else { throw .unusableMessageID }
        guard !notifications.contains(where: \.isTooLarge) else { throw .tooLong }
        let end = ContinuousClock.now + timeout
        var reports: [PushNotificationReport] = []
        for chunk in notifications.chunks(of: Self.serverDeviceLimit) {
            reports += try await request(Array(chunk), messageID, at: server, timeout: max(end - .now, .zero))
        }
        return reports
    }

    private func request(
        _ notifications: [PushNotification], _ messageID: [UInt8], at server: PublicKey, timeout: Duration
    ) async throws(PushClientError) -> [PushNotificationReport] {
        let ephemeral = PrivateKey.generate()
        let request = PushNotificationRequest(requests: notifications, messageID: messageID).encoded()
        let envelope = MetadataEnvelope.encode(.request, payload: request, signedBy: ephemeral)
        return try await ask(envelope.bytes, to: .partitioned(server), sender: ephemeral, server: server, timeout: timeout) { answer in
            answer.response.flatMap { $0.messageID == messageID ? $0.reports : nil }
        }
    }
}
