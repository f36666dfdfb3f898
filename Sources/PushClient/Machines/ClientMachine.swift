import StatusProtocol
import Waku
import WakuCrypto

/// A whole client without I/O or clock: wishes, answers and time come in; what to keep, what to publish and the next wake-up go out.
///
/// It holds the four machines together: registering, advertising, the directory with its queries, and notifying.
struct ClientMachine: Sendable {
    private(set) var own: OwnRecord
    private(set) var registrations: RegistrationMachine
    private(set) var directory: Directory
    private(set) var queries = QueryTable()
    private(set) var notifications: NotificationMachine
    private(set) var advertising: AdvertisingMachine
    private let cryptography: any ClientCryptography
    private var jitter: Jitter
    private var isOwnChanged = false
    private var actions: [ClientAction] = []

    /// - Parameters:
    ///   - records: What was kept; none at the very first start.
    ///   - installationID: Of a new client. One that has records has its id.
    ///   - now: The client's time.
    init(
        records: [ClientRecord] = [], installationID: InstallationID, cryptography: any ClientCryptography,
        jitter: Jitter = .random(), at now: Timestamp
    ) {
        var own: OwnRecord?
        var servers: [ServerRegistration] = []
        var registrants: [RegistrantRecord] = []
        var messages: [MessageRecord] = []
        for record in records {
            switch record {
            case .own(let record): own = record
            case .server(let record): servers.append(record)
            case .registrant(let record): registrants.append(record)
            case .message(let record): messages.append(record)
            }
        }
        self.own = own ?? OwnRecord(installationID: installationID, time: now)
        isOwnChanged = own == nil
        self.cryptography = cryptography
        self.jitter = jitter
        registrations = RegistrationMachine(cryptography: cryptography, restoring: servers)
        registrations.installationID = self.own.installationID
        directory = Directory(cryptography: cryptography, restoring: registrants)
        notifications = NotificationMachine(restoring: messages)
        advertising = AdvertisingMachine(isActive: false, at: now)
    }

    // MARK: Time

    /// When to call ``wake(at:)`` at the latest; nil while nothing waits for time to pass.
    var nextWakeUp: Timestamp? {
        var earliest = registrations.nextWakeUp
        for time in [notifications.nextWakeUp, queries.nextWakeUp, advertising.nextWakeUp] {
            guard let time else { continue }
            earliest = min(earliest ?? time, time)
        }
        return earliest
    }

    /// Once after each start: what was on its way goes on, the own devices are advertised, what others advertised meanwhile is looked up.
    mutating func start(at now: Timestamp) -> ClientOutput {
        registrations.resume()
        // What was advertised last is taken back if the device was unregistered meanwhile.
        let isActive = own.isReceiving ? hasSomethingToAdvertise(at: now) : own.nextAdvertisement != nil
        advertising = AdvertisingMachine(isActive: isActive, at: now)
        var watched = directory.watched
        if own.isReceiving, !watched.contains(cryptography.publicKey) { watched.append(cryptography.publicKey) }
        watched.sort { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        if !watched.isEmpty {
            actions.append(.watch(watched))
            actions.append(.lookUp(watched))
        }
        return wake(at: now)
    }

    mutating func wake(at now: Timestamp) -> ClientOutput {
        registrations.wake(own, at: now, jitter: &jitter)
        for query in queries.expire(at: now) { ended(query, row: nil, at: now) }
        return settle(at: now)
    }

    /// Lets every machine do what it can now, and collects what they want. Each message queries once a round, so that this ends.
    private mutating func settle(at now: Timestamp) -> ClientOutput {
        // What one wants may let another go on: a query that can't be asked ends at once.
        while true {
            guard notifications.isActive else {
                _ = collect(at: now)
                break
            }
            notifications.queried = Set(queries.queries.values.lazy.filter { !$0.isEnded && $0.ownCheckAt == nil }.map(\.registrant))
            let directory = directory
            let listed = own.servers
            notifications.wake(
                directory, askable: { !listed.isEmpty || !directory.servers(of: $0).isEmpty },
                own: (cryptography.publicKey, own.installationID), at: now, jitter: &jitter)
            guard collect(at: now) else { break }
        }
        if advertising.wake(at: now) { actions.append(.advertise(advertisement(at: now))) }
        var output = ClientOutput(actions: actions)
        actions = []
        for key in registrations.takeChanges() {
            output.changes[.server(key)] = .some(registrations.servers[key].map(ClientRecord.server))
        }
        for key in directory.takeChanges() {
            output.changes[.registrant(key)] = .some(directory.registrants[key].map(ClientRecord.registrant))
        }
        for id in notifications.takeChanges() {
            output.changes[.message(id)] = .some(notifications.messages[id].map(ClientRecord.message))
        }
        if isOwnChanged || !output.changes.isEmpty {
            own.time = max(own.time, now)
            output.changes[.own] = .own(own)
            isOwnChanged = false
        }
        return output
    }

    /// - Returns: Whether something happened that may let the machines go on.
    private mutating func collect(at now: Timestamp) -> Bool {
        var goesOn = false
        for action in registrations.takeActions() {
            switch action {
            case .send(let server, let dialect, let requestID, let sealed):
                actions.append(.register(server: server, dialect: dialect, requestID: requestID, sealed: sealed))
            case .checkOwn(let server): query(cryptography.publicKey, ownCheckAt: server, at: now)
            case .rowsChanged: advertising.rowsChanged(at: now)
            case .report(let event): actions.append(.report(event))
            }
        }
        for action in notifications.takeActions() {
            switch action {
            case .query(let registrant):
                query(registrant, ownCheckAt: nil, at: now)
                goesOn = true
            case .request(let ticket, let server, let request): actions.append(.request(ticket, server: server, request))
            case .report(let event): actions.append(.report(event))
            case .finished(let id): actions.append(.finished(messageID: id))
            }
        }
        return goesOn
    }

    private mutating func query(_ registrant: PublicKey, ownCheckAt server: PublicKey?, at now: Timestamp) {
        let servers = server.map { [$0] } ?? directory.servers(of: registrant).union(own.servers.map(\.key))
        guard let ticket = queries.begin(registrant, servers: servers, ownCheckAt: server, at: now) else { return }
        let known = servers.map { server in own.servers.first { $0.key == server }?.dialect }
        let dialects = known.contains(nil) ? Set(PushServer.Dialect.allCases) : Set(known.compactMap { $0 })
        actions.append(.query(ticket, registrant: registrant, dialects: dialects))
    }

    // MARK: What the application wants

    /// Sets what is registered, and where. Nothing is sent when nothing changed.
    mutating func register(_ profile: DeviceProfile, with servers: [PushServer], at now: Timestamp) -> ClientOutput {
        let old = own.profile
        own.isReceiving = true
        own.profile = profile
        own.servers = servers.reduce(into: []) { list, server in
            if !list.contains(where: { $0.key == server.key }) { list.append(server) }
        }
        if let content = own.content, let old, profile.isRegisteredAs(old), !profile.revokesToken(of: old) {
            own.content = content
        } else {
            own.content = content(for: profile, after: old)
        }
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        actions.append(.watch([cryptography.publicKey]))
        return settle(at: now)
    }

    private func content(for profile: DeviceProfile, after old: DeviceProfile?) -> RegistrationContent {
        let keepsToken = old.map { !profile.revokesToken(of: $0) } ?? true
        let token = (keepsToken ? own.content?.accessToken : nil) ?? cryptography.makeAccessToken()
        let contacts = profile.contacts.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        return RegistrationContent(
            version: (own.content?.version ?? 0) + 1, accessToken: token,
            allowedKeyList: profile.contactsOnly ? contacts.map { StoredData(cryptography.seal(token, for: $0)) } : [])
    }

    /// Switches receiving on with what was registered last, or off, which ends all registrations.
    mutating func setReceiving(_ isReceiving: Bool, at now: Timestamp) -> ClientOutput {
        guard own.isReceiving != isReceiving else { return ClientOutput() }
        guard isReceiving else { return unregister(at: now) }
        own.isReceiving = true
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        return settle(at: now)
    }

    /// Asks the servers about a registrant of whom no usable token is known.
    mutating func refresh(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        let isKnown = !directory.activeInstallations(of: registrant, limit: 1, at: now).isEmpty
        let isAskable = !own.servers.isEmpty || !directory.servers(of: registrant).isEmpty
        if !isKnown, isAskable { query(registrant, ownCheckAt: nil, at: now) }
        return settle(at: now)
    }

    /// Ends the registrations with all servers, and keeps trying until they answered.
    mutating func unregister(at now: Timestamp) -> ClientOutput {
        own.isReceiving = false
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        return settle(at: now)
    }

    mutating func setSending(_ isSending: Bool) -> ClientOutput {
        guard own.isSending != isSending else { return ClientOutput() }
        own.isSending = isSending
        return ClientOutput(changes: [.own: .own(own)])
    }

    /// What else goes into advertisements: an encoded ChatIdentity, empty for none.
    mutating func setChatIdentity(_ chatIdentity: [UInt8], at now: Timestamp) -> ClientOutput {
        guard own.chatIdentity != chatIdentity else { return ClientOutput() }
        own.chatIdentity = chatIdentity
        isOwnChanged = true
        if own.isReceiving { advertising.rowsChanged(at: now) }
        return settle(at: now)
    }

    /// Listens to a registrant's advertisements from now on.
    mutating func discover(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        watch(registrant)
        return settle(at: now)
    }

    private mutating func watch(_ registrant: PublicKey) {
        guard directory.watch(registrant) else { return }
        actions.append(.watch([registrant]))
        if directory.registrants[registrant]?.wasLookedUp != true { actions.append(.lookUp([registrant])) }
    }

    /// Forgets what is known of a registrant, and listens to its advertisements no more after the next start.
    mutating func forget(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        directory.forget(registrant)
        return settle(at: now)
    }

    mutating func noteActivity(of installationID: InstallationID, of registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        directory.noteActivity(of: installationID, of: registrant, at: now)
        return settle(at: now)
    }

    mutating func setDeviceLimit(_ limit: Int) {
        notifications.deviceLimit = limit
    }

    /// Has devices notified. The client must be allowed to send.
    mutating func notify(_ message: OutgoingNotification, author: [UInt8], at now: Timestamp) -> ClientOutput {
        for recipient in message.recipients where recipient.registrant != cryptography.publicKey { watch(recipient.registrant) }
        notifications.notify(message, author: author, own: (cryptography.publicKey, own.installationID), at: now)
        return settle(at: now)
    }

    mutating func cancel(_ messageID: [UInt8], at now: Timestamp) -> ClientOutput {
        notifications.cancel(messageID)
        return settle(at: now)
    }

    // MARK: What became of publications

    mutating func registrationPublished(_ requestID: [UInt8], to server: PublicKey, isPublished: Bool, at now: Timestamp) -> ClientOutput {
        if isPublished {
            registrations.published(requestID, to: server, at: now)
        } else {
            registrations.notPublished(requestID, to: server, at: now, jitter: jitter.next())
        }
        return settle(at: now)
    }

    mutating func queryPublished(_ ticket: QueryTable.Ticket, isPublished: Bool, at now: Timestamp) -> ClientOutput {
        if isPublished {
            queries.published(ticket, at: now)
        } else if let query = queries.end(ticket) {
            ended(query, row: nil, at: now)
        }
        return settle(at: now)
    }

    mutating func requestPublished(_ ticket: NotificationMachine.Ticket, isPublished: Bool, at now: Timestamp) -> ClientOutput {
        if isPublished {
            notifications.published(ticket, at: now)
        } else {
            notifications.notPublished(ticket, at: now, jitter: &jitter)
        }
        return settle(at: now)
    }

    mutating func advertisementPublished(rowCount: Int, isPublished: Bool, at now: Timestamp) -> ClientOutput {
        if isPublished {
            advertising.published(goesOn: own.isReceiving && hasSomethingToAdvertise(at: now), at: now, jitter: jitter.next())
            own.nextAdvertisement = advertising.nextWakeUp
            isOwnChanged = true
            actions.append(.report(.advertised(rowCount: rowCount)))
        } else {
            advertising.notPublished(at: now, jitter: jitter.next())
        }
        return settle(at: now)
    }

    mutating func lookedUp(_ registrants: [PublicKey], at now: Timestamp) -> ClientOutput {
        for registrant in registrants { directory.lookedUp(registrant) }
        return settle(at: now)
    }

    // MARK: Answers

    /// What a server signed.
    mutating func registrationAnswered(
        by server: PublicKey, _ response: PushNotificationRegistrationResponse, at now: Timestamp
    ) -> ClientOutput {
        registrations.answered(by: server, requestID: response.requestID, error: response.error, own, at: now, jitter: &jitter)
        return settle(at: now)
    }

    mutating func queryAnswered(
        _ ticket: QueryTable.Ticket, by server: PublicKey, rows: [PushNotificationQueryInfo], at now: Timestamp
    ) -> ClientOutput {
        guard let query = queries.answered(ticket, by: server) else { return ClientOutput() }
        if query.ownCheckAt != nil {
            let hash = KeyHash(of: cryptography.publicKey).bytes
            let row = rows.first { $0.publicKey == hash && $0.installationID == own.installationID }
            if let query = queries.end(ticket) { ended(query, row: row.map { ($0.version, $0.grant) }, at: now) }
        } else {
            if directory.learn(answered: rows, about: query.registrant, by: server, at: now) { discovered(query.registrant, at: now) }
            let isEnough = queries.isComplete(ticket) || notifications.knowsAll(of: query.registrant, directory, since: query.begun)
            if isEnough, let query = queries.end(ticket) { ended(query, row: nil, at: now) }
        }
        return settle(at: now)
    }

    private mutating func ended(_ query: QueryTable.Query, row: (version: UInt64, grant: [UInt8])?, at now: Timestamp) {
        guard let server = query.ownCheckAt else { return }
        registrations.checked(server, row: row, own, at: now, jitter: &jitter)
    }

    mutating func requestAnswered(
        _ ticket: NotificationMachine.Ticket, by server: PublicKey, _ response: PushNotificationResponse, at now: Timestamp
    ) -> ClientOutput {
        for refused in notifications.answered(ticket, by: server, response, at: now) {
            directory.forgetToken(of: refused.installationID, of: refused.registrant, at: refused.server, token: refused.token)
        }
        return settle(at: now)
    }

    /// An advertisement with its owner's signature.
    ///
    /// - Parameters:
    ///   - owner: Who signed it.
    ///   - installationID: Which of the owner's devices published it; nil when it does not say.
    ///   - rows: Its rows.
    ///   - age: For how long it has been out.
    ///   - now: The client's time.
    mutating func advertised(
        by owner: PublicKey, from installationID: InstallationID?, rows: [PushNotificationQueryInfo], age: Duration, at now: Timestamp
    ) -> ClientOutput {
        let isOwn = owner == cryptography.publicKey
        guard isOwn ? installationID != own.installationID : directory.registrants[owner]?.isWatched == true else { return ClientOutput() }
        let rows = isOwn ? rows.filter { $0.installationID != own.installationID } : rows
        if directory.learn(advertised: rows, by: owner, from: installationID, sentAt: now - max(age, .zero)) { discovered(owner, at: now) }
        return settle(at: now)
    }

    private mutating func discovered(_ registrant: PublicKey, at now: Timestamp) {
        let count = Set(directory.rows(of: registrant).map(\.installationID)).count
        actions.append(.report(.discovered(registrant, deviceCount: count)))
    }

    // MARK: Advertising

    private func hasSomethingToAdvertise(at now: Timestamp) -> Bool {
        !own.chatIdentity.isEmpty || !registrations.advertisedRows(own).isEmpty
    }

    private func advertisement(at now: Timestamp) -> ContactCodeAdvertisement {
        let rows = registrations.advertisedRows(own)
        return ContactCodeAdvertisement(
            pushNotificationInfo: rows + directory.pairedRows(besides: own.installationID, at: now), chatIdentity: own.chatIdentity)
    }
}
