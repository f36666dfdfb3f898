import Core
import WakuCrypto

/// The state of the device's registration with one server.
///
///     idle ──(content, or leaving)──▶ pending ──(success)──▶ idle, or left
///                                        │ ▲
///                                (refused)▼ │(something changed)
///                                       refused
///
/// After a month in `idle`, the same content is pending again, as a new version.
struct ServerRegistration: RegistrationState {
    enum Phase: Codable, Hashable, Sendable {
        case idle
        case pending(Attempt)
        /// No retry until the content changes.
        case refused(RegistrationRefusal, contentVersion: UInt64)
        /// Unregistered and not wanted: only the version is remembered, as the server does.
        case left
    }

    struct Attempt: RegistrationAttempt, Codable, Hashable, Sendable {
        /// nil for an unregistration.
        let contentVersion: UInt64?
        let version: UInt64
        /// Repeated byte for byte.
        @StoredBytes var sealed: [UInt8]
        @StoredBytes var requestID: [UInt8]
        @StoredBytes var grant: [UInt8]
        var state = AttemptState.unsent
        var tries = 0
        /// Consecutive VERSION_MISMATCH answers.
        var mismatches = 0
        var relayFailures = 0

        var isUnregistration: Bool { contentVersion == nil }
    }

    struct Accepted: Codable, Hashable, Sendable {
        let contentVersion: UInt64
        let version: UInt64
        @StoredBytes var grant: [UInt8]
        /// When a new version is sent; nil in records of earlier versions of the client.
        var renewal: StoredTime?
    }

    @Stored var server: PublicKey
    var dialect: PushServer.Dialect?
    var isWanted = true
    var phase = Phase.idle
    /// The highest version that was sent to the server, or that it is known to have.
    var lastVersion: UInt64 = 0
    /// The content that the server is known to have.
    var accepted: Accepted?
    /// Whether the server may have a registration, as far as this client knows.
    var mayBeRegistered = false
    /// See ``MachineRecord/storedAt``.
    var storedAt: StoredTime?

    init(_ server: PushServer) {
        _server = Stored(wrappedValue: server.key)
        dialect = server.dialect
    }

    var attempt: Attempt? {
        get { if case .pending(let attempt) = phase { attempt } else { nil } }
        set { if let newValue { phase = .pending(newValue) } }
    }

    var tries: Int {
        get { attempt?.tries ?? 0 }
        set { attempt?.tries = newValue }
    }

    var relayFailures: Int {
        get { attempt?.relayFailures ?? 0 }
        set { attempt?.relayFailures = newValue }
    }

    var renewsAt: Timestamp? { isWanted && phase == .idle ? accepted?.renewal?.time : nil }

    /// Whether no registration is in flight, and the device is not to be unregistered.
    var mayBeSentAgain: Bool {
        switch phase {
        case .idle, .refused: true
        case .pending(let attempt): !attempt.isInFlight && !attempt.isUnregistration
        case .left: false
        }
    }

    var hasAccepted: Bool { accepted != nil }
    var isRegistered: Bool { accepted != nil && attempt?.isUnregistration != true }
    /// Not while it is registered with again, with the same content, and not after it refused that: it may have lost the registration.
    var replacesOthers: Bool {
        guard isRegistered, let accepted else { return false }
        return switch phase {
        case .idle: true
        case .pending(let attempt): attempt.contentVersion != accepted.contentVersion
        case .refused(_, let version): version != accepted.contentVersion
        case .left: false
        }
    }

    var status: RegistrationStatus {
        switch phase {
        case .idle: accepted.map { .registered(version: $0.version) } ?? .unregistered
        case .pending(let attempt): .pending(tries: attempt.tries)
        case .refused(let reason, _): .refused(reason)
        case .left: .unregistered
        }
    }
}
