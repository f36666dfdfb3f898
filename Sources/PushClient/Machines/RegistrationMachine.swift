import PushTypes
import StatusProtocol
import Waku
import WakuCrypto

/// Keeps one device registered with several servers, the same with each. Wishes, answers and time come in, registrations go out.
///
/// At each server one registration is on its way until it is answered or 10 s passed; ``ServerRegistration`` has the picture.
struct RegistrationMachine: Sendable {
    static let answerDeadline = Duration.seconds(10)
    static let ownQueryDeadline = Duration.seconds(4)
    static let pauseBase = Duration.seconds(15)
    static let tryLimit = 12
    static let longPause = Duration.seconds(24 * 3600)
    /// Relays come back sooner than servers that don't answer.
    private static let relayFailureLimit = 5

    enum Action: Hashable, Sendable {
        case send(server: PublicKey, dialect: PushServer.Dialect?, requestID: [UInt8], sealed: [UInt8])
        /// What does this server have of our own key?
        case checkOwn(server: PublicKey)
        /// Registered, or left: others are to know.
        case rowsChanged
        case report(PushClientEvent)
    }

    private let cryptography: any ClientCryptography
    private(set) var servers: [PublicKey: ServerRegistration] = [:]
    /// The keys of ``servers`` in a fixed order: the same seed is to give the same run.
    private var order: [PublicKey] = []
    private var actions: [Action] = []
    private(set) var changed: Set<PublicKey> = []

    init(cryptography: any ClientCryptography, restoring records: [ServerRegistration] = []) {
        self.cryptography = cryptography
        for record in records { servers[record.server] = record }
        order = servers.keys.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    mutating func takeChanges() -> Set<PublicKey> {
        defer { changed = [] }
        return changed
    }

    var nextWakeUp: Timestamp? { servers.values.compactMap(\.nextWakeUp).min() }

    private mutating func update(_ server: PublicKey, _ body: (inout ServerRegistration) -> Void) {
        guard var record = servers[server] else { return }
        body(&record)
        servers[server] = record
        changed.insert(server)
    }

    // MARK: What is wanted

    /// After a start: what was on its way when the process ended goes on.
    mutating func resume() {
        for key in order {
            switch servers[key]?.attempt?.state {
            case .unsent: send(key)
            case .checking: actions.append(.checkOwn(server: key))
            case .sent, .paused, nil: break
            }
        }
    }

    /// Brings what is on its way, and what servers have, to what is wanted.
    ///
    /// - Parameters:
    ///   - content: nil ends all registrations.
    ///   - wanted: The servers to register with. From all others the device is unregistered.
    mutating func reconcile(_ own: OwnRecord, at now: Timestamp) {
        let wanted = own.isReceiving && own.content != nil ? own.servers : []
        for server in wanted where servers[server.key] == nil {
            servers[server.key] = ServerRegistration(server)
            order.append(server.key)
            changed.insert(server.key)
        }
        for server in wanted {
            guard let record = servers[server.key], !record.isWanted || record.dialect != server.dialect else { continue }
            update(server.key) {
                $0.isWanted = true
                $0.dialect = server.dialect
            }
        }
        let keys = Set(wanted.map(\.key))
        for key in order where !keys.contains(key) {
            if servers[key]?.isWanted == true { update(key) { $0.isWanted = false } }
        }
        for key in order { reconcile(key, own) }
    }

    private mutating func reconcile(_ key: PublicKey, _ own: OwnRecord) {
        guard let record = servers[key] else { return }
        // One registration at a time: the next one begins when this one is answered or its deadline passed.
        if let attempt = record.attempt, attempt.isInFlight { return }
        guard record.isWanted, let content = own.content, let profile = own.profile else { return leave(key) }
        switch record.phase {
        case .pending(let attempt) where attempt.contentVersion == content.version: return
        case .refused(_, let version) where version == content.version: return
        case .idle where record.accepted?.contentVersion == content.version: return
        case .idle, .pending, .refused, .left: register(key, content, profile)
        }
    }

    private mutating func leave(_ key: PublicKey) {
        guard let record = servers[key] else { return }
        switch record.phase {
        case .left: return
        case .pending(let attempt) where attempt.isUnregistration: return
        default: break
        }
        guard record.mayBeRegistered else {
            update(key) {
                $0.phase = .left
                $0.accepted = nil
            }
            return
        }
        begin(key, contentVersion: nil, atLeast: 0) { _, _, registration in registration.unregister = true }
    }

    private mutating func register(_ key: PublicKey, _ content: RegistrationContent, _ profile: DeviceProfile) {
        begin(key, contentVersion: content.version, atLeast: content.version) { cryptography, grant, registration in
            profile.fill(&registration)
            registration.accessToken = content.accessToken
            registration.allowedKeyList = content.allowedKeyList.map(\.bytes)
            grant = cryptography.makeGrant(for: key, accessToken: content.accessToken)
            registration.grant = grant
        }
    }

    /// Set by whoever owns the machine: the installation that is registered.
    var installationID = InstallationID("")

    private mutating func begin(
        _ key: PublicKey, contentVersion: UInt64?, atLeast: UInt64, after previous: ServerRegistration.Attempt? = nil,
        _ fill: (any ClientCryptography, inout [UInt8], inout PushNotificationRegistration) -> Void
    ) {
        guard let record = servers[key] else { return }
        let (next, isExhausted) = record.lastVersion.addingReportingOverflow(1)
        guard !isExhausted else { return refuse(key, .versionExhausted, contentVersion) }
        var registration = PushNotificationRegistration()
        registration.installationID = installationID
        registration.version = max(next, atLeast)
        var grant: [UInt8] = []
        fill(cryptography, &grant, &registration)
        let sealed = cryptography.seal(registration, for: key)
        var attempt = ServerRegistration.Attempt(
            contentVersion: contentVersion, version: registration.version, sealed: sealed, requestID: Shake256.hash64(sealed), grant: grant)
        attempt.tries = previous?.tries ?? 0
        attempt.mismatches = previous?.mismatches ?? 0
        update(key) {
            $0.phase = .pending(attempt)
            $0.lastVersion = attempt.version
            $0.mayBeRegistered = true
        }
        send(key)
    }

    private mutating func send(_ key: PublicKey) {
        guard let record = servers[key], let attempt = record.attempt, attempt.state == .unsent else { return }
        actions.append(.send(server: key, dialect: record.dialect, requestID: attempt.requestID, sealed: attempt.sealed))
    }

    private mutating func refuse(_ key: PublicKey, _ reason: RegistrationRefusal, _ contentVersion: UInt64?) {
        update(key) { record in
            if let contentVersion {
                record.phase = .refused(reason, contentVersion: contentVersion)
            } else {
                // An answer to an unregistration, though not the one that was hoped for: it is not tried for ever.
                record.phase = .left
                record.accepted = nil
                record.mayBeRegistered = false
            }
        }
        actions.append(.report(.refused(by: key, reason)))
    }

    // MARK: Time

    /// Whether the message is still to be published: its answer may have come meanwhile.
    func isAwaitingPublication(_ requestID: [UInt8], to server: PublicKey) -> Bool {
        servers[server]?.attempt.map { $0.requestID == requestID && $0.state == .unsent } ?? false
    }

    mutating func published(_ requestID: [UInt8], to server: PublicKey, at now: Timestamp) {
        guard isAwaitingPublication(requestID, to: server) else { return }
        update(server) {
            $0.attempt?.state = .sent(deadline: StoredTime(now + Self.answerDeadline))
            $0.attempt?.relayFailures = 0
        }
    }

    mutating func notPublished(_ requestID: [UInt8], to server: PublicKey, at now: Timestamp, jitter: Double) {
        guard isAwaitingPublication(requestID, to: server) else { return }
        update(server) { record in
            let failures = min((record.attempt?.relayFailures ?? 0) + 1, Self.relayFailureLimit)
            record.attempt?.relayFailures = failures
            let pause = RetryDelay.after(failures: failures, base: Self.pauseBase, jitter: jitter)
            record.attempt?.state = .paused(until: StoredTime(now + pause))
        }
    }

    mutating func wake(_ own: OwnRecord, at now: Timestamp, jitter: inout Jitter) {
        for key in order {
            guard let record = servers[key], let due = record.nextWakeUp, due <= now, let attempt = record.attempt else { continue }
            switch attempt.state {
            case .sent: pause(key, at: now, jitter: jitter.next())
            case .paused:
                update(key) { $0.attempt?.state = .unsent }
                send(key)
            case .checking: checked(key, row: nil, own, at: now, jitter: &jitter)
            case .unsent: break
            }
        }
        for key in order { reconcile(key, own) }
    }

    private mutating func pause(_ key: PublicKey, at now: Timestamp, jitter: Double) {
        guard var attempt = servers[key]?.attempt else { return }
        attempt.tries += 1
        let tries = attempt.tries
        let pause: Duration
        if tries >= Self.tryLimit {
            attempt.tries = 0
            pause = Self.longPause
        } else {
            pause = RetryDelay.after(failures: tries, base: Self.pauseBase, jitter: jitter)
        }
        attempt.state = .paused(until: StoredTime(now + pause))
        update(key) { $0.attempt = attempt }
        actions.append(.report(.willRetry(key, tries: tries, after: pause)))
    }

    // MARK: Answers

    /// An answer that the server signed. One that comes late counts: while the registration is the one wanted, every repetition has the same id.
    mutating func answered(
        by server: PublicKey, requestID: [UInt8], error: PushNotificationRegistrationResponse.ErrorType?, _ own: OwnRecord,
        at now: Timestamp, jitter: inout Jitter
    ) {
        guard let attempt = servers[server]?.attempt, attempt.requestID == requestID else { return }
        switch error {
        case nil: succeeded(server, attempt)
        case .versionMismatch:
            if case .checking = attempt.state { return }
            update(server) { $0.attempt?.state = .checking(deadline: StoredTime(now + Self.ownQueryDeadline)) }
            actions.append(.checkOwn(server: server))
        case .malformedMessage: refuse(server, .malformedMessage, attempt.contentVersion)
        case .unsupportedTokenType: refuse(server, .unsupportedTokenType, attempt.contentVersion)
        case .internalError, .unknown:
            guard attempt.isInFlight else { return }
            pause(server, at: now, jitter: jitter.next())
        }
        reconcile(server, own)
    }

    private mutating func succeeded(_ server: PublicKey, _ attempt: ServerRegistration.Attempt) {
        update(server) { record in
            if let contentVersion = attempt.contentVersion {
                record.phase = .idle
                record.accepted = .init(contentVersion: contentVersion, version: attempt.version, grant: attempt.grant)
            } else {
                record.phase = .left
                record.accepted = nil
                record.mayBeRegistered = false
            }
        }
        actions.append(
            .report(attempt.isUnregistration ? .unregistered(from: server) : .registered(with: server, version: attempt.version)))
        actions.append(.rowsChanged)
    }

    /// How the query for the own key ended.
    ///
    /// - Parameter row: The server's row for this installation; nil when there is none, or no answer.
    mutating func checked(
        _ server: PublicKey, row: (version: UInt64, grant: [UInt8])?, _ own: OwnRecord, at now: Timestamp, jitter: inout Jitter
    ) {
        guard let record = servers[server], var attempt = record.attempt, case .checking = attempt.state else { return }
        if let row, !attempt.isUnregistration, row.version == attempt.version, row.grant == attempt.grant {
            // It was taken the first time, and that answer was lost.
            succeeded(server, attempt)
            return reconcile(server, own)
        }
        attempt.mismatches += 1
        let known = max(record.lastVersion, row?.version ?? 0)
        // Without an answer: +2, +4, … from the version that was refused.
        let step: UInt64 = row == nil ? (1 << UInt64(min(attempt.mismatches, 32))) - 1 : 0
        let (reached, isExhausted) = known.addingReportingOverflow(step)
        update(server) { $0.lastVersion = isExhausted ? .max - 1 : reached }
        let content = own.content
        let isStillWanted = record.isWanted && own.profile != nil && content != nil
        if attempt.isUnregistration != !isStillWanted {
            // What is wanted changed meanwhile.
            update(server) { $0.phase = attempt.isUnregistration ? .left : .idle }
            return reconcile(server, own)
        }
        if attempt.isUnregistration {
            begin(server, contentVersion: nil, atLeast: 0, after: attempt) { _, _, registration in registration.unregister = true }
        } else if let content, let profile = own.profile {
            begin(server, contentVersion: content.version, atLeast: content.version, after: attempt) { cryptography, grant, registration in
                profile.fill(&registration)
                registration.accessToken = content.accessToken
                registration.allowedKeyList = content.allowedKeyList.map(\.bytes)
                grant = cryptography.makeGrant(for: server, accessToken: content.accessToken)
                registration.grant = grant
            }
        }
        // The first higher version goes out at once. A server that refuses again is left in peace as one that does not answer.
        guard attempt.mismatches > 1, servers[server]?.attempt != nil else { return }
        actions.removeAll { if case .send(server, _, _, _) = $0 { true } else { false } }
        pause(server, at: now, jitter: jitter.next())
    }

    // MARK: For others

    /// The devices' rows to advertise: of the servers that have what is wanted now.
    func advertisedRows(_ own: OwnRecord) -> [PushNotificationQueryInfo] {
        guard own.isReceiving, let content = own.content, let profile = own.profile else { return [] }
        let owner = KeyHash(of: cryptography.publicKey).bytes
        return own.servers.compactMap { server in
            guard let record = servers[server.key], record.phase == .idle, let accepted = record.accepted,
                accepted.contentVersion == content.version
            else { return nil }
            let isFiltered = profile.contactsOnly
            return PushNotificationQueryInfo(
                accessToken: isFiltered ? AccessToken("") : content.accessToken, installationID: own.installationID, publicKey: owner,
                allowedKeyList: content.allowedKeyList.map(\.bytes), grant: accepted.grant, version: accepted.version,
                serverPublicKey: server.key.compressed)
        }
    }
}
