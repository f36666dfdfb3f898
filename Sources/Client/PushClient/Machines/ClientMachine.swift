import StatusProtocol
import Core
import WakuCrypto

typealias ClientRecord = MachineRecord<DeployedVersion>
typealias ClientAction = MachineAction<DeployedVersion>
typealias ClientOutput = MachineOutput<DeployedVersion>

enum DeployedVersion: ClientVersion {
    /// A registration for one server, encrypted to it.
    struct Registration: Hashable, Sendable {
        let dialect: PushServer.Dialect?
        let requestID: [UInt8]
        let sealed: [UInt8]
    }

    typealias QueryRoute = Set<PushServer.Dialect>
    typealias Advertisement = ContactCodeAdvertisement
    typealias Own = OwnRecord
    typealias Server = ServerRegistration

    static let recordPrefix = ""
}

/// The client of the deployed protocol.
struct ClientMachine: PushClientMachine {
    typealias Version = DeployedVersion

    var own: OwnRecord
    var registrations: RegistrationMachine
    var directory: Directory
    var queries = QueryTable()
    var notifications: NotificationMachine
    var advertising: AdvertisingMachine
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
    init(
        records: [ClientRecord] = [], installationID: InstallationID, cryptography: any ClientCryptography,
        jitter: Jitter = .random(), at now: Timestamp
    ) {
        let restored = RecordsByKind(records)
        own = restored.own ?? OwnRecord(installationID: installationID, time: now)
        isOwnChanged = restored.own == nil
        self.cryptography = cryptography
        self.jitter = jitter
        registrations = RegistrationMachine(cryptography: cryptography, restoring: restored.servers)
        registrations.installationID = own.installationID
        directory = Directory(cryptography: cryptography, restoring: restored.registrants)
        notifications = NotificationMachine(restoring: restored.messages)
        advertising = AdvertisingMachine(isActive: false, at: now)
    }

    // MARK: Time

    /// Called at the beginning of each run: resumes unfinished work, advertises the client's devices, and looks up advertisements published
    /// meanwhile.
    mutating func start(at now: Timestamp) -> ClientOutput {
        if isStarted {
            for query in queries.endAll() where query.ownCheckAt == nil { self.query(query.registrant, at: now) }
            notifications.resume()
        }
        isStarted = true
        notifications.forgetOldOutcomes(at: now)
        registrations.resume(at: now, jitter: &jitter)
        // If the device was unregistered meanwhile, the last advertisement must be withdrawn.
        let isActive = own.isReceiving ? hasSomethingToAdvertise : own.nextAdvertisement != nil
        advertising = AdvertisingMachine(isActive: isActive, at: now)
        var watched = directory.watched
        if own.isReceiving, !watched.contains(publicKey) { watched.append(publicKey) }
        watched.sort { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        directory.beginRun(lookingUp: watched, at: now)
        if !watched.isEmpty {
            actions.append(.watch(watched))
            actions.append(.lookUp(watched))
        }
        return wake(at: now)
    }

    mutating func wake(at now: Timestamp) -> ClientOutput {
        registrations.wake(own, at: now, jitter: &jitter)
        for query in expireQueries(at: now) { ended(query, at: now) }
        return settle(at: now)
    }

    mutating func collectRegistrations(at now: Timestamp) {
        for action in registrations.takeActions() {
            switch action {
            case .send(let server, let registration):
                // Before the start nothing is sent: the start sends every unpublished registration.
                if isStarted { actions.append(.register(server: server, registration)) }
            case .checkOwn(let server): query(publicKey, ownCheckAt: server, at: now)
            case .rowsChanged: advertising.rowsChanged(at: now)
            case .report(let event): actions.append(.report(event))
            }
        }
    }

    var publicKey: PublicKey { cryptography.publicKey }

    // MARK: Queries

    /// The servers that can be queried about any registrant.
    var queryServers: [PushServer] { own.servers + contactServers }

    var listsServers: Bool { !queryServers.isEmpty }

    mutating func query(_ registrant: PublicKey, at now: Timestamp) {
        query(registrant, ownCheckAt: nil, at: now)
    }

    private mutating func query(_ registrant: PublicKey, ownCheckAt server: PublicKey?, at now: Timestamp) {
        let listed = queryServers
        let servers = server.map { [$0] } ?? directory.servers(of: registrant).union(listed.map(\.key))
        guard let ticket = queries.begin(registrant, servers: servers, ownCheckAt: server, at: now) else { return }
        if server == nil { directory.noteQuery(about: registrant, at: now) }
        let known = servers.map { server in listed.first { $0.key == server }?.dialect }
        let dialects = known.contains(nil) ? Set(PushServer.Dialect.allCases) : Set(known.compactMap { $0 })
        actions.append(.query(ticket, registrant: registrant, dialects))
    }

    // MARK: Advertising

    var hasSomethingToAdvertise: Bool { !own.chatIdentity.isEmpty || !registrations.advertisedRows(own).isEmpty }

    func advertisement(at now: Timestamp) -> ContactCodeAdvertisement {
        let rows = registrations.advertisedRows(own)
        return ContactCodeAdvertisement(
            pushNotificationInfo: rows + directory.pairedRows(besides: own.installationID, at: now), chatIdentity: own.chatIdentity)
    }
}
