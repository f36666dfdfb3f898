import Core
import StatusProtocol
import WakuCrypto

typealias ClientMachine = PushClientMachine<DeployedVersion>
typealias ClientRecord = MachineRecord<DeployedVersion>

/// The protocol that Status has deployed.
enum DeployedVersion: ClientVersion {
    /// A registration for one server, encrypted to it.
    struct Registration: RegistrationMessage {
        let dialect: PushServer.Dialect?
        let requestID: [UInt8]
        let sealed: [UInt8]
    }

    typealias Own = OwnRecord
    typealias Server = ServerRegistration
    typealias Registrations = RegistrationMachine
    typealias RegistrationResponse = PushNotificationRegistrationResponse
    typealias QueryRoute = Set<PushServer.Dialect>
    typealias Advertisement = ContactCodeAdvertisement

    static let recordPrefix = ""
    static let queriesOnceAfterRefusal = false
    static let watchesOwnDevices = true

    /// The servers that the application listed.
    private static func listed(_ machine: ClientMachine) -> [PushServer] { machine.own.servers + machine.contactServers }

    static func servers(about registrant: PublicKey, also others: [PublicKey], _ machine: ClientMachine) -> Set<PublicKey> {
        machine.directory.servers(of: registrant).union(listed(machine).map(\.key))
    }

    static func route(to servers: Set<PublicKey>, _ machine: ClientMachine) -> QueryRoute {
        let listed = listed(machine)
        let known = servers.map { server in listed.first { $0.key == server }?.dialect }
        return known.contains(nil) ? Set(PushServer.Dialect.allCases) : Set(known.compactMap { $0 })
    }

    static func advertisement(of machine: ClientMachine, at now: Timestamp) -> ContactCodeAdvertisement {
        let paired = machine.directory.pairedRows(besides: machine.own.installationID, at: now)
        return ContactCodeAdvertisement(
            pushNotificationInfo: machine.registrations.advertisedRows + paired, chatIdentity: machine.own.chatIdentity)
    }

    static func rowCount(of advertisement: ContactCodeAdvertisement) -> Int { advertisement.pushNotificationInfo.count }
}

extension ClientMachine {
    /// - Parameters:
    ///   - records: The stored records; empty at the very first start.
    ///   - installationID: The id for a new client. If there are records, their id is used.
    init(
        records: [Record] = [], installationID: InstallationID, cryptography: any ClientCryptography, jitter: Jitter = .random(),
        at now: Timestamp
    ) {
        let restored = RecordsByKind(records)
        let registrations = RegistrationMachine(
            cryptography: cryptography, own: restored.own, restoring: restored.servers, installationID: installationID, at: now)
        self.init(restored, registrations, cryptography, jitter, at: now)
    }

    // MARK: Requests of the application

    /// Sets the profile and the servers to register with. Sends nothing when nothing changed, unless it is to be sent again.
    mutating func register(_ profile: DeviceProfile, with servers: [PushServer], again: Bool = false) {
        registrations.register(profile, with: servers, again: again)
        watchOwnDevices()
    }

    // MARK: Answers

    mutating func queryAnswered(
        _ ticket: QueryTable.Ticket, by server: PublicKey, rows: [PushNotificationQueryInfo], at now: Timestamp
    ) {
        let hash = KeyHash(of: publicKey).bytes
        let ownRow = rows.first { $0.publicKey == hash && $0.installationID == own.installationID }
        return queryAnswered(ticket, by: server, ownRow: ownRow.map { ($0.version, $0.grant) }, at: now) { directory, registrant in
            directory.learn(answered: rows, about: registrant, by: server, at: now)
        }
    }

    mutating func requestAnswered(
        _ ticket: NotificationMachine.Ticket, by server: PublicKey, _ response: PushNotificationResponse, at now: Timestamp
    ) {
        guard notifications.isAwaiting(ticket, from: server, about: response.messageID) else { return }
        requestAnswered(ticket, by: server, at: now) { device in
            let hash = KeyHash(of: device.registrant).bytes
            return response.reports.first { $0.publicKey == hash && $0.installationID == device.installationID }.map(
                NotificationVerdict.init)
        }
    }

    /// Handles an advertisement signed by its owner.
    ///
    /// - Parameters:
    ///   - installationID: The owner's device that published it; nil when the advertisement does not name it.
    ///   - age: The time since it was published.
    mutating func advertised(
        by owner: PublicKey, from installationID: InstallationID?, rows: [PushNotificationQueryInfo], age: Duration, at now: Timestamp
    ) {
        let isOwn = owner == publicKey
        guard isOwn ? installationID != own.installationID : directory.registrants[owner]?.isWatched == true else { return }
        let rows = isOwn ? rows.filter { $0.installationID != own.installationID } : rows
        let reading = directory.learn(advertised: rows, by: owner, from: installationID, sentAt: now - max(age, .zero))
        learned(from: owner, reading)
    }
}

extension NotificationVerdict {
    fileprivate init(_ report: PushNotificationReport) {
        switch report.error {
        case nil: self = .notified
        case .wrongToken: self = .tokenRefused
        case .notRegistered: self = .notRegistered
        case .internalError: self = .failed
        case .unknown: self = .otherError
        }
    }
}
