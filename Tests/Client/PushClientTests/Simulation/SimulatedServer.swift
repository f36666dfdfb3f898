import Core
import StatusProtocol
import WakuCrypto

/// A push server with plain values instead of encrypted bytes, honest or not.
struct SimulatedServer {
    enum Character: CaseIterable {
        case honest
        /// Answers WRONG_TOKEN to every request.
        case wrongTokens
        /// Always answers INTERNAL_ERROR.
        case broken
        /// Answers VERSION_MISMATCH to every registration.
        case mismatches
        /// Answers queries with grants for others.
        case foreignGrants
        /// Answers queries with the first registration it received, and refuses newer tokens.
        case oldVersions
        /// Answers queries with the highest version, and on behalf of another server.
        case boasts
        /// Reports on devices that were not requested.
        case otherDevices
    }

    struct Stored {
        var registration: PushNotificationRegistration
        let first: PushNotificationRegistration
    }

    let key: PublicKey
    let other: PublicKey
    var character = Character.honest
    var isUp = true
    private(set) var stored: [RegistrationKey: Stored] = [:]
    private(set) var versions: [RegistrationKey: UInt64] = [:]
    /// Notified devices, by message.
    private(set) var notified: [RegistrationKey: Set<[UInt8]>] = [:]
    private(set) var tokensShown: [PublicKey: Set<AccessToken>] = [:]

    init(key: PublicKey, other: PublicKey) {
        self.key = key
        self.other = other
    }

    mutating func register(
        _ owner: PublicKey, _ hash: KeyHash, _ registration: PushNotificationRegistration, requestID: [UInt8]
    ) -> PushNotificationRegistrationResponse {
        let deviceKey = RegistrationKey(keyHash: hash, installationID: registration.installationID)
        func answer(_ error: PushNotificationRegistrationResponse.ErrorType?) -> PushNotificationRegistrationResponse {
            PushNotificationRegistrationResponse(error: error, requestID: requestID)
        }
        tokensShown[owner, default: []].insert(registration.accessToken)
        if character == .broken { return answer(.internalError) }
        if character == .mismatches || registration.version <= versions[deviceKey] ?? 0 { return answer(.versionMismatch) }
        versions[deviceKey] = registration.version
        stored[deviceKey] =
            registration.unregister
            ? nil : Stored(registration: registration, first: stored[deviceKey]?.first ?? registration)
        return answer(nil)
    }

    /// nil when nothing is registered, so that there is no answer.
    func rows(of hash: KeyHash, installations: [InstallationID]) -> [PushNotificationQueryInfo]? {
        let rows = installations.compactMap { id -> PushNotificationQueryInfo? in
            guard let stored = stored[RegistrationKey(keyHash: hash, installationID: id)] else { return nil }
            let registration = character == .oldVersions ? stored.first : stored.registration
            let isFiltered = registration.allowFromContactsOnly
            return PushNotificationQueryInfo(
                accessToken: token(isFiltered ? AccessToken("") : registration.accessToken), installationID: id, publicKey: hash.bytes,
                allowedKeyList: character == .foreignGrants ? [] : registration.allowedKeyList,
                grant: character == .foreignGrants ? [1, 2, 3] : registration.grant,
                version: character == .boasts ? .max : registration.version,
                serverPublicKey: character == .boasts ? other.compressed : key.compressed)
        }
        return rows.isEmpty ? nil : rows
    }

    /// Foreign grants come with foreign tokens, which a client that accepted them would disclose.
    private func token(_ token: AccessToken) -> AccessToken {
        character == .foreignGrants ? AccessToken("66666666-6666-4666-8666-666666666666") : token
    }

    mutating func report(_ request: PushNotificationRequest) -> [PushNotificationReport] {
        request.requests.map { entry in
            PushNotificationReport(
                error: notify(entry, request.messageID), publicKey: character == .otherDevices ? [9] : entry.publicKey,
                installationID: entry.installationID)
        }
    }

    private mutating func notify(_ entry: PushNotification, _ messageID: [UInt8]) -> PushNotificationReport.ErrorType? {
        switch character {
        case .wrongTokens: return .wrongToken
        case .broken: return .internalError
        case .otherDevices: return nil
        case .honest, .mismatches, .foreignGrants, .oldVersions, .boasts: break
        }
        guard let hash = KeyHash(bytes: entry.publicKey) else { return .notRegistered }
        let device = RegistrationKey(keyHash: hash, installationID: entry.installationID)
        guard let stored = stored[device] else { return .notRegistered }
        guard stored.registration.accessToken == entry.accessToken else { return .wrongToken }
        notified[device, default: []].insert(messageID)
        return nil
    }
}
