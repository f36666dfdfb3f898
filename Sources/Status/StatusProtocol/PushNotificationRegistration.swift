import CPushMessages
public import Core
import Waku

/// A registration: how to reach a device, which keys may notify it, and its filters.
/// Fields and numbers are in `Protos/push_notifications.proto`.
///
/// Unknown fields are not preserved here: stores must keep the received bytes.
public struct PushNotificationRegistration: Hashable, Sendable {
    /// Limit of a registration in bytes. Larger ones are malformed.
    public static let byteLimit = 2 << 20
    /// Limit of the entries of each list. Longer lists are malformed.
    public static let listLimit = 30_000
    /// Limit of each string in bytes of UTF-8. Longer ones are malformed.
    public static let stringByteLimit = 4096
    /// Limit of the number of other fields: scalars may be repeated, and unknown fields occur.
    private static let otherFieldLimit = 256

    /// TokenType: 1 APNs, 2 Firebase, 3 Web Push (an extension; not ``Platform``'s number). Other values are refused with UNSUPPORTED_TOKEN_TYPE: see ``platform``.
    public var tokenType: UInt32 = 0
    /// The device's identifier at the push service; not empty in a valid registration.
    public var deviceToken = DeviceToken("")
    /// The device: 1 to ``InstallationID/maximumByteCount`` bytes. Identifies the registration together with the sender's key.
    public var installationID = InstallationID("")
    /// The secret that senders must present in requests: a UUID in one of the forms of ``AccessToken/isUUID``, compared as received.
    public var accessToken = AccessToken("")
    /// False: the registration stays valid, but every notification is filtered.
    public var enabled = false
    /// At least 1, and higher than that of the stored registration or tombstone: it keeps growing after an unregistration.
    public var version: UInt64 = 0
    /// The access token encrypted for each allowed key.
    public var allowedKeyList: [[UInt8]] = []
    /// SHAKE-256 of the ids of chats without notifications for messages, and of authors without any notification, 64 bytes each.
    public var blockedChatList: [[UInt8]] = []
    /// Ends the registration. All fields except ``installationID`` and ``version`` are ignored then.
    public var unregister = false
    /// The sender's ``Grant`` for this server and ``accessToken``, 65 bytes.
    public var grant: [UInt8] = []
    /// Answers to queries contain ``allowedKeyList``, also if it is empty, instead of the access token.
    public var allowFromContactsOnly = false
    /// The app that the token belongs to, for APNs.
    public var apnTopic = ""
    /// No notifications for mentions, in any chat.
    public var blockMentions = false
    /// SHAKE-256 of the ids of the chats in which mentions cause notifications, 64 bytes each.
    public var allowedMentionsChatList: [[UInt8]] = []
    /// SHAKE-256 of the ids of chats without notifications for messages, 64 bytes each. Mentions are not affected.
    public var mutedChatList: [[UInt8]] = []

    /// An empty registration, for the caller to fill in. Servers refuse it as malformed until it has an installation id and a version.
    public init() {}

    /// Memory used by all entries of all lists in bytes, overhead included.
    public var listByteCount: Int {
        [allowedKeyList, blockedChatList, allowedMentionsChatList, mutedChatList].reduce(0) { sum, list in
            list.reduce(sum) { $0 + $1.count + 32 }
        }
    }

    /// nil if the token type is not a known platform.
    public var platform: Platform? { Platform(tokenType: tokenType) }

    /// The Web Push subscription in the device token; nil for other platforms, and when the token is not a valid one.
    public var subscription: PushSubscription? { platform == .webPush ? PushSubscription(json: deviceToken.bytes) : nil }

    /// - Throws: `ProtobufError`
    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        guard bytes.count <= Self.byteLimit else { throw .tooMany }
        try Self.checkCounts(bytes)
        self = try ProtobufC.decode(bytes, protobuf__push_notification_registration__init) { message throws(ProtobufError) in
            let message = message.pointee
            var registration = PushNotificationRegistration()
            registration.tokenType = message.token_type.rawValue
            registration.deviceToken = DeviceToken(bytes: try Self.bounded(message.device_token))
            registration.installationID = InstallationID(bytes: try Self.bounded(message.installation_id))
            registration.accessToken = AccessToken(bytes: try Self.bounded(message.access_token))
            registration.enabled = message.enabled != 0
            registration.version = message.version
            registration.allowedKeyList = byteLists(message.n_allowed_key_list, message.allowed_key_list)
            registration.blockedChatList = byteLists(message.n_blocked_chat_list, message.blocked_chat_list)
            registration.unregister = message.unregister != 0
            registration.grant = message.grant.bytes
            registration.allowFromContactsOnly = message.allow_from_contacts_only != 0
            registration.apnTopic = String(decoding: try Self.bounded(message.apn_topic), as: UTF8.self)
            registration.blockMentions = message.block_mentions != 0
            registration.allowedMentionsChatList = byteLists(message.n_allowed_mentions_chat_list, message.allowed_mentions_chat_list)
            registration.mutedChatList = byteLists(message.n_muted_chat_list, message.muted_chat_list)
            return registration
        }
    }

    private static func bounded(_ data: ProtobufCBinaryData) throws(ProtobufError) -> [UInt8] {
        guard data.len <= stringByteLimit else { throw .tooMany }
        return try data.utf8()
    }

    private static func checkCounts(_ bytes: [UInt8]) throws(ProtobufError) {
        // The repeated fields; scalars that are repeated count as others.
        var lists = [7: 0, 8: 0, 14: 0, 15: 0]
        var others = 0
        var reader = ProtobufReader(bytes, refusing: .groups)
        while let field = try reader.next() {
            if let count = lists[field.number] {
                lists[field.number] = count + 1
                guard count < listLimit else { throw .tooMany }
            } else {
                others += 1
                guard others <= otherFieldLimit else { throw .tooMany }
            }
        }
    }

    /// The protobuf encoding. Senders seal it with AES-GCM, nonce first, under the key shared with the server; the result is the payload of an
    /// envelope of kind ``MessageKind/registration``.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__push_notification_registration__init) { message, arena in
            message.token_type = Protobuf__PushNotificationRegistration__TokenType(rawValue: tokenType)
            message.device_token = arena.data(deviceToken.bytes)
            message.installation_id = arena.data(installationID.bytes)
            message.access_token = arena.data(accessToken.bytes)
            message.enabled = enabled ? 1 : 0
            message.version = version
            (message.n_allowed_key_list, message.allowed_key_list) = (allowedKeyList.count, arena.list(allowedKeyList))
            (message.n_blocked_chat_list, message.blocked_chat_list) = (blockedChatList.count, arena.list(blockedChatList))
            message.unregister = unregister ? 1 : 0
            message.grant = arena.data(grant)
            message.allow_from_contacts_only = allowFromContactsOnly ? 1 : 0
            message.apn_topic = arena.data(apnTopic)
            message.block_mentions = blockMentions ? 1 : 0
            message.n_allowed_mentions_chat_list = allowedMentionsChatList.count
            message.allowed_mentions_chat_list = arena.list(allowedMentionsChatList)
            (message.n_muted_chat_list, message.muted_chat_list) = (mutedChatList.count, arena.list(mutedChatList))
        }
    }
}
