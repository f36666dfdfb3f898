package import Core
package import StatusProtocol
package import WakuCrypto

/// Decides on registrations, `PROTOCOL.md` section 4.
///
/// In two parts: ``claim(in:knownVersion:isStored:)`` does the steps that do not need stored data, on any thread;
/// ``decide(_:storedVersion:proved:registered:)`` compares with stored data, sequentially. Errors still have the order of the specification: a claim
/// carries an error that takes effect only after the version check.
package struct RegistrationRules: Sendable {
    private let identity: PrivateKey
    private let server: ServerMark?
    private let isIdempotent: Bool
    private let serves: @Sendable (Platform, _ apnTopic: String) -> Bool
    private let webPushKeys: [P256PublicKey]
    private let isWebPushChanging: @Sendable () -> Bool
    private let isWebPushUnknown: @Sendable () -> Bool
    private let clients: RecentClients

    /// - Parameters:
    ///   - identity: the identity to which registrations are sent.
    ///   - isIdempotent: whether a repeated, identical registration succeeds instead of VERSION_MISMATCH.
    ///   - webPushKeys: the VAPID keys of a node that posts to Web Push services; empty for others.
    ///   - isWebPushChanging: whether other nodes of the cluster have other VAPID keys at present: another node may accept what this one refuses.
    ///   - isWebPushUnknown: whether a node of the cluster does not know Web Push, and would post such a device to gorush.
    ///   - clients: of this identity alone.
    ///   - serves: whether there is a gorush endpoint for an app.
    package init(
        identity: PrivateKey, server: ServerMark? = nil, isIdempotent: Bool = false, webPushKeys: [P256PublicKey] = [],
        isWebPushChanging: @escaping @Sendable () -> Bool = { false }, isWebPushUnknown: @escaping @Sendable () -> Bool = { false },
        clients: RecentClients = RecentClients(),
        serves: @escaping @Sendable (Platform, _ apnTopic: String) -> Bool = { _, _ in true }
    ) {
        self.identity = identity
        self.server = server
        self.isIdempotent = isIdempotent
        self.webPushKeys = webPushKeys
        self.isWebPushChanging = isWebPushChanging
        self.isWebPushUnknown = isWebPushUnknown
        self.clients = clients
        self.serves = serves
    }

    /// Decrypts and validates a registration. Returns nil if it cannot be decrypted: the message is then dropped.
    ///
    /// - Parameter knownVersion: a version that is or was stored for a key. A registration that is not newer is refused regardless of its
    ///   content while that version is stored, so its grant is not checked here.
    /// - Parameter isStored: whether a registrant seems to have a stored registration. Its grant is mostly the claim's, and was proved before: the
    ///   claim's is left to the decision then.
    package func claim(
        in envelope: MetadataEnvelope, knownVersion: (RegistrationKey) -> UInt64? = { _ in nil },
        isStored: (KeyHash) -> Bool = { _ in false }
    ) -> RegistrationClaim? {
        let client = clients.client(envelope.sender)
        let key = client?.key ?? identity.sharedKey(with: envelope.sender)
        guard let plain = try? AESGCM.open(envelope.payload, key: key, layout: .nonceFirst) else { return nil }
        var grant = client?.grant
        let intent = intent(of: plain, from: envelope.sender, knownVersion, isStored, &grant)
        clients.note(RecentClients.Client(key: key, grant: grant), of: envelope.sender)
        return RegistrationClaim(sender: envelope.sender, requestID: Shake256.hash64(envelope.payload), intent: intent)
    }

    private func intent(
        of plain: [UInt8], from sender: PublicKey, _ knownVersion: (RegistrationKey) -> UInt64?, _ isStored: (KeyHash) -> Bool,
        _ grant: inout Grant.Proof?
    ) -> RegistrationClaim.Intent {
        guard let registration = try? PushNotificationRegistration(parsing: plain),
            (1...InstallationID.maximumByteCount).contains(registration.installationID.bytes.count), registration.version > 0
        else { return .malformed }
        let key = RegistrationKey(keyHash: KeyHash(of: sender), installationID: registration.installationID, server: server)
        if registration.unregister { return .unregister(key, version: registration.version) }
        let check: RegistrationClaim.ContentCheck
        if registration.version <= knownVersion(key) ?? 0 {
            check = .left
        } else if grant == nil, isStored(key.keyHash), flaw(in: registration, isGranted: { true }) == nil {
            check = .passedButGrant
        } else {
            check = flaw(in: registration, from: sender, &grant).map { .flawed($0) } ?? .passed
        }
        return .register(key, registration, bytes: plain, check: check)
    }

    /// - Parameter known: a proven grant; replaced by that of the registration if it is another valid one.
    private func flaw(
        in registration: PushNotificationRegistration, from sender: PublicKey, _ known: inout Grant.Proof?
    ) -> PushNotificationRegistrationResponse.ErrorType? {
        flaw(in: registration) {
            let proof = Grant.proof(
                of: registration.grant, client: sender, server: identity.publicKey, accessToken: registration.accessToken, known: known)
            known = proof ?? known
            return proof != nil
        }
    }

    private func flaw(
        in registration: PushNotificationRegistration, isGranted: () -> Bool
    ) -> PushNotificationRegistrationResponse.ErrorType? {
        guard let platform = registration.platform, platform != .webPush || !webPushKeys.isEmpty else {
            return registration.platform == .webPush && isWebPushChanging() ? .internalError : .unsupportedTokenType
        }
        guard !registration.deviceToken.isEmpty, registration.accessToken.isUUID, platform != .apn || !registration.apnTopic.isEmpty,
            isGranted()
        else { return .malformedMessage }
        switch platform {
        case .webPush:
            // A push service would refuse each message for a subscription that is bound to another server's key.
            guard let subscription = registration.subscription else { return .malformedMessage }
            guard subscription.vapidKey.map(webPushKeys.contains) ?? true else {
                return isWebPushChanging() ? .internalError : .malformedMessage
            }
            return isWebPushUnknown() ? .internalError : nil
        case .apn, .firebase, .huawei:
            return serves(platform, registration.apnTopic) ? nil : .unsupportedTokenType
        }
    }

    /// Compares bytes: strings that are canonically equivalent in Unicode are different topics.
    private static func areEqual(_ left: PushNotificationRegistration, _ right: PushNotificationRegistration) -> Bool {
        left == right && left.encoded() == right.encoded()
    }

    /// Decides on a claim.
    ///
    /// - Parameters:
    ///   - storedVersion: the version of the stored registration or tombstone of its key; nil if there is none.
    ///   - proved: loads the stored registration if its grant was proved for its key and this identity: the same grant for the same token is not
    ///     proved again. Called only for a claim whose grant was left (``RegistrationClaim/leavesGrant``).
    ///   - registered: loads the stored registration. Called only when its content matters.
    package func decide(
        _ claim: RegistrationClaim, storedVersion: UInt64?, proved: () -> PushNotificationRegistration? = { nil },
        registered: () throws -> PushNotificationRegistration?
    ) rethrows -> RegistrationDecision {
        switch claim.intent {
        case .malformed:
            return .refuse(.malformedMessage)
        case .unregister(let key, let version):
            guard version > storedVersion ?? 0 else { return .refuse(.versionMismatch) }
            return .unregister(key, version: version)
        case .register(let key, let registration, let bytes, let check):
            guard registration.version > storedVersion ?? 0 else {
                if isIdempotent, let registered = try registered(), Self.areEqual(registered, registration) { return .keep }
                return .refuse(.versionMismatch)
            }
            var grant: Grant.Proof?
            let flaw =
                switch check {
                case .passed: nil as PushNotificationRegistrationResponse.ErrorType?
                case .flawed(let flaw): flaw
                case .passedButGrant:
                    proved().map { ($0.grant, $0.accessToken) == (registration.grant, registration.accessToken) } == true
                        ? nil : self.flaw(in: registration, from: claim.sender, &grant)
                // The known version is not stored any more: it was a tombstone that has expired.
                case .left: self.flaw(in: registration, from: claim.sender, &grant)
                }
            if let flaw { return .refuse(flaw) }
            return .store(key, registration, bytes: bytes)
        }
    }
}

/// An unsealed and validated registration.
package struct RegistrationClaim: Sendable {
    package enum Intent: Sendable {
        case malformed
        case unregister(RegistrationKey, version: UInt64)
        /// `bytes` is the decrypted registration: stored as received, unknown fields included. `check` takes effect only if the version
        /// is new.
        case register(RegistrationKey, PushNotificationRegistration, bytes: [UInt8], check: ContentCheck)
    }

    /// The result of checking a registration's content: token, grant and service.
    package enum ContentCheck: Sendable {
        case passed
        case flawed(PushNotificationRegistrationResponse.ErrorType)
        /// All but the grant, which is left to the decision.
        case passedButGrant
        /// Left to the decision, which needs it only if the version is not stored.
        case left
    }

    package let sender: PublicKey
    package let requestID: [UInt8]
    package let intent: Intent

    /// Whether the decision may need the stored registration, to compare its grant.
    package var leavesGrant: Bool {
        if case .register(_, _, _, .passedButGrant) = intent { true } else { false }
    }

    /// The key to look up before ``RegistrationRules/decide(_:storedVersion:proved:registered:)``.
    package var key: RegistrationKey? {
        switch intent {
        case .malformed: nil
        case .unregister(let key, _), .register(let key, _, _, _): key
        }
    }
}

extension RegistrationClaim {
    /// The size of the registration in bytes; 0 if the claim has none.
    package var byteCount: Int { if case .register(_, _, let bytes, _) = intent { bytes.count } else { 0 } }

    /// 0 if the claim has none.
    package var version: UInt64 {
        switch intent {
        case .malformed: 0
        case .unregister(_, let version): version
        case .register(_, let registration, _, _): registration.version
        }
    }
}

package enum RegistrationDecision: Sendable {
    case store(RegistrationKey, PushNotificationRegistration, bytes: [UInt8])
    case unregister(RegistrationKey, version: UInt64)
    /// Success without a change.
    case keep
    case refuse(PushNotificationRegistrationResponse.ErrorType)
}
