import Foundation
import GRDB
import StatusProtocol
import Waku
import WakuCrypto

/// How contents are sealed: AES-256-GCM under the rows' key, bound to the row that they belong to, so that rows can't be exchanged.
///
/// The rows' key is the storage key, which comes from the identity, or after a rotation a key derived from it with a random salt that stands
/// in the database.
struct SealedRows: Sendable {
    static let checkProperty = "storage key check"
    static let saltProperty = "storage key salt"

    private let key: SymmetricKey

    /// As a database has them.
    init(storageKey: SymmetricKey, in db: Database) throws {
        let salt = try Data.fetchOne(db, sql: "SELECT value FROM property WHERE name = ?", arguments: [Self.saltProperty])
        self.init(storageKey: storageKey, salt: salt.map(Array.init))
    }

    /// - Parameter salt: nil before the first rotation.
    init(storageKey: SymmetricKey, salt: [UInt8]?) {
        key = salt.map { storageKey.derivedKey(salt: $0, purpose: "waku-push rows 1") } ?? storageKey
    }

    func seal(_ registration: [UInt8], for owner: RegistrationKey, version: UInt64) -> [UInt8] {
        AESGCM.seal(registration, key: key, layout: .nonceFirst, associatedData: Self.binding(owner, version))
    }

    func openRegistration(_ sealed: [UInt8], of owner: RegistrationKey, version: UInt64) throws -> PushNotificationRegistration {
        try PushNotificationRegistration(parsing: open(sealed, of: owner, version: version))
    }

    /// A registration as it came.
    func open(_ sealed: [UInt8], of owner: RegistrationKey, version: UInt64) throws -> [UInt8] {
        try AESGCM.open(sealed, key: key, layout: .nonceFirst, associatedData: Self.binding(owner, version))
    }

    func seal(_ notification: PushNotification, for delivery: DeliveryID) -> [UInt8] {
        // Its token is checked by now, and to whom it goes stands beside it.
        var rest = notification
        rest.accessToken = AccessToken("")
        rest.publicKey = []
        rest.installationID = InstallationID("")
        let bytes = PushNotificationRequest(requests: [rest], messageID: []).encoded()
        return AESGCM.seal(bytes, key: key, layout: .nonceFirst, associatedData: delivery.bytes)
    }

    func openNotification(_ sealed: [UInt8], of delivery: DeliveryID) throws -> PushNotification? {
        let bytes = try AESGCM.open(sealed, key: key, layout: .nonceFirst, associatedData: delivery.bytes)
        return try PushNotificationRequest(parsing: bytes).requests.first
    }

    /// A notification, sealed by these and by others.
    func resealed(_ sealed: [UInt8], of delivery: DeliveryID, by others: SealedRows) throws -> [UInt8] {
        let bytes = try AESGCM.open(sealed, key: key, layout: .nonceFirst, associatedData: delivery.bytes)
        return AESGCM.seal(bytes, key: others.key, layout: .nonceFirst, associatedData: delivery.bytes)
    }

    func seal(_ topicKey: SymmetricKey, of topicString: String) -> [UInt8] {
        AESGCM.seal(topicKey, key: key, layout: .nonceFirst, associatedData: Array(topicString.utf8))
    }

    /// nil when it is another topic's, or was altered.
    func openTopicKey(_ sealed: [UInt8], of topicString: String) -> SymmetricKey? {
        try? AESGCM.openKey(sealed, key: key, layout: .nonceFirst, associatedData: Array(topicString.utf8))
    }

    /// Known text, by which a store recognizes its key.
    func sealCheck() -> [UInt8] {
        AESGCM.seal(Self.check, key: key, layout: .nonceFirst)
    }

    /// Whether a database is sealed with this key; nil when it does not say.
    func fit(_ db: Database) throws -> Bool? {
        let sealed = try Data.fetchOne(db, sql: "SELECT value FROM property WHERE name = ?", arguments: [Self.checkProperty])
        return sealed.map { (try? AESGCM.open(Array($0), key: key, layout: .nonceFirst)) == Self.check }
    }

    private static let check = Array("waku-push".utf8)

    private static func binding(_ owner: RegistrationKey, _ version: UInt64) -> [UInt8] {
        owner.keyHash.bytes + withUnsafeBytes(of: version.bigEndian, Array.init) + owner.installationID.bytes
    }
}
