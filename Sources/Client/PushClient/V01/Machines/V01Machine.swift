import StatusProtocol
import Core
import Waku
import WakuCrypto

/// An action for the driver of a ``V01Machine``, to perform after the accompanying changes were stored.
enum V01Action: Hashable, Sendable {
    case register(server: PublicKey, V01.Register)
    case query(QueryTable.Ticket, registrant: PublicKey, servers: [PublicKey])
    case request(NotificationMachine.Ticket, server: PublicKey, NotificationRequest)
    case advertise(V01.ContactCodeAdvertisement)
    /// Subscribe to the contact code topics of these registrants.
    case watch([PublicKey])
    /// Look up the latest advertisements of these registrants in the relay's store.
    case lookUp([PublicKey])
    case report(PushClientEvent)
    case finished(messageID: [UInt8])
}

typealias V01Output = MachineOutput<V01Record, V01Action>

/// A complete client of version 0.1 without I/O or clock. Input: requests, answers and time. Output: changes to store, messages to publish, and the
/// next wake-up time.
///
/// It shares queries, notifications and the advertising schedule with the client of the deployed protocol; registrations and the directory are its
/// own.
struct V01Machine: ClientStateMachine {
    var registrations: V01RegistrationMachine
    var directory: V01Directory
    var queries = QueryTable()
    var notifications: NotificationMachine
    var advertising: AdvertisingMachine
    /// Registrants whose latest advertisement was rejected, wholly or in part.
    var advertisementFlaws: [PublicKey: AdvertisementFlaw] = [:]
    private(set) var isStarted = false
    let identity: PrivateKey
    var jitter: Jitter
    var actions: [V01Action] = []

    /// - Parameters:
    ///   - records: The stored records; empty at the very first start.
    ///   - installationID: The id for a new client. If there are records, their id is used.
    ///   - identity: The account's key.
    ///   - jitter: Random numbers for pauses.
    ///   - now: The client's time.
    init(
        records: [V01Record] = [], installationID: InstallationID, identity: PrivateKey, jitter: Jitter = .random(), at now: Timestamp
    ) {
        var own: V01OwnRecord?
        var servers: [V01ServerRecord] = []
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
        self.identity = identity
        self.jitter = jitter
        registrations = V01RegistrationMachine(
            identity: identity, own: own, restoring: servers, installationID: installationID, at: now)
        directory = V01Directory(identity: identity, restoring: registrants)
        notifications = NotificationMachine(restoring: messages, queriesOnceAfterRefusal: true)
        advertising = AdvertisingMachine(isActive: false, at: now)
    }

    var own: V01OwnRecord { registrations.own }

    // MARK: Time

    var nextWakeUp: Timestamp? {
        [registrations.nextWakeUp, notifications.nextWakeUp, queries.nextWakeUp, advertising.nextWakeUp].compactMap(\.self).min()
    }

    mutating func start(at now: Timestamp) -> V01Output {
        if isStarted {
            for query in queries.endAll() { self.query(query.registrant, also: Array(query.servers), at: now) }
            notifications.resume()
        }
        isStarted = true
        directory.resetLookUps()
        registrations.resume()
        // If the device was unregistered meanwhile, the last advertisement must be withdrawn.
        let isActive = own.isReceiving && !registrations.advertisedRows.isEmpty || own.nextAdvertisement != nil
        advertising = AdvertisingMachine(isActive: isActive, at: now)
        let watched = directory.watched.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        if !watched.isEmpty {
            // Advertisements may have been published meanwhile: the known rows may be outdated until the next look-up.
            for registrant in watched { directory.book.update(registrant) { $0.wasLookedUp = false } }
            actions.append(.watch(watched))
            actions.append(.lookUp(watched))
        }
        return wake(at: now)
    }

    static func isReport(_ action: V01Action) -> Bool {
        if case .report = action { true } else { false }
    }

    mutating func wake(at now: Timestamp) -> V01Output {
        registrations.wake(at: now, jitter: &jitter)
        _ = queries.expire(at: now)
        return settle(at: now)
    }

    /// Lets every machine act, and collects their output.
    mutating func settle(at now: Timestamp) -> V01Output {
        // The output of one machine may unblock another: a query that can't be sent ends at once.
        var goesOn = true
        while goesOn {
            goesOn = false
            if notifications.isActive {
                notifications.queried = Set(queries.queries.values.lazy.filter { !$0.isEnded }.map(\.registrant))
                let (directory, listed) = (directory, own.servers)
                notifications.wake(
                    directory, askable: { !listed.isEmpty || !directory.servers(of: $0).isEmpty },
                    own: (identity.publicKey, own.installationID), at: now, jitter: &jitter)
            }
            goesOn = collect(at: now)
        }
        if isStarted, advertising.wake(at: now) {
            actions.append(.advertise(V01.ContactCodeAdvertisement(info: registrations.advertisedRows)))
        }
        var output = V01Output(actions: actions)
        actions = []
        for key in registrations.takeChanges() {
            output.changes[.server(key)] = .some(registrations.servers[key].map(V01Record.server))
        }
        for key in directory.takeChanges() {
            output.changes[.registrant(key)] = .some(directory.registrants[key].map(V01Record.registrant))
        }
        for id in notifications.takeChanges() {
            output.changes[.message(id)] = .some(notifications.messages[id].map(V01Record.message))
        }
        if registrations.isOwnChanged || !output.changes.isEmpty {
            registrations.own.time = max(own.time, now)
            output.changes[.own] = .own(own)
            registrations.isOwnChanged = false
        }
        return output
    }

    /// - Returns: Whether a change may let the machines continue.
    private mutating func collect(at now: Timestamp) -> Bool {
        for action in registrations.takeActions() {
            switch action {
            // Before the start nothing is sent: the start sends every unpublished registration.
            case .send(let server, let register): if isStarted { actions.append(.register(server: server, register)) }
            case .rowsChanged: advertising.rowsChanged(at: now)
            case .report(let event): actions.append(.report(event))
            }
        }
        var goesOn = false
        for action in notifications.takeActions() {
            switch action {
            case .query(let registrant):
                query(registrant, at: now)
                goesOn = true
            case .request(let ticket, let server, let request): actions.append(.request(ticket, server: server, request))
            case .report(let event): actions.append(.report(event))
            case .finished(let id): actions.append(.finished(messageID: id))
            }
        }
        return goesOn
    }

    /// The maximum number of servers per query, since a registrant may advertise many.
    static let queriedServerLimit = 16

    /// Queries the servers that the registrant advertised; if there are none, the servers that this client registers with.
    ///
    /// - Parameters:
    ///   - registrant: The owner of the devices.
    ///   - others: Additional servers to query.
    ///   - now: The client's time.
    mutating func query(_ registrant: PublicKey, also others: [PublicKey] = [], at now: Timestamp) {
        var servers = Set(others)
        let advertised = directory.rows(of: registrant).map(\.server)
        for server in advertised.isEmpty ? own.servers : advertised where servers.count < Self.queriedServerLimit { servers.insert(server) }
        guard !servers.isEmpty, let ticket = queries.begin(registrant, servers: servers, at: now) else { return }
        let sorted = servers.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        actions.append(.query(ticket, registrant: registrant, servers: sorted))
    }
}
