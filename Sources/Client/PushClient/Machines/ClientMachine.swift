import StatusProtocol
import Core
import Waku
import WakuCrypto

/// A complete client without I/O or clock. Input: requests, answers and time. Output: changes to store, messages to publish, and the next wake-up
/// time.
///
/// It combines four parts: registration, advertising, the directory with its queries, and notification.
struct ClientMachine: ClientStateMachine {
    var own: OwnRecord
    var registrations: RegistrationMachine
    var directory: Directory
    var queries = QueryTable()
    var notifications: NotificationMachine
    var advertising: AdvertisingMachine
    /// Registrants whose latest advertisement was rejected, wholly or in part.
    var advertisementFlaws: [PublicKey: AdvertisementFlaw] = [:]
    /// Servers to query about others besides those that this client is registered with. Set by the application at each start.
    var contactServers: [PushServer] = []
    private(set) var isStarted = false
    let cryptography: any ClientCryptography
    var jitter: Jitter
    var isOwnChanged = false
    var actions: [ClientAction] = []

    /// - Parameters:
    ///   - records: The stored records; empty at the very first start.
    ///   - installationID: The id for a new client. If there are records, their id is used.
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

    /// The latest time to call ``wake(at:)``; nil when no deadline is pending.
    var nextWakeUp: Timestamp? {
        var earliest = registrations.nextWakeUp
        for time in [notifications.nextWakeUp, queries.nextWakeUp, advertising.nextWakeUp] {
            guard let time else { continue }
            earliest = min(earliest ?? time, time)
        }
        return earliest
    }

    /// Called at the beginning of each run: resumes unfinished work, advertises the client's devices, and looks up advertisements published
    /// meanwhile.
    mutating func start(at now: Timestamp) -> ClientOutput {
        if isStarted {
            for query in queries.endAll() where query.ownCheckAt == nil { self.query(query.registrant, ownCheckAt: nil, at: now) }
            notifications.resume()
        }
        isStarted = true
        directory.resetLookUps()
        registrations.resume()
        // If the device was unregistered meanwhile, the last advertisement must be withdrawn.
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

    static func isReport(_ action: ClientAction) -> Bool {
        if case .report = action { true } else { false }
    }

    mutating func wake(at now: Timestamp) -> ClientOutput {
        registrations.wake(own, at: now, jitter: &jitter)
        for query in queries.expire(at: now) { ended(query, row: nil, at: now) }
        return settle(at: now)
    }

    /// Lets every machine act, and collects their output. This terminates because each message queries once per round.
    mutating func settle(at now: Timestamp) -> ClientOutput {
        // The output of one machine may unblock another: a query that can't be sent ends at once.
        while true {
            guard notifications.isActive else {
                _ = collect(at: now)
                break
            }
            notifications.queried = Set(queries.queries.values.lazy.filter { !$0.isEnded && $0.ownCheckAt == nil }.map(\.registrant))
            let directory = directory
            let listsServers = !queryServers.isEmpty
            notifications.serverless = listsServers ? [] : directory.lookUpsEnded.filter { directory.servers(of: $0).isEmpty }
            notifications.wake(
                directory, askable: { listsServers || !directory.servers(of: $0).isEmpty },
                own: (cryptography.publicKey, own.installationID), at: now, jitter: &jitter)
            guard collect(at: now) else { break }
        }
        if isStarted, advertising.wake(at: now) { actions.append(.advertise(advertisement(at: now))) }
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

    /// - Returns: Whether a change may let the machines continue.
    private mutating func collect(at now: Timestamp) -> Bool {
        var goesOn = false
        for action in registrations.takeActions() {
            switch action {
            case .send(let server, let dialect, let requestID, let sealed):
                // Before the start nothing is sent: the start sends every unpublished registration.
                if isStarted { actions.append(.register(server: server, dialect: dialect, requestID: requestID, sealed: sealed)) }
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
            case .request(let ticket, let server, let request):
                actions.append(.request(ticket, server: server, PushNotificationRequest(request)))
            case .report(let event): actions.append(.report(event))
            case .finished(let id): actions.append(.finished(messageID: id))
            }
        }
        return goesOn
    }

    /// The servers that can be queried about any registrant.
    var queryServers: [PushServer] { own.servers + contactServers }

    mutating func query(_ registrant: PublicKey, ownCheckAt server: PublicKey?, at now: Timestamp) {
        let listed = queryServers
        let servers = server.map { [$0] } ?? directory.servers(of: registrant).union(listed.map(\.key))
        guard let ticket = queries.begin(registrant, servers: servers, ownCheckAt: server, at: now) else { return }
        let known = servers.map { server in listed.first { $0.key == server }?.dialect }
        let dialects = known.contains(nil) ? Set(PushServer.Dialect.allCases) : Set(known.compactMap { $0 })
        actions.append(.query(ticket, registrant: registrant, dialects: dialects))
    }

    // MARK: Advertising

    func hasSomethingToAdvertise(at now: Timestamp) -> Bool {
        !own.chatIdentity.isEmpty || !registrations.advertisedRows(own).isEmpty
    }

    private func advertisement(at now: Timestamp) -> ContactCodeAdvertisement {
        let rows = registrations.advertisedRows(own)
        return ContactCodeAdvertisement(
            pushNotificationInfo: rows + directory.pairedRows(besides: own.installationID, at: now), chatIdentity: own.chatIdentity)
    }
}

extension PushNotificationRequest {
    fileprivate init(_ request: NotificationRequest) {
        let entries = request.entries.map { entry in
            PushNotification(
                accessToken: entry.token, chatID: request.chatHash, publicKey: KeyHash(of: entry.device.registrant).bytes,
                installationID: entry.device.installationID, message: request.content, kind: NotificationKind(rawValue: request.kind),
                author: request.authorHash)
        }
        self.init(requests: entries, messageID: request.messageID)
    }
}
