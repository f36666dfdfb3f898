import Core
import StatusProtocol
import WakuCrypto

/// Keeps one device registered with several servers, with the same content. Input: settings, answers and time. Output: registrations to send.
///
/// Each server has at most one pending registration, until its answer or for 10 s; ``ServerRegistration`` shows the states.
struct RegistrationMachine: RegistrationStates {
    static let ownQueryDeadline = Duration.seconds(4)

    private let cryptography: any ClientCryptography
    var own: OwnRecord
    var isOwnChanged: Bool
    var servers: [PublicKey: ServerRegistration] = [:]
    var order: [PublicKey] = []
    var actions: [RegistrationAction<DeployedVersion>] = []
    var changed: Set<PublicKey> = []

    init(
        cryptography: any ClientCryptography, own: OwnRecord?, restoring records: [ServerRegistration], installationID: InstallationID,
        at now: Timestamp
    ) {
        self.cryptography = cryptography
        self.own = own ?? OwnRecord(installationID: installationID, time: now)
        isOwnChanged = own == nil
        restore(records)
    }

    // MARK: Settings

    /// Sets the profile and the servers to register with. Sends nothing when nothing changed, unless it is to be sent again.
    mutating func register(_ profile: DeviceProfile, with servers: [PushServer], again: Bool) {
        let old = own.profile
        // A server with another VAPID key gets the subscription with that one.
        let renamesKey =
            profile.platform == .webPush
            && servers.contains { server in
                own.servers.contains { $0.key == server.key && $0.vapidKey != server.vapidKey }
            }
        own.isReceiving = true
        own.profile = profile
        own.servers = servers.reduce(into: []) { list, server in
            if !list.contains(where: { $0.key == server.key }) { list.append(server) }
        }
        // Contents of earlier releases have no list when there are no contacts.
        let lacksList = profile.contactsOnly && own.content?.allowedKeyList.isEmpty == true
        let revokesToken = lacksList || old.map { profile.revokesToken(of: $0) } ?? false
        let isSame = own.content != nil && !renamesKey && !revokesToken && old.map { profile.isRegisteredAs($0) } ?? false
        if !isSame { own.content = content(for: profile, keepsToken: !revokesToken) }
        isOwnChanged = true
        reconcile(again: again)
    }

    private func content(for profile: DeviceProfile, keepsToken: Bool) -> RegistrationContent {
        let token = (keepsToken ? own.content?.accessToken : nil) ?? cryptography.makeAccessToken()
        return RegistrationContent(
            version: (own.content?.version ?? 0) + 1, accessToken: token,
            allowedKeyList: profile.allowedKeyList(token, by: cryptography).map(StoredData.init))
    }

    mutating func setReceiving(_ isReceiving: Bool) {
        own.isReceiving = isReceiving
        isOwnChanged = true
        reconcile()
    }

    mutating func setChatIdentity(_ chatIdentity: [UInt8]) {
        guard own.chatIdentity != chatIdentity else { return }
        own.chatIdentity = chatIdentity
        isOwnChanged = true
        if own.isReceiving { actions.append(.rowsChanged) }
    }

    // MARK: Target state

    mutating func resume(at now: Timestamp, jitter: inout Jitter) {
        for key in order {
            if let accepted = servers[key]?.accepted, accepted.renewal == nil {
                update(key) { $0.accepted?.renewal = RegistrationRenewal.time(ofUnknownAgeAt: now, jitter: jitter.next()) }
            }
            switch servers[key]?.attempt?.state {
            // Not being published any more. It is sent only if the settings are still the same.
            case .unsent: update(key) { $0.attempt?.state = .paused(until: StoredTime(now)) }
            case .checking: actions.append(.checkOwn(server: key))
            case .sent, .paused, nil: break
            }
        }
        for key in order { reconcile(key) }
    }

    /// Starts the registrations and unregistrations that bring the servers to the target state.
    ///
    /// - Parameter again: Whether to register again with servers that may have lost the registration, refused it, or failed. The former one is still
    ///   advertised.
    mutating func reconcile(again: Bool = false) {
        // Web Push subscriptions go only to servers that the application named as servers for them.
        let isWebPush = own.profile?.platform == .webPush
        let wanted = own.isReceiving && own.content != nil ? own.servers.filter { !isWebPush || $0.vapidKey != nil } : []
        for server in wanted where servers[server.key] == nil {
            add(ServerRegistration(server))
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
        if again { for key in order where servers[key]?.isWanted == true && servers[key]?.mayBeSentAgain == true { register(key) } }
        for key in order { reconcile(key) }
    }

    /// Registers again with a server that answered that it does not have the registration, unless it refused it.
    mutating func lost(by key: PublicKey) {
        guard let record = servers[key], record.mayBeSentAgain else { return reconcile() }
        if case .refused = record.phase { return }
        update(key) {
            $0.phase = .idle
            $0.accepted = nil
        }
        reconcile()
    }

    mutating func reconcile(_ key: PublicKey) {
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
        case .idle, .pending, .refused, .left: register(key)
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

    mutating func register(_ key: PublicKey, after previous: ServerRegistration.Attempt? = nil) {
        guard let content = own.content, let profile = own.profile else { return }
        var registration = profile.registration(
            with: key, accessToken: content.accessToken, allowedKeyList: content.allowedKeyList.map(\.bytes), by: cryptography)
        registration.deviceToken = profile.deviceToken(for: own.servers.first { $0.key == key })
        begin(key, registration, contentVersion: content.version, after: previous)
    }

    private mutating func begin(
        _ key: PublicKey, _ content: PushNotificationRegistration, contentVersion: UInt64?, after previous: ServerRegistration.Attempt?
    ) {
        guard let record = servers[key] else { return }
        let (next, isExhausted) = record.lastVersion.addingReportingOverflow(1)
        guard !isExhausted else { return refuse(key, .versionExhausted, contentVersion) }
        var registration = content
        registration.installationID = own.installationID
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

    var hasSomethingToAdvertise: Bool { !own.chatIdentity.isEmpty || !advertisedRows.isEmpty }
    var advertisesAtStart: Bool { own.isReceiving ? hasSomethingToAdvertise : own.nextAdvertisement != nil }

    /// The rows to advertise: those of servers that accepted the current content, also of servers to leave, until another one has accepted it.
    var advertisedRows: [PushNotificationQueryInfo] {
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
