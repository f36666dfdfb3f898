import RateLimits
import NodeAPI
import Delivery
import Core
import StatusProtocol
import StatusRules
import Storage
import StoreSQLite
import TestSupport
import WakuCrypto

@testable import StatusV01Server

/// A store in its own folder, and records to store.
struct V01StoreFixture {
    static let parts = [DeliveryStorage.part, V01Storage.part]

    let folder: TemporaryFolder
    let storageKey = SymmetricKey.random()
    let store: SQLiteStore
    let records: Records

    var path: String { DataFolder.databasePath(in: folder.path) }

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: Self.parts)
        records = Records(store.sealer)
    }

    func reopened() throws -> SQLiteStore {
        try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: Self.parts)
    }

    /// Commits the handler's decision on a Register.
    @discardableResult
    func take(
        _ register: V01.Register, of account: V01Account, limits: V01Limits = V01Limits(.none), at now: Timestamp = Timestamp(rawValue: 1)
    ) async throws -> V01.RegistrationResponse.ErrorType? {
        let rules = V01.RegisterRules(server: account.server)
        guard let claim = rules.claim(in: register, from: account.identity.publicKey) else { throw NotSigned() }
        let handler = V01RegisterHandler(rules: rules, records: records, limits: limits, drain: Drain())
        return try await store.commit(handler.change(claim, at: now)).error
    }

    struct NotSigned: Error {}

    func preferences(of account: V01Account) throws -> V01.Preferences? {
        try store.read(records.preferences(of: account.keyHash))
    }

    func devices(of account: V01Account) throws -> [InstallationID: Int64] {
        try store.read(.find(Records.devicesRead(account.keyHash)) { .done(try Records.devices($0)) })
    }

    func selected(by token: AccessToken) throws -> V01.KeyHash? {
        try store.read(records.selection(by: [token], at: nil))?.records[token]?.registrant
    }

    /// Puts a notification for a device into the outbox.
    func enqueue(for row: Int64, _ delivery: DeliveryID = DeliveryID(hashing: randomBytes(32))) async throws {
        let payload = V01Payload.encode(chatID: [1], message: [2])
        try await store.commit(
            StoreCommand.change([
                DeliveryStorage.enqueue(
                    delivery, for: Records.device(row), payload: payload, expires: Timestamp(rawValue: 1 << 60), by: store.sealer)
            ]))
    }
}
