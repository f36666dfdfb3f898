import GRDB
import StatusProtocol
import Waku
import WakuCrypto

/// How contents are sealed: AES-256-GCM under the storage key, bound to the row that they belong to, so that rows can't be exchanged.
struct SealedRows: Sendable {
    private let key: SymmetricKey

    init(key: SymmetricKey) {
        self.key = key
    }

    func seal(_ registration: [UInt8], for owner: RegistrationKey, version: UInt64) -> [UInt8] {
        AESGCM.seal(registration, key: key, layout: .nonceFirst, associatedData: Self.binding(owner, version))
    }

    func openRegistration(_ sealed: [UInt8], of owner: RegistrationKey, version: UInt64) throws -> PushNotificationRegistration {
        try PushNotificationRegistration(
            parsing: AESGCM.open(sealed, key: key, layout: .nonceFirst, associatedData: Self.binding(owner, version)))
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

    func fits(_ sealedCheck: [UInt8]) -> Bool {
        (try? AESGCM.open(sealedCheck, key: key, layout: .nonceFirst)) == Self.check
    }

    private static let check = Array("waku-push".utf8)

    private static func binding(_ owner: RegistrationKey, _ version: UInt64) -> [UInt8] {
        owner.keyHash.bytes + withUnsafeBytes(of: version.bigEndian, Array.init) + owner.installationID.bytes
    }
}
