import Delivery
import Core
import StatusProtocol
import Storage
import StoreSQLite
import TestSupport
import WakuCrypto

@testable import StatusServer

/// A store in its own folder, and registrations to store.
struct StatusStoreFixture {
    static let parts = [DeliveryStorage.part, StatusStorage.part]

    let folder: TemporaryFolder
    let storageKey = SymmetricKey.random()
    let store: SQLiteStore
    let registrations: Registrations

    var path: String { DataFolder.databasePath(in: folder.path) }

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: Self.parts)
        registrations = Registrations(store.sealer)
    }

    func reopened() throws -> SQLiteStore {
        try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: Self.parts)
    }

    static func key(_ installation: String = "phone", of registrant: PrivateKey = .generate()) -> RegistrationKey {
        RegistrationKey(keyHash: KeyHash(of: registrant.publicKey), installationID: InstallationID(installation))
    }

    static func registration(_ key: RegistrationKey, version: UInt64 = 1, token: String = "device") -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.enabled = true
        registration.tokenType = 1
        registration.deviceToken = DeviceToken(token)
        registration.installationID = key.installationID
        registration.accessToken = AccessToken("00000000-0000-0000-0000-000000000000")
        registration.version = version
        registration.apnTopic = "app"
        return registration
    }
}

extension SQLiteStore {
    func register(_ key: RegistrationKey, version: UInt64 = 1, token: String = "device", at now: Timestamp = .init(rawValue: 1))
        async throws
    {
        let registration = StatusStoreFixture.registration(key, version: version, token: token)
        try await commit(Registrations(sealer).store(registration, bytes: registration.encoded(), as: key, at: now))
    }

    func unregister(_ key: RegistrationKey, version: UInt64, at now: Timestamp = .init(rawValue: 2)) async throws {
        try await commit(Registrations.unregister(key, version: version, at: now))
    }

    func state(of key: RegistrationKey) throws -> StoredState? {
        try read(Registrations(sealer).state(of: key))
    }

    func topicKey(_ topic: String) throws -> SymmetricKey? {
        try read(TopicKeyStorage(sealer).key(of: topic))
    }

    func keep(_ key: SymmetricKey, of topic: String) async throws {
        try await commit(.change([TopicKeyStorage(sealer).keep(key, of: topic)]))
    }
}

extension Registrations {
    private static let findDevices = Query(
        StatusStorage.registration, [.id, StatusStorage.keyHash, StatusStorage.installation], where: [.idAmong])

    /// The registration keys of these device rows.
    static func keys(ofDevices rows: [Int64]) -> StoreCommand<[Int64: RegistrationKey]> {
        .find(findDevices(ids: rows)) { found in
            .done(try found.reduce(into: [:]) { keys, row in keys[try row.integer(0)] = try RegistrationKey(row, at: 1) })
        }
    }
}
