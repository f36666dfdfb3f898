import PushStore
import StatusProtocol
import TestSupport
import Waku
import WakuCrypto

/// A store in a folder of its own, and registrations to put into it.
struct StoreFixture {
    let folder: TemporaryFolder
    let identity = PrivateKey.generate()
    let store: Store

    init() throws {
        folder = try TemporaryFolder()
        store = try Store(folder: folder.path, storageKey: Store.storageKey(of: identity))
    }

    func reopened() throws -> Store {
        try Store(folder: folder.path, storageKey: Store.storageKey(of: identity))
    }

    static func key(_ installation: String = "phone", of registrant: PrivateKey = .generate()) -> RegistrationKey {
        RegistrationKey(keyHash: KeyHash(of: registrant.publicKey), installationID: InstallationID(installation))
    }

    static func registration(_ key: RegistrationKey, version: UInt64 = 1, token: String = "device") -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = 1
        registration.deviceToken = DeviceToken(token)
        registration.installationID = key.installationID
        registration.accessToken = AccessToken("00000000-0000-0000-0000-000000000000")
        registration.version = version
        registration.apnTopic = "app"
        return registration
    }

    static func notification(_ message: [UInt8] = [1, 2]) -> PushNotification {
        PushNotification(
            accessToken: AccessToken("secret"), chatID: [3], publicKey: [4], installationID: InstallationID("phone"), message: message,
            kind: .mention, author: [5])
    }
}

extension Store {
    func register(_ key: RegistrationKey, version: UInt64 = 1, token: String = "device", at now: Timestamp = .init(rawValue: 1))
        async throws
    {
        let registration = StoreFixture.registration(key, version: version, token: token)
        try await commit { try $0.store(registration, bytes: registration.encoded(), as: key, at: now) }
    }

    func enqueue(_ id: DeliveryID, _ key: RegistrationKey, message: [UInt8] = [1, 2]) async throws -> WaitingDelivery {
        try await commit { transaction in
            guard case .registered(let stored)? = try transaction.state(of: key) else { throw NotRegistered() }
            return try transaction.enqueue(id, StoreFixture.notification(message), to: stored, expires: Timestamp(rawValue: 1_000))
        }
    }

    func entry(_ id: Int64) throws -> OutboxEntry? {
        guard case .entry(let entry)? = try read({ try $0.outboxEntries([id]) })[id] else { return nil }
        return entry
    }

    private struct NotRegistered: Error {}
}
