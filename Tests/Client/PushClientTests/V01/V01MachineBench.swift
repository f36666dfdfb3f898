import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

/// A version 0.1 client machine with a manual clock, its actions, and its stored records.
struct V01MachineBench: ClientMachineBench {
    static let start = MachineBench.start

    let identity: PrivateKey
    var now = Self.start
    var machine: V01Machine
    var stored: [RecordKey: V01Record] = [:]
    var actions: [V01Action] = []
    let installationID = InstallationID("own-device")

    init(identity: PrivateKey = .generate()) {
        self.identity = identity
        machine = V01Machine(installationID: installationID, identity: identity, jitter: Jitter(seed: 1), at: Self.start)
        let output = machine.start(at: now)
        take(output)
    }

    /// Simulates a kill of the process, and a restart after a pause, with all stored records encoded and decoded.
    mutating func restart(after pause: Duration = .zero) throws {
        now = now + pause
        actions = []
        let records = try stored.map { key, record in try V01Record(V01Record.name(of: key), record.encoded()) }
        machine = V01Machine(
            records: records, installationID: InstallationID("another"), identity: identity, jitter: Jitter(seed: 2), at: now)
        let output = machine.start(at: now)
        take(output)
    }

    mutating func publish(_ action: V01Action, isPublished: Bool) {
        switch action {
        case .register(let server, let register):
            take(machine.registerPublished(register, to: server, isPublished: isPublished, at: now))
        case .query(let ticket, _, _): take(machine.queryPublished(ticket, isPublished: isPublished, at: now))
        case .request(let ticket, _, _): take(machine.requestPublished(ticket, isPublished: isPublished, at: now))
        case .advertise(let advertisement):
            take(machine.advertisementPublished(rowCount: advertisement.info.count, isPublished: isPublished, at: now))
        case .lookUp(let registrants): take(machine.lookUpEnded(registrants, .found, at: now))
        case .watch, .unwatch, .report: break
        }
    }

    mutating func register(_ profile: V01DeviceProfile = .phone, with servers: [PublicKey]) {
        take(machine.register(profile, with: servers, at: now))
    }

    mutating func answer(_ sent: SentRegister, _ error: V01.RegistrationResponse.ErrorType? = nil, _ stored: V01.Preferences? = nil) {
        let response = V01.RegistrationResponse(error: error, requestID: sent.register.requestID, preferences: stored)
        take(machine.registerAnswered(by: sent.server, response, at: now))
    }

    func status(_ server: PublicKey) -> RegistrationStatus? { machine.registrations.servers[server]?.status }
}

struct SentRegister: Hashable {
    let server: PublicKey
    let register: V01.Register

    /// Its contents, if the signature is valid.
    func preferences(of account: PublicKey) throws -> V01.Preferences {
        #expect(register.isSigned(by: account, for: server))
        return try V01.Preferences(parsing: register.payload)
    }
}

struct SentV01Query {
    let ticket: UInt64
    let registrant: PublicKey
    let servers: [PublicKey]
}

struct SentV01Request {
    let ticket: UInt64
    let server: PublicKey
    let request: NotificationRequest
}

extension [V01Action] {
    var registers: [SentRegister] {
        compactMap { if case .register(let server, let register) = $0 { SentRegister(server: server, register: register) } else { nil } }
    }

    var queries: [SentV01Query] {
        compactMap { action in
            guard case .query(let ticket, let registrant, let servers) = action else { return nil }
            return SentV01Query(ticket: ticket, registrant: registrant, servers: servers)
        }
    }

    var requests: [SentV01Request] {
        compactMap { action in
            guard case .request(let ticket, let server, let request) = action else { return nil }
            return SentV01Request(ticket: ticket, server: server, request: request)
        }
    }

    var advertisements: [V01.ContactCodeAdvertisement] {
        compactMap { if case .advertise(let advertisement) = $0 { advertisement } else { nil } }
    }

    var events: [PushClientEvent] {
        compactMap { if case .report(let event) = $0 { event } else { nil } }
    }
}

extension V01DeviceProfile {
    static var phone: V01DeviceProfile { V01DeviceProfile(platform: .apn, deviceToken: DeviceToken("device-token")) }
}
