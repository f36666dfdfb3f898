import CPushMessages
import Core
import Waku

/// A device of a registrant, in answers to queries and in advertisements.
public struct PushNotificationQueryInfo: Hashable, Sendable {
    /// Empty if ``allowedKeyList`` is not.
    public var accessToken: AccessToken
    /// The device. In a request, ``publicKey`` and this id select it.
    public var installationID: InstallationID
    /// The registrant's ``KeyHash``.
    public var publicKey: [UInt8]
    /// The access token, encrypted for each allowed key.
    public var allowedKeyList: [[UInt8]]
    /// The registrant's ``Grant`` for the server and the access token, 65 bytes.
    public var grant: [UInt8]
    /// The version of the registration: among rows for the same device and server, the highest one is current.
    public var version: UInt64
    /// The server's public key, compressed.
    public var serverPublicKey: [UInt8]

    /// - Parameters:
    ///   - accessToken: Empty when `allowedKeyList` has entries: a row contains one of the two.
    ///   - installationID: The registrant's device.
    ///   - publicKey: The registrant's ``KeyHash``, 64 bytes.
    ///   - allowedKeyList: The access token sealed to each allowed key: `nonce(12) ‖ ciphertext ‖ tag(16)`.
    ///   - grant: 65 bytes, over the access token even when that is only in `allowedKeyList`.
    ///   - version: The version of the registration.
    ///   - serverPublicKey: 33 bytes. Deployed clients ignore advertised rows without it.
    public init(
        accessToken: AccessToken, installationID: InstallationID, publicKey: [UInt8], allowedKeyList: [[UInt8]], grant: [UInt8],
        version: UInt64,
        serverPublicKey: [UInt8]
    ) {
        self.accessToken = accessToken
        self.installationID = installationID
        self.publicKey = publicKey
        self.allowedKeyList = allowedKeyList
        self.grant = grant
        self.version = version
        self.serverPublicKey = serverPublicKey
    }

    init(_ message: Protobuf__PushNotificationQueryInfo) throws(ProtobufError) {
        accessToken = AccessToken(bytes: try message.access_token.utf8())
        installationID = InstallationID(bytes: try message.installation_id.utf8())
        publicKey = message.public_key.bytes
        allowedKeyList = byteLists(message.n_allowed_key_list, message.allowed_key_list)
        grant = message.grant.bytes
        version = message.version
        serverPublicKey = message.server_public_key.bytes
    }

    func fill(_ message: inout Protobuf__PushNotificationQueryInfo, _ arena: ProtobufArena) {
        message.access_token = arena.data(accessToken.bytes)
        message.installation_id = arena.data(installationID.bytes)
        message.public_key = arena.data(publicKey)
        (message.n_allowed_key_list, message.allowed_key_list) = (allowedKeyList.count, arena.list(allowedKeyList))
        message.grant = arena.data(grant)
        message.version = version
        message.server_public_key = arena.data(serverPublicKey)
    }

    /// Checks the field counts of a message that lists such rows in field 1.
    static func checkCounts(in bytes: [UInt8]) throws(ProtobufError) {
        let rowLimit = 10_000
        let nestedFieldLimit = PushNotificationRegistration.listLimit + 64
        try ProtobufScan.checkNested(bytes, field: 1, fieldLimit: rowLimit, nestedFieldLimit: nestedFieldLimit)
    }
}
