import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

typealias MachineBench = Bench<DeployedVersion>
typealias V01MachineBench = Bench<Version01>

/// A client's machine with a manual clock, its actions, and its stored records.
struct Bench<Version: PushClient.ClientVersion> {
    typealias Machine = PushClientMachine<Version>

    static var start: Timestamp { Timestamp(rawValue: 1_800_000_000_000_000_000) }

    let identity: PrivateKey
    let sealed: SealedRegistrations
    let installationID = InstallationID("own-device")
    var now = Self.start
    var machine: Machine
    /// The stored records, as in a store.
    var stored: [RecordKey: Machine.Record] = [:]
    /// Actions since they were last taken.
    var actions: [Machine.Action] = []
    private let make: ([Machine.Record], InstallationID, Jitter, _ now: Timestamp) -> Machine

    private init(
        _ identity: PrivateKey, _ sealed: SealedRegistrations = SealedRegistrations(),
        make: @escaping ([Machine.Record], InstallationID, Jitter, _ now: Timestamp) -> Machine
    ) {
        self.identity = identity
        self.sealed = sealed
        self.make = make
        machine = make([], installationID, Jitter(seed: 1), Self.start)
        take(machine.start(at: now))
    }

    var publicKey: PublicKey { identity.publicKey }

    /// Simulates a kill of the process, and a restart after a pause, with all stored records encoded and decoded.
    mutating func restart(after pause: Duration = .zero) {
        now = now + pause
        actions = []
        let records = stored.compactMap { key, record in try? Machine.Record(Machine.Record.name(of: key), record.encoded()) }
        #expect(records.count == stored.count)
        machine = make(records, InstallationID("another"), Jitter(seed: 2), now)
        take(machine.start(at: now))
    }

    /// Takes the output after an event.
    mutating func take(_ event: Void) {
        take(machine.settle(at: now))
    }

    mutating func take(_ output: Machine.Output) {
        for (key, record) in output.changes { stored[key] = record }
        actions += output.actions
    }

    mutating func takeActions() -> [Machine.Action] {
        defer { actions = [] }
        return actions
    }

    /// Advances the clock, waking the machine at each requested time.
    mutating func pass(_ duration: Duration) {
        let end = now + duration
        while let next = machine.nextWakeUp, next <= end {
            now = max(now, next)
            take(machine.wake(at: now))
        }
        now = end
    }

    mutating func publish(_ action: Machine.Action, isPublished: Bool) {
        take(machine.ended(action, isPublished: isPublished, at: now))
    }

    /// Confirms all requested publications, and returns all actions.
    mutating func publishAll() -> [Machine.Action] {
        var all: [Machine.Action] = []
        while !actions.isEmpty {
            let actions = takeActions()
            all += actions
            for action in actions { publish(action, isPublished: true) }
        }
        return all
    }

    func status(_ server: PublicKey) -> RegistrationStatus? { machine.registrations.servers[server]?.status }
}

extension PushClientMachine {
    func advertisement(at now: Timestamp) -> Version.Advertisement { Version.advertisement(of: self, at: now) }

    /// The end of an action on the network.
    mutating func ended(_ action: Action, isPublished: Bool, at now: Timestamp) {
        switch action {
        case .register(let server, let registration):
            registrationPublished(registration.requestID, to: server, isPublished: isPublished, at: now)
        case .query(let ticket, _, _): queryPublished(ticket, isPublished: isPublished, at: now)
        case .request(let ticket, _, _): requestPublished(ticket, isPublished: isPublished, at: now)
        case .advertise(let advertisement):
            advertisementPublished(rowCount: Version.rowCount(of: advertisement), isPublished: isPublished, at: now)
        case .lookUp(let registrants): lookUpEnded(registrants, .found)
        case .watch, .unwatch, .report: break
        }
    }
}

extension MachineBench {
    init() {
        let (identity, sealed) = (PrivateKey.generate(), SealedRegistrations())
        self.init(identity, sealed) { records, id, jitter, now in
            let cryptography = ValueCryptography(publicKey: identity.publicKey, sealed: sealed)
            return ClientMachine(records: records, installationID: id, cryptography: cryptography, jitter: jitter, at: now)
        }
    }

    func registration(_ sealed: [UInt8]) throws -> PushNotificationRegistration {
        try #require(self.sealed.open(sealed)).registration
    }

    mutating func answer(
        _ sent: SentRegistration<DeployedVersion>, _ error: PushNotificationRegistrationResponse.ErrorType? = nil
    ) {
        let response = PushNotificationRegistrationResponse(error: error, requestID: sent.registration.requestID)
        take(machine.registrationAnswered(by: sent.server, response, at: now))
    }

    mutating func answer(_ sent: SentRequest, _ error: PushNotificationReport.ErrorType? = nil) {
        let reports = sent.message.requests.map {
            PushNotificationReport(error: error, publicKey: $0.publicKey, installationID: $0.installationID)
        }
        let response = PushNotificationResponse(messageID: sent.request.messageID, reports: reports)
        take(machine.requestAnswered(sent.ticket, by: sent.server, response, at: now))
    }

    mutating func answer(_ query: SentQuery<DeployedVersion>, _ rows: [PushNotificationQueryInfo], by server: PublicKey) {
        take(machine.queryAnswered(query.ticket, by: server, rows: rows, at: now))
    }
}

extension V01MachineBench {
    init(identity: PrivateKey = .generate()) {
        self.init(identity) { records, id, jitter, now in
            V01Machine(records: records, installationID: id, identity: identity, jitter: jitter, at: now)
        }
    }

    mutating func register(_ profile: V01DeviceProfile = .phone, with servers: [PublicKey]) {
        take(machine.registrations.register(profile, with: servers))
    }

    mutating func answer(
        _ sent: SentRegistration<Version01>, _ error: V01.RegistrationResponse.ErrorType? = nil, _ stored: V01.Preferences? = nil
    ) {
        let response = V01.RegistrationResponse(error: error, requestID: sent.registration.requestID, preferences: stored)
        take(machine.registrationAnswered(by: sent.server, response, at: now))
    }
}

// MARK: Actions

struct SentRegistration<Version: PushClient.ClientVersion>: Hashable {
    let server: PublicKey
    let registration: Version.Registration
}

extension SentRegistration<DeployedVersion> {
    var requestID: [UInt8] { registration.requestID }
    var sealed: [UInt8] { registration.sealed }
}

extension SentRegistration<Version01> {
    var register: V01.Register { registration }

    /// Its contents, if the signature is valid.
    func preferences(of account: PublicKey) throws -> V01.Preferences {
        #expect(register.isSigned(by: account, for: server))
        return try V01.Preferences(parsing: register.payload)
    }
}

struct SentRequest {
    let ticket: UInt64
    let server: PublicKey
    let request: NotificationRequest

    /// The message of the deployed protocol.
    var message: PushNotificationRequest { PushNotificationRequest(request) }
}

struct SentQuery<Version: PushClient.ClientVersion> {
    let ticket: UInt64
    let registrant: PublicKey
    let route: Version.QueryRoute
}

extension SentQuery<DeployedVersion> {
    var dialects: Set<PushServer.Dialect> { route }
}

extension SentQuery<Version01> {
    var servers: [PublicKey] { route }
}

/// Allows extensions of arrays of actions of any version.
protocol AnyMachineAction {
    associatedtype Version: PushClient.ClientVersion
    var action: MachineAction<Version> { get }
}

extension MachineAction: AnyMachineAction {
    var action: MachineAction { self }
}

extension Array where Element: AnyMachineAction {
    var registrations: [SentRegistration<Element.Version>] {
        compactMap { element in
            guard case .register(let server, let registration) = element.action else { return nil }
            return SentRegistration(server: server, registration: registration)
        }
    }

    var queries: [SentQuery<Element.Version>] {
        compactMap { element in
            guard case .query(let ticket, let registrant, let route) = element.action else { return nil }
            return SentQuery(ticket: ticket, registrant: registrant, route: route)
        }
    }

    var requests: [SentRequest] {
        compactMap { element in
            guard case .request(let ticket, let server, let request) = element.action else { return nil }
            return SentRequest(ticket: ticket, server: server, request: request)
        }
    }

    var advertisements: [Element.Version.Advertisement] {
        compactMap { if case .advertise(let advertisement) = $0.action { advertisement } else { nil } }
    }

    var events: [PushClientEvent] {
        compactMap { if case .report(let event) = $0.action { event } else { nil } }
    }

    var lookUps: [[PublicKey]] {
        compactMap { if case .lookUp(let registrants) = $0.action { registrants } else { nil } }
    }
}

/// Another registrant with one device, as described by a row.
struct Friend {
    let key = PrivateKey.generate().publicKey
    var token = AccessToken("11111111-1111-4111-8111-111111111111")

    func row(
        at server: PublicKey, _ installation: String = "friends-phone", version: UInt64 = 1, grant: [UInt8]? = nil,
        allowedKeyList: [[UInt8]] = []
    ) -> PushNotificationQueryInfo {
        PushNotificationQueryInfo(
            accessToken: allowedKeyList.isEmpty ? token : AccessToken(""), installationID: InstallationID(installation),
            publicKey: KeyHash(of: key).bytes, allowedKeyList: allowedKeyList,
            grant: grant ?? ValueCryptography.grant(by: key, for: server, accessToken: token), version: version,
            serverPublicKey: server.compressed)
    }
}

func newKey() -> PublicKey { PrivateKey.generate().publicKey }

extension DeviceProfile {
    static var phone: DeviceProfile {
        DeviceProfile(platform: .apn, deviceToken: DeviceToken("device-token"), apnTopic: "im.status.ethereum")
    }
}

extension V01DeviceProfile {
    static var phone: V01DeviceProfile { V01DeviceProfile(platform: .apn, deviceToken: DeviceToken("device-token")) }
}
