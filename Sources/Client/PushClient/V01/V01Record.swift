import Core
import StatusProtocol
import WakuCrypto

/// The client's own settings, and the target state of the account's record at every server.
struct V01OwnRecord: OwnState {
    @Stored var installationID: InstallationID
    var isReceiving = false
    var isSending = false
    @Stored var servers: [PublicKey] = []
    var storedProfile: StoredProfile?
    @Stored var accessToken: AccessToken = AccessToken("")
    /// The token was made after a server last accepted a record, so a token returned by a server does not replace it.
    var isTokenNew = false
    /// Replaced tokens, latest last; nil before the first. Clients that lost the right to the token know one of them, so a server can't restore it.
    private var revokedTokens: Stored<[AccessToken]>?
    /// The number of changes made by the application.
    var generation: UInt64 = 0
    /// The highest version that was published, or that a server is known to have.
    var highestVersion: UInt64 = 0
    /// The record for the servers to register with.
    var content: V01Content?
    /// The first of the latest versions that have the devices and the token of ``content``; nil if only that one has.
    var sameSince: UInt64?
    /// The record without this device, for servers that are being left.
    var farewell: V01Content?
    /// The account's other devices, as Preferences, and the version of the record that listed them.
    @StoredBytes var otherDevices: [UInt8] = []
    var otherDevicesVersion: UInt64 = 0
    /// The latest time of the next advertisement.
    var nextAdvertisement: StoredTime?
    /// The client's time when this was written. It never goes back, even if the system clock does.
    @Stored var time: Timestamp
    var lead: Int64?

    var serverKeys: [PublicKey] { servers }

    var advertisesAt: Timestamp? {
        get { nextAdvertisement?.time }
        set { nextAdvertisement = newValue.map(StoredTime.init) }
    }

    init(installationID: InstallationID, time: Timestamp) {
        _installationID = Stored(wrappedValue: installationID)
        _time = Stored(wrappedValue: time)
    }

    var profile: V01DeviceProfile? {
        get { storedProfile.map { V01DeviceProfile($0.profile) } }
        set { storedProfile = newValue.map { StoredProfile($0.common) } }
    }

    private static let revokedTokenLimit = 16

    mutating func revoke(_ token: AccessToken) {
        guard !token.isEmpty else { return }
        revokedTokens = Stored(wrappedValue: ((revokedTokens?.wrappedValue ?? []) + [token]).suffix(Self.revokedTokenLimit))
    }

    func isRevoked(_ token: AccessToken) -> Bool {
        revokedTokens?.wrappedValue.contains(token) ?? false
    }

    var others: [V01.Device] {
        otherDevices.isEmpty ? [] : (try? V01.Preferences(parsing: otherDevices).devices) ?? []
    }
}

/// A version of the account's record: the same bytes for every server; only signatures differ.
struct V01Content: Codable, Hashable, Sendable {
    let version: UInt64
    /// Preferences, encoded.
    @StoredBytes var payload: [UInt8]

    var preferences: V01.Preferences? { try? V01.Preferences(parsing: payload) }
}

/// The state of the account's registration with one server.
///
///     idle ──(content, or leaving)──▶ pending ──(success)──▶ idle, or left
///                                        │ ▲
///                                (refused)▼ │(the application changed something)
///                                       refused
struct V01ServerRecord: RegistrationState {
    enum Phase: Codable, Hashable, Sendable {
        case idle
        case pending(Attempt)
        /// No retry until the application changes something.
        case refused(RegistrationRefusal, generation: UInt64)
        case left
    }

    struct Attempt: RegistrationAttempt, Codable, Hashable, Sendable {
        let content: V01Content
        let isFarewell: Bool
        let generation: UInt64
        /// The signature for this server. It is kept for the same content, so that repetitions are the same byte for byte.
        @StoredBytes var signature: [UInt8]
        var state = AttemptState.unsent

        var register: V01.Register { V01.Register(payload: content.payload, signature: signature) }
        var requestID: [UInt8] { register.requestID }
    }

    @Stored var server: PublicKey
    var isWanted = true
    var phase = Phase.idle
    var accepted: UInt64?
    /// When a new version is sent, after the last acceptance; nil in records of earlier versions of the client.
    var renewal: StoredTime?
    /// The highest version that was published to the server.
    var lastVersion: UInt64 = 0
    /// Whether the server may have a record with this device, as far as this client knows.
    var mayBeRegistered = false
    var tries = 0
    /// VERSION_MISMATCH answers since the application's last change.
    var mismatches = 0
    var relayFailures = 0
    /// MALFORMED_MESSAGE was answered with a new access token, since the application's last change.
    var hasTriedNewToken = false
    /// See ``MachineRecord/storedAt``.
    var storedAt: StoredTime?

    init(_ server: PublicKey) {
        _server = Stored(wrappedValue: server)
    }

    var attempt: Attempt? {
        get { if case .pending(let attempt) = phase { attempt } else { nil } }
        set { if let newValue { phase = .pending(newValue) } }
    }

    var renewsAt: Timestamp? { isWanted && phase == .idle && accepted != nil ? renewal?.time : nil }
    var replacesOthers: Bool { isRegistered }
    var hasAccepted: Bool { accepted != nil }
    var isRegistered: Bool { accepted != nil && phase != .left && attempt?.isFarewell != true }

    mutating func resetCounters() {
        (tries, mismatches, relayFailures, hasTriedNewToken) = (0, 0, 0, false)
    }

    var status: RegistrationStatus {
        switch phase {
        case .idle: accepted.map { .registered(version: $0) } ?? .unregistered
        case .pending: .pending(tries: tries)
        case .refused(let reason, _): .refused(reason)
        case .left: .unregistered
        }
    }
}
