import Core
import StatusProtocol
import WakuCrypto

typealias V01Machine = PushClientMachine<Version01>
typealias V01Record = MachineRecord<Version01>

extension V01.Register: RegistrationMessage {}

enum Version01: ClientVersion {
    typealias Own = V01OwnRecord
    typealias Server = V01ServerRecord
    typealias Registrations = V01RegistrationMachine
    typealias Registration = V01.Register
    typealias RegistrationResponse = V01.RegistrationResponse
    /// The servers, each with its own topic.
    typealias QueryRoute = [PublicKey]
    typealias Advertisement = V01.ContactCodeAdvertisement

    static let recordPrefix = "v0.1/"
    static let queriesOnceAfterRefusal = true
    static let watchesOwnDevices = false

    /// The maximum number of servers per query, since a registrant may advertise many.
    static let queriedServerLimit = 16

    /// The servers that the registrant advertised; if there are none, this client's own and those that the application listed.
    static func servers(about registrant: PublicKey, also others: [PublicKey], _ machine: V01Machine) -> Set<PublicKey> {
        var servers = Set(others)
        let advertised = machine.directory.rows(of: registrant).map(\.server)
        let known = advertised.isEmpty ? machine.own.servers + machine.contactServers.map(\.key) : advertised
        for server in known where servers.count < queriedServerLimit { servers.insert(server) }
        return servers
    }

    static func route(to servers: Set<PublicKey>, _ machine: V01Machine) -> [PublicKey] {
        servers.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
    }

    static func advertisement(of machine: V01Machine, at now: Timestamp) -> V01.ContactCodeAdvertisement {
        V01.ContactCodeAdvertisement(info: machine.registrations.advertisedRows)
    }

    static func rowCount(of advertisement: V01.ContactCodeAdvertisement) -> Int { advertisement.info.count }
}

extension V01Machine {
    /// - Parameters:
    ///   - records: The stored records; empty at the very first start.
    ///   - installationID: The id for a new client. If there are records, their id is used.
    init(
        records: [Record] = [], installationID: InstallationID, identity: PrivateKey, jitter: Jitter = .random(), at now: Timestamp
    ) {
        let restored = RecordsByKind(records)
        let registrations = V01RegistrationMachine(
            identity: identity, own: restored.own, restoring: restored.servers, installationID: installationID, at: now)
        self.init(restored, registrations, IdentityCryptography(identity: identity), jitter, at: now)
    }

    // MARK: Answers

    mutating func queryAnswered(_ ticket: QueryTable.Ticket, by server: PublicKey, rows: [V01.QueryInfo], at now: Timestamp) {
        queryAnswered(ticket, by: server, at: now) { [identity = registrations.identity] directory, registrant in
            directory.learn(answered: rows, about: registrant, by: server, identity: identity, at: now)
        }
    }

    /// An acknowledgement has one result for all tokens of its request, so BAD_TOKEN may refer to any of them.
    mutating func requestAcknowledged(
        _ ticket: NotificationMachine.Ticket, by server: PublicKey, _ error: V01.Acknowledgement.ErrorType?, at now: Timestamp
    ) {
        let verdict: NotificationVerdict =
            switch error {
            case nil: .notified
            case .badToken: .tokenRefused
            case .internalError: .failed
            case .unknown: .otherError
            }
        requestAnswered(ticket, by: server, at: now) { _ in verdict }
    }

    /// Handles an advertisement signed by its owner.
    ///
    /// - Parameter age: The time since it was published.
    mutating func advertised(by owner: PublicKey, rows: [V01.AdvertisementInfo], age: Duration, at now: Timestamp) {
        guard directory.registrants[owner]?.isWatched == true else { return }
        learned(from: owner, directory.learn(advertised: rows, by: owner, sentAt: now - max(age, .zero)))
    }
}
