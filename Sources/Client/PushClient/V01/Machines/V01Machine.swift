import StatusProtocol
import Core
import WakuCrypto

typealias V01Record = MachineRecord<Version01>
typealias V01Action = MachineAction<Version01>
typealias V01Output = MachineOutput<Version01>

enum Version01: ClientVersion {
    typealias Registration = V01.Register
    /// The servers, each with its own topic.
    typealias QueryRoute = [PublicKey]
    typealias Advertisement = V01.ContactCodeAdvertisement

    typealias Own = V01OwnRecord
    typealias Server = V01ServerRecord

    static let recordPrefix = "v0.1/"
}

/// The client of version 0.1.
struct V01Machine: PushClientMachine {
    typealias Version = Version01

    var registrations: V01RegistrationMachine
    var directory: V01Directory
    var queries = QueryTable()
    var notifications: NotificationMachine
    var advertising: AdvertisingMachine
    var advertisementFlaws: [PublicKey: AdvertisementFlaw] = [:]
    /// Servers to query about registrants who advertise none, besides those that this client registers with. Set by the application at each start.
    var contactServers: [PublicKey] = []
    private(set) var isStarted = false
    let identity: PrivateKey
    var jitter: Jitter
    var actions: [V01Action] = []

    /// - Parameters:
    ///   - records: The stored records; empty at the very first start.
    ///   - installationID: The id for a new client. If there are records, their id is used.
    init(
        records: [V01Record] = [], installationID: InstallationID, identity: PrivateKey, jitter: Jitter = .random(), at now: Timestamp
    ) {
        let restored = RecordsByKind(records)
        self.identity = identity
        self.jitter = jitter
        registrations = V01RegistrationMachine(
            identity: identity, own: restored.own, restoring: restored.servers, installationID: installationID, at: now)
        directory = V01Directory(identity: identity, restoring: restored.registrants)
        notifications = NotificationMachine(restoring: restored.messages, queriesOnceAfterRefusal: true)
        advertising = AdvertisingMachine(isActive: false, at: now)
    }

    var publicKey: PublicKey { identity.publicKey }

    var own: V01OwnRecord {
        get { registrations.own }
        set { registrations.own = newValue }
    }

    var isOwnChanged: Bool {
        get { registrations.isOwnChanged }
        set { registrations.isOwnChanged = newValue }
    }

    // MARK: Time

    mutating func start(at now: Timestamp) -> V01Output {
        if isStarted {
            for query in queries.endAll() { self.query(query.registrant, also: Array(query.servers), at: now) }
            notifications.resume()
        }
        isStarted = true
        notifications.forgetOldOutcomes(at: now)
        registrations.resume(at: now, jitter: &jitter)
        // If the device was unregistered meanwhile, the last advertisement must be withdrawn.
        let isActive = own.isReceiving && hasSomethingToAdvertise || own.nextAdvertisement != nil
        advertising = AdvertisingMachine(isActive: isActive, at: now)
        let watched = directory.watched.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        directory.beginRun(lookingUp: watched, at: now)
        if !watched.isEmpty {
            actions.append(.watch(watched))
            actions.append(.lookUp(watched))
        }
        return wake(at: now)
    }

    mutating func wake(at now: Timestamp) -> V01Output {
        registrations.wake(at: now, jitter: &jitter)
        _ = expireQueries(at: now)
        return settle(at: now)
    }

    mutating func collectRegistrations(at now: Timestamp) {
        for action in registrations.takeActions() {
            switch action {
            // Before the start nothing is sent: the start sends every unpublished registration.
            case .send(let server, let register): if isStarted { actions.append(.register(server: server, register)) }
            case .rowsChanged: advertising.rowsChanged(at: now)
            case .report(let event): actions.append(.report(event))
            }
        }
    }

    // MARK: Advertising

    var hasSomethingToAdvertise: Bool { !registrations.advertisedRows.isEmpty }

    func advertisement(at now: Timestamp) -> V01.ContactCodeAdvertisement {
        V01.ContactCodeAdvertisement(info: registrations.advertisedRows)
    }

    // MARK: Queries

    var listsServers: Bool { !own.servers.isEmpty || !contactServers.isEmpty }

    mutating func query(_ registrant: PublicKey, at now: Timestamp) {
        query(registrant, also: [], at: now)
    }

    /// The maximum number of servers per query, since a registrant may advertise many.
    static let queriedServerLimit = 16

    /// Queries the servers that the registrant advertised; if there are none, this client's own servers and ``contactServers``.
    mutating func query(_ registrant: PublicKey, also others: [PublicKey], at now: Timestamp) {
        var servers = Set(others)
        let advertised = directory.rows(of: registrant).map(\.server)
        let known = advertised.isEmpty ? own.servers + contactServers : advertised
        for server in known where servers.count < Self.queriedServerLimit { servers.insert(server) }
        guard !servers.isEmpty, let ticket = queries.begin(registrant, servers: servers, at: now) else { return }
        directory.noteQuery(about: registrant, at: now)
        let sorted = servers.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        actions.append(.query(ticket, registrant: registrant, sorted))
    }
}
