import Delivery
import NodeAssembly
import Core
import Storage
import StorePostgreSQL
import StatusProtocol
import TestSupport
import WakuCrypto

@testable import StatusServer

/// The data folder of a stopped daemon: Bob has two phones, Carol one, Dave unregistered his. A notification waits for Bob's first.
struct AdminFixture {
    static let deviceToken = "a-device-token"

    let folder: TemporaryFolder
    let server: KeyFile
    let bob: TestClient
    let bobsOther: TestClient
    let carol: TestClient
    let dave: TestClient
    var data: String { folder.path + "/data" }
    /// The value of `--store`, if it is given.
    private let store: String?

    /// - Parameters:
    ///   - secondPhone: the installation id of Bob's second phone.
    ///   - address: of a PostgreSQL database; nil: the database is in the data folder.
    init(secondPhone: String = "installation-2", store address: String? = nil) async throws {
        store = address
        folder = try TemporaryFolder()
        server = try KeyFile(in: folder, "id.key")
        let publicKey = server.key.publicKey
        let bob = TestClient(of: publicKey)
        self.bob = bob
        bobsOther = TestClient(of: publicKey, identity: bob.identity, installationID: InstallationID(secondPhone))
        // Her hash has the same first digit as Bob's, and different ones after that.
        carol = TestClient(of: publicKey, identity: Self.identity { Self.begin($0, bob.keyHash) })
        let dave = TestClient(of: publicKey)
        self.dave = dave

        let folder = try DataFolder(locking: data)
        let location = try address.map { StoreLocation.postgreSQL(try PostgreSQLAddress($0)) } ?? .dataFolder
        let store = try NodeAssembly.store(at: location, in: folder.path, of: server.key)
        for client in [bob, bobsOther, carol, dave] { try await Self.register(client, in: store) }
        try await store.commit(Registrations.unregister(dave.key, version: 2, at: .now()))
        guard let row = try store.read(Registrations.head(of: bob.key))?.id else { throw NotStored() }
        let waiting = DeliveryStorage.enqueue(
            DeliveryID(messageID: [1], key: bob.key), for: DeviceID(StatusStorage.protocolNumber, row: row),
            payload: StatusPayload.encode(bob.notification()), expires: Timestamp(rawValue: 1_800_000_000_000_000_000), by: store.sealer)
        try await store.commit(StoreCommand.change([waiting]))
        try store.close()
    }

    private struct NotStored: Error {}

    private static func register(_ client: TestClient, in store: any Store) async throws {
        let registration = client.registration { $0.deviceToken = DeviceToken(deviceToken) }
        try await store.commit(
            Registrations(store.sealer).store(registration, bytes: registration.encoded(), as: client.key, at: .now()))
    }

    /// A key whose hash has the same first digit, and no longer common prefix.
    private static func begin(_ key: PrivateKey, _ other: KeyHash) -> Bool {
        let hash = KeyHash(of: key.publicKey).hex
        return hash.prefix(1) == other.hex.prefix(1) && hash.prefix(8) != other.hex.prefix(8)
    }

    private static func identity(where condition: (PrivateKey) -> Bool) -> PrivateKey {
        while true {
            let key = PrivateKey.generate()
            if condition(key) { return key }
        }
    }

    func admin(_ arguments: String..., identified: Bool = false) async throws -> Ended {
        try await run(
            ["admin"] + arguments + ["--data", data] + (store.map { ["--store", $0] } ?? [])
                + (identified ? ["--identity", server.path] : []))
    }
}
