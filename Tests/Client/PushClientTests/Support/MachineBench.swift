import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

/// A machine of the client with a manual clock.
protocol ClientMachineBench {
    associatedtype Machine: PushClientMachine

    var now: Timestamp { get set }
    var machine: Machine { get set }
    /// The stored records, as in a store.
    var stored: [RecordKey: Machine.Record] { get set }
    /// Actions since they were last taken.
    var actions: [Machine.Action] { get set }

    mutating func publish(_ action: Machine.Action, isPublished: Bool)
}

extension ClientMachineBench {
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
}

/// A client machine with a manual clock and a list of its requested actions.
struct MachineBench: ClientMachineBench {
    static let start = Timestamp(rawValue: 1_800_000_000_000_000_000)

    let sealed = SealedRegistrations()
    let identity = PrivateKey.generate().publicKey
    var now = Self.start
    var machine: ClientMachine
    var stored: [RecordKey: ClientRecord] = [:]
    var actions: [ClientAction] = []
    let installationID = InstallationID("own-device")

    init() {
        machine = ClientMachine(
            installationID: installationID, cryptography: ValueCryptography(publicKey: identity, sealed: sealed), jitter: Jitter(seed: 1),
            at: Self.start)
        let output = machine.start(at: now)
        take(output)
    }

    /// Simulates a kill of the process, and a restart after a pause.
    mutating func restart(after pause: Duration = .zero) {
        now = now + pause
        actions = []
        machine = ClientMachine(
            records: Array(stored.values), installationID: InstallationID("another"),
            cryptography: ValueCryptography(publicKey: identity, sealed: sealed), jitter: Jitter(seed: 2), at: now)
        let output = machine.start(at: now)
        take(output)
    }

    mutating func publish(_ action: ClientAction, isPublished: Bool) {
        switch action {
        case .register(let server, let registration):
            take(machine.registrationPublished(registration.requestID, to: server, isPublished: isPublished, at: now))
        case .query(let ticket, _, _): take(machine.queryPublished(ticket, isPublished: isPublished, at: now))
        case .request(let ticket, _, _): take(machine.requestPublished(ticket, isPublished: isPublished, at: now))
        case .advertise(let advertisement):
            let count = advertisement.pushNotificationInfo.count
            take(machine.advertisementPublished(rowCount: count, isPublished: isPublished, at: now))
        case .lookUp(let registrants): take(machine.lookUpEnded(registrants, .found, at: now))
        case .watch, .unwatch, .report: break
        }
    }

    // MARK: Published messages

    func registration(_ sealed: [UInt8]) throws -> PushNotificationRegistration {
        try #require(self.sealed.open(sealed)).registration
    }

    mutating func answer(_ sent: SentRegistration, _ error: PushNotificationRegistrationResponse.ErrorType? = nil) {
        let response = PushNotificationRegistrationResponse(error: error, requestID: sent.requestID)
        take(machine.registrationAnswered(by: sent.server, response, at: now))
    }
}

struct SentRegistration: Hashable {
    let server: PublicKey
    let requestID: [UInt8]
    let sealed: [UInt8]
}

struct SentRequest {
    let ticket: UInt64
    let server: PublicKey
    let request: PushNotificationRequest
}

struct SentQuery {
    let ticket: UInt64
    let registrant: PublicKey
    let dialects: Set<PushServer.Dialect>
}

extension [ClientAction] {
    var registrations: [SentRegistration] {
        compactMap { action in
            guard case .register(let server, let registration) = action else { return nil }
            return SentRegistration(server: server, requestID: registration.requestID, sealed: registration.sealed)
        }
    }

    var queries: [SentQuery] {
        compactMap { action in
            guard case .query(let ticket, let registrant, let dialects) = action else { return nil }
            return SentQuery(ticket: ticket, registrant: registrant, dialects: dialects)
        }
    }

    var requests: [SentRequest] {
        compactMap { action in
            guard case .request(let ticket, let server, let request) = action else { return nil }
            return SentRequest(ticket: ticket, server: server, request: PushNotificationRequest(request))
        }
    }

    var advertisements: [ContactCodeAdvertisement] {
        compactMap { if case .advertise(let advertisement) = $0 { advertisement } else { nil } }
    }

    var events: [PushClientEvent] {
        compactMap { if case .report(let event) = $0 { event } else { nil } }
    }

    var lookUps: [[PublicKey]] {
        compactMap { if case .lookUp(let registrants) = $0 { registrants } else { nil } }
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
