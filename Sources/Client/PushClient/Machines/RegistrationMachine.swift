import Core
import StatusProtocol
import WakuCrypto

/// Keeps one device registered with several servers, with the same content. Input: settings, answers and time. Output: registrations to send.
///
/// Each server has at most one pending registration, until its answer or for 10 s; ``ServerRegistration`` shows the states.
struct RegistrationMachine: RegistrationStates {
    static let answerDeadline = Duration.seconds(10)
    static let ownQueryDeadline = Duration.seconds(4)
    static let pauseBase = Duration.seconds(15)
    static let tryLimit = 12
    static let longPause = Duration.seconds(24 * 3600)
    /// Caps the growth of pauses, since relays recover sooner than servers that don't answer.
    static let relayFailureLimit = 5

    enum Action: Hashable, Sendable {
        case send(server: PublicKey, DeployedVersion.Registration)
        /// Query the server for this client's own registration.
        case checkOwn(server: PublicKey)
        /// The registration with a server changed: the advertisement must be updated.
        case rowsChanged
        case report(PushClientEvent)
    }

    private let cryptography: any ClientCryptography
    var servers: [PublicKey: ServerRegistration] = [:]
    /// The keys of ``servers`` in a fixed order, so that runs with the same seed are the same.
    var order: [PublicKey] = []
    var actions: [Action] = []
    var changed: Set<PublicKey> = []

    init(cryptography: any ClientCryptography, restoring records: [ServerRegistration] = []) {
        self.cryptography = cryptography
        for record in records { servers[record.server] = record }
        order = servers.keys.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
    }

    // MARK: Target state

    /// After a start: resumes the registrations that were pending when the process ended.
    mutating func resume(at now: Timestamp, jitter: inout Jitter) {
        for key in order {
            if let accepted = servers[key]?.accepted, accepted.renewal == nil {
                update(key) { $0.accepted?.renewal = RegistrationRenewal.time(ofUnknownAgeAt: now, jitter: jitter.next()) }
            }
            switch servers[key]?.attempt?.state {
            case .unsent: send(key)
            case .checking: actions.append(.checkOwn(server: key))
            case .sent, .paused, nil: break
            }
        }
    }

    /// Starts the registrations and unregistrations that bring the servers to the target state.
    ///
    /// - Parameter again: Whether to register again with servers that may have lost the registration, refused it, or failed. The former one is still
    ///   advertised.
    mutating func reconcile(_ own: OwnRecord, again: Bool = false, at now: Timestamp) {
        // Web Push subscriptions go only to servers that the application named as servers for them.
        let isWebPush = own.profile?.platform == .webPush
        let wanted = own.isReceiving && own.content != nil ? own.servers.filter { !isWebPush || $0.vapidKey != nil } : []
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
        // Before servers that are not wanted any more are left: see isKept.
        if again { for key in order { registerAgain(with: key, own) } }
        for key in order { reconcile(key, own) }
    }

    private mutating func registerAgain(with key: PublicKey, _ own: OwnRecord) {
        guard let record = servers[key], record.isWanted, record.mayBeSentAgain, let content = own.content else { return }
        register(key, content, own)
    }

    /// Forgets that a server accepted the registration, which it lost: the next ``reconcile(_:at:)`` registers again.
    mutating func forgetAcceptance(by key: PublicKey) {
        guard let record = servers[key], record.mayBeSentAgain else { return }
        update(key) {
            $0.phase = .idle
            $0.accepted = nil
        }
    }

    mutating func reconcile(_ key: PublicKey, _ own: OwnRecord) {
        guard let record = servers[key] else { return }
        // One registration at a time: the next one begins after the answer or the deadline of this one.
        if let attempt = record.attempt, attempt.isInFlight { return }
        guard record.isWanted, let content = own.content, own.profile != nil else {
            if !isKept(key) { leave(key) }
            return
        }
        switch record.phase {
        case .pending(let attempt) where attempt.contentVersion == content.version: return
        case .refused(_, let version) where version == content.version: return
        case .idle where record.accepted?.contentVersion == content.version: return
        case .idle, .pending, .refused, .left: register(key, content, own)
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
        unregister(key)
    }

    mutating func unregister(_ key: PublicKey, after previous: ServerRegistration.Attempt? = nil) {
        var registration = PushNotificationRegistration()
        registration.unregister = true
        begin(key, registration, contentVersion: nil, after: previous)
    }

    mutating func register(
        _ key: PublicKey, _ content: RegistrationContent, _ own: OwnRecord, after previous: ServerRegistration.Attempt? = nil
    ) {
        guard let profile = own.profile else { return }
        var registration = PushNotificationRegistration()
        profile.fill(&registration)
        registration.deviceToken = profile.deviceToken(for: own.servers.first { $0.key == key })
        registration.accessToken = content.accessToken
        registration.allowedKeyList = content.allowedKeyList.map(\.bytes)
        registration.grant = cryptography.makeGrant(for: key, accessToken: content.accessToken)
        begin(key, registration, contentVersion: content.version, after: previous)
    }

    /// The registered installation, set by the owner of the machine.
    var installationID = InstallationID("")

    private mutating func begin(
        _ key: PublicKey, _ content: PushNotificationRegistration, contentVersion: UInt64?, after previous: ServerRegistration.Attempt?
    ) {
        guard let record = servers[key] else { return }
        let (next, isExhausted) = record.lastVersion.addingReportingOverflow(1)
        guard !isExhausted else { return refuse(key, .versionExhausted, contentVersion) }
        var registration = content
        registration.installationID = installationID
        registration.version = max(next, contentVersion ?? 0)
        let sealed = cryptography.seal(registration, for: key)
        var attempt = ServerRegistration.Attempt(
            contentVersion: contentVersion, version: registration.version, sealed: sealed, requestID: Shake256.hash64(sealed),
            grant: registration.grant)
        attempt.tries = previous?.tries ?? 0
        attempt.mismatches = previous?.mismatches ?? 0
        update(key) {
            $0.phase = .pending(attempt)
            $0.lastVersion = attempt.version
            $0.mayBeRegistered = true
        }
        send(key)
    }

    mutating func send(_ key: PublicKey) {
        guard let record = servers[key], let attempt = record.attempt, attempt.state == .unsent else { return }
        let registration = DeployedVersion.Registration(dialect: record.dialect, requestID: attempt.requestID, sealed: attempt.sealed)
        actions.append(.send(server: key, registration))
    }

    mutating func refuse(_ key: PublicKey, _ reason: RegistrationRefusal, _ contentVersion: UInt64?) {
        update(key) { record in
            if let contentVersion {
                record.phase = .refused(reason, contentVersion: contentVersion)
            } else {
                // The server rejected an unregistration: stop retrying.
                record.phase = .left
                record.accepted = nil
                record.mayBeRegistered = false
            }
        }
        actions.append(.report(.refused(by: key, reason)))
    }

    // MARK: Advertised rows

    /// The rows to advertise: those of servers that accepted the current content, also of servers to leave, until another one has accepted it.
    func advertisedRows(_ own: OwnRecord) -> [PushNotificationQueryInfo] {
        guard own.isReceiving, let content = own.content, let profile = own.profile else { return [] }
        let owner = KeyHash(of: cryptography.publicKey).bytes
        return (own.serverKeys + order.filter(isKept)).compactMap { server in
            // While it is renewed, the former version holds.
            guard let record = servers[server], record.phase == .idle || record.isPending && record.isRegistered,
                let accepted = record.accepted,
                accepted.contentVersion == content.version
            else { return nil }
            let isFiltered = profile.contactsOnly
            return PushNotificationQueryInfo(
                accessToken: isFiltered ? AccessToken("") : content.accessToken, installationID: own.installationID, publicKey: owner,
                allowedKeyList: content.allowedKeyList.map(\.bytes), grant: accepted.grant, version: accepted.version,
                serverPublicKey: server.compressed)
        }
    }
}
