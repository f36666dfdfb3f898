import Core
import StatusProtocol
import WakuCrypto

/// The registrations with several servers, with the same content: decides what to send to each. Input: settings, answers and time.
protocol RegistrationStates: Sendable {
    associatedtype Version: ClientVersion

    var own: Version.Own { get set }
    var isOwnChanged: Bool { get set }
    var servers: [PublicKey: Version.Server] { get set }
    /// The keys of ``servers`` in a fixed order, so that runs with the same seed are the same.
    var order: [PublicKey] { get set }
    var actions: [RegistrationAction<Version>] { get set }
    var changed: Set<PublicKey> { get set }

    /// After a start: resumes the registrations that were pending when the process ended. Followed by ``wake(at:jitter:)``.
    mutating func resume(at now: Timestamp, jitter: inout Jitter)
    mutating func wake(at now: Timestamp, jitter: inout Jitter)
    /// Enables receiving with the last registered profile, or disables it, which ends the device's registrations.
    mutating func setReceiving(_ isReceiving: Bool)
    /// Called after a publication was noted.
    mutating func publicationEnded(to server: PublicKey, isPublished: Bool)
    /// Handles an answer signed by the server. Late answers count: every repetition of a registration has the same id.
    mutating func answered(by server: PublicKey, _ response: Version.RegistrationResponse, at now: Timestamp, jitter: inout Jitter)
    /// Handles the end of the query for this client's own registration.
    ///
    /// - Parameter row: The server's row for this installation; nil when there is none, or no answer.
    mutating func checked(_ server: PublicKey, row: (version: UInt64, grant: [UInt8])?, at now: Timestamp, jitter: inout Jitter)
    var hasSomethingToAdvertise: Bool { get }
    /// Whether a start advertises: if the device was unregistered meanwhile, the last advertisement must be withdrawn.
    var advertisesAtStart: Bool { get }
}

enum RegistrationAction<Version: ClientVersion>: Hashable, Sendable {
    case send(server: PublicKey, Version.Registration)
    /// Query the server for this client's own registration.
    case checkOwn(server: PublicKey)
    /// The registration with a server changed: the advertisement must be updated.
    case rowsChanged
    case report(PushClientEvent)
}

enum RegistrationTiming {
    static let answerDeadline = Duration.seconds(10)
    static let pauseBase = Duration.seconds(15)
    static let tryLimit = 12
    static let longPause = Duration.seconds(24 * 3600)
    /// When a registration is sent again of which only its version is known to be the server's. Servers could cause this again and again.
    static let confirmation = Duration.seconds(600)
    /// Caps the growth of pauses, since relays recover sooner than servers that don't answer.
    static let relayFailureLimit = 5
}

extension RegistrationStates {
    mutating func checked(_ server: PublicKey, row: (version: UInt64, grant: [UInt8])?, at now: Timestamp, jitter: inout Jitter) {}

    mutating func restore(_ records: [Version.Server]) {
        for record in records { servers[record.server] = record }
        order = servers.keys.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
    }

    mutating func add(_ record: Version.Server) {
        servers[record.server] = record
        order.append(record.server)
        changed.insert(record.server)
    }

    mutating func update(_ server: PublicKey, _ body: (inout Version.Server) -> Void) {
        guard var record = servers[server] else { return }
        body(&record)
        servers[server] = record
        changed.insert(server)
    }

    mutating func takeActions() -> [RegistrationAction<Version>] {
        defer { actions = [] }
        return actions
    }

    mutating func takeChanges() -> Set<PublicKey> {
        defer { changed = [] }
        return changed
    }

    var nextWakeUp: Timestamp? { servers.values.compactMap(\.nextWakeUp).min() }

    /// Whether the registration with a server that is not wanted any more is kept: until one of the wanted servers has one, since a wrong key among
    /// the new servers must not leave the device without any.
    func isKept(_ server: PublicKey) -> Bool {
        guard let record = servers[server], !record.isWanted, record.isRegistered, !record.isPending else { return false }
        let wanted = servers.values.filter(\.isWanted)
        return !wanted.isEmpty && !wanted.contains(where: \.replacesOthers)
    }

    // MARK: Attempts

    /// Whether the message still needs publishing: its answer may have arrived meanwhile.
    func isAwaitingPublication(_ requestID: [UInt8], to server: PublicKey) -> Bool {
        servers[server]?.attempt.map { $0.requestID == requestID && $0.state == .unsent } ?? false
    }

    mutating func published(_ requestID: [UInt8], to server: PublicKey, at now: Timestamp) {
        guard isAwaitingPublication(requestID, to: server) else { return }
        update(server) {
            $0.attempt?.state = .sent(deadline: StoredTime(now + RegistrationTiming.answerDeadline))
            $0.relayFailures = 0
        }
        publicationEnded(to: server, isPublished: true)
    }

    mutating func notPublished(_ requestID: [UInt8], to server: PublicKey, at now: Timestamp, jitter: Double) {
        guard isAwaitingPublication(requestID, to: server) else { return }
        update(server) { record in
            record.relayFailures = min(record.relayFailures + 1, RegistrationTiming.relayFailureLimit)
            let pause = RetryDelay.after(failures: record.relayFailures, base: RegistrationTiming.pauseBase, jitter: jitter)
            record.attempt?.state = .paused(until: StoredTime(now + pause))
        }
        publicationEnded(to: server, isPublished: false)
    }

    /// After no answer in time, or an unusable one: retries after a growing pause.
    mutating func pause(_ server: PublicKey, at now: Timestamp, jitter: Double) {
        guard let record = servers[server], record.isPending else { return }
        let tries = record.tries + 1
        let isOver = tries >= RegistrationTiming.tryLimit
        let pause =
            isOver
            ? RegistrationTiming.longPause : RetryDelay.after(failures: tries, base: RegistrationTiming.pauseBase, jitter: jitter)
        update(server) {
            $0.tries = isOver ? 0 : tries
            $0.attempt?.state = .paused(until: StoredTime(now + pause))
        }
        actions.append(.report(.willRetry(server, tries: tries, after: pause)))
    }
}

protocol RegistrationState: Codable, Hashable, Sendable {
    associatedtype Attempt: RegistrationAttempt

    var server: PublicKey { get }
    var status: RegistrationStatus { get }
    /// Whether it is one of the servers to be registered with.
    var isWanted: Bool { get }
    /// Whether the server is known to have had this device.
    var hasAccepted: Bool { get }
    /// Whether the server accepted a registration of this device, which was not ended since.
    var isRegistered: Bool { get }
    /// Whether servers that are not wanted any more may be left, since this one has a registration.
    var replacesOthers: Bool { get }
    /// The registration being sent; nil when the server has given a final answer.
    var attempt: Attempt? { get set }
    /// Failed tries since the last long pause.
    var tries: Int { get set }
    /// Consecutive failed publications.
    var relayFailures: Int { get set }
    /// See ``MachineRecord/storedAt``.
    var storedAt: StoredTime? { get set }
    /// When an accepted registration is sent again; nil when it is not to be.
    var renewsAt: Timestamp? { get }
}

extension RegistrationState {
    var isPending: Bool { attempt != nil }
    /// The end of the pause after a failure; nil when none is under way.
    var pausedUntil: Timestamp? { if case .paused(let until) = attempt?.state { until.time } else { nil } }

    /// The time of the next action that does not depend on an answer.
    var nextWakeUp: Timestamp? {
        switch attempt?.state {
        case .sent(let time), .paused(let time), .checking(let time): time.time
        case .unsent: nil
        case nil: renewsAt
        }
    }
}

protocol RegistrationAttempt {
    var requestID: [UInt8] { get }
    var state: AttemptState { get set }
}

extension RegistrationAttempt {
    /// Whether an answer may still arrive.
    var isInFlight: Bool { if case .paused = state { false } else { true } }
}

/// The state of a registration, or its end, that is being sent to a server.
///
///     unsent ──(published)──▶ sent ──(10 s, or INTERNAL_ERROR)──▶ paused ──(time passed)──▶ unsent
///                               └─(VERSION_MISMATCH)─▶ checking ──(own query answered, or not)──▶ unsent with a higher version
enum AttemptState: Codable, Hashable, Sendable {
    case unsent
    case sent(deadline: StoredTime)
    case paused(until: StoredTime)
    /// The server answered VERSION_MISMATCH: it is queried for its version. Not used by version 0.1, whose answers contain it.
    case checking(deadline: StoredTime)
}
/// When an accepted registration is sent again as a new version: servers may end registrations that were not renewed for a time of their choice.
enum RegistrationRenewal {
    static let period = Duration.seconds(30 * 24 * 3600)
    /// The period is shorter by up to this, at random, so that the clients that registered at one time do not all renew at one time.
    static let periodJitter = Duration.seconds(3 * 24 * 3600)

    static func time(afterAcceptanceAt now: Timestamp, jitter: Double) -> StoredTime {
        StoredTime(now + (period - periodJitter * min(max(jitter, 0), 1)))
    }

    /// For registrations that an earlier version of the client left without a time: at random within the period.
    static func time(ofUnknownAgeAt now: Timestamp, jitter: Double) -> StoredTime {
        StoredTime(now + period * min(max(jitter, 0), 1))
    }
}
