import StatusProtocol
import Core
import Waku
import WakuCrypto

/// What is known of the device's registration with one server.
///
///     idle ──(content, or leaving)──▶ pending ──(success)──▶ idle, or left
///                                        │ ▲
///                                (refused)▼ │(something changed)
///                                       refused
struct ServerRegistration: Codable, Hashable, Sendable {
    enum Phase: Codable, Hashable, Sendable {
        case idle
        case pending(Attempt)
        /// Not again until the content changes.
        case refused(RegistrationRefusal, contentVersion: UInt64)
        /// Unregistered, and no longer wanted: only the version is remembered, as the server does.
        case left
    }

    /// A registration or its end on its way to the server.
    ///
    ///     unsent ──(published)──▶ sent ──(10 s)──▶ paused ──(time passed)──▶ unsent
    ///                               └─(VERSION_MISMATCH)─▶ checking ──(own query answered, or not)──▶ unsent with a higher version
    struct Attempt: Codable, Hashable, Sendable {
        enum State: Codable, Hashable, Sendable {
            case unsent
            case sent(deadline: StoredTime)
            case paused(until: StoredTime)
            /// The server said VERSION_MISMATCH: it is asked what it has.
            case checking(deadline: StoredTime)
        }

        /// nil ends the registration.
        let contentVersion: UInt64?
        let version: UInt64
        /// Repeated byte for byte.
        @StoredBytes var sealed: [UInt8]
        @StoredBytes var requestID: [UInt8]
        @StoredBytes var grant: [UInt8]
        var state = State.unsent
        /// Without success, since the last long pause.
        var tries = 0
        /// In a row.
        var mismatches = 0
        /// Publications that failed in a row.
        var relayFailures = 0

        var isUnregistration: Bool { contentVersion == nil }

        /// Whether an answer may be on its way.
        var isInFlight: Bool {
            switch state {
            case .unsent, .sent, .checking: true
            case .paused: false
            }
        }
    }

    struct Accepted: Codable, Hashable, Sendable {
        let contentVersion: UInt64
        let version: UInt64
        @StoredBytes var grant: [UInt8]
    }

    @Stored var server: PublicKey
    var dialect: PushServer.Dialect?
    var isWanted = true
    var phase = Phase.idle
    /// The highest version that the server was sent, or is known to have.
    var lastVersion: UInt64 = 0
    /// What the server is known to have.
    var accepted: Accepted?
    /// Whether the server may have a registration, as far as this client can know.
    var mayBeRegistered = false

    init(_ server: PushServer) {
        _server = Stored(wrappedValue: server.key)
        dialect = server.dialect
    }

    var attempt: Attempt? {
        get { if case .pending(let attempt) = phase { attempt } else { nil } }
        set { if let newValue { phase = .pending(newValue) } }
    }

    /// When something is to be done that no answer starts.
    var nextWakeUp: Timestamp? {
        switch attempt?.state {
        case .sent(let time), .paused(let time), .checking(let time): time.time
        case .unsent, nil: nil
        }
    }
}

/// A time in a record.
struct StoredTime: Codable, Hashable, Sendable {
    private let nanoseconds: Int64
    init(_ time: Timestamp) { nanoseconds = time.rawValue }
    var time: Timestamp { Timestamp(rawValue: nanoseconds) }
}
