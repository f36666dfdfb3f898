import CPushMessages
public import Core
import Waku

/// A request to notify one device. Fields and numbers are in `Protos/push_notifications.proto`.
public struct PushNotification: Hashable, Sendable {
    /// The token of the device's registration. Compared byte for byte; the report is WRONG_TOKEN if it differs.
    public var accessToken: AccessToken
    /// SHAKE-256 of the chat's id.
    public var chatID: [UInt8]
    /// The registrant's ``KeyHash``: as received, possibly of another length.
    public var publicKey: [UInt8]
    /// The device. ``publicKey`` and this id select the registration.
    public var installationID: InstallationID
    /// The message, encrypted for the device.
    public var message: [UInt8]
    /// Selects the filters of the registration that apply, and the text of the notification.
    public var kind: NotificationKind
    /// SHAKE-256 of the author's key in text.
    public var author: [UInt8]

    /// Limit of chat and message together. APNs and Firebase accept 4 KiB in total.
    public static let contentByteLimit = 16 << 10
    /// Whether ``chatID`` and ``message`` together exceed ``contentByteLimit``. Servers then report INTERNAL_ERROR and send nothing.
    public var isTooLarge: Bool { chatID.count + message.count > Self.contentByteLimit }

    /// - Parameters:
    ///   - accessToken: The token of the device's registration.
    ///   - chatID: SHAKE-256 of the chat's id, 64 bytes: see ``StatusHashes/chat(_:)``.
    ///   - publicKey: The registrant's ``KeyHash``, 64 bytes.
    ///   - installationID: The device to notify.
    ///   - message: The message, encrypted for the device. Passed to the app unchanged.
    ///   - kind: Selects filters and text. ``NotificationKind/unknown`` is never sent.
    ///   - author: SHAKE-256 of `0x` + full hex of the author's key, 64 bytes: see ``StatusHashes/author(_:)``.
    public init(
        accessToken: AccessToken, chatID: [UInt8], publicKey: [UInt8], installationID: InstallationID, message: [UInt8] = [],
        kind: NotificationKind, author: [UInt8]
    ) {
        self.accessToken = accessToken
        self.chatID = chatID
        self.publicKey = publicKey
        self.installationID = installationID
        self.message = message
        self.kind = kind
        self.author = author
    }

    /// - Parameter former: the entry before in the same request. Its values are mostly equal, and are then shared: copies would take three times
    ///   the memory of the message.
    init(_ message: Protobuf__PushNotification, after former: PushNotification?) throws(ProtobufError) {
        accessToken = AccessToken(bytes: try message.access_token.utf8())
        chatID = message.chat_id.bytes(or: former?.chatID)
        publicKey = message.public_key.bytes(or: former?.publicKey)
        installationID = InstallationID(bytes: try message.installation_id.utf8())
        self.message = message.message.bytes(or: former?.message)
        kind = NotificationKind(rawValue: Int32(bitPattern: message.type.rawValue))
        author = message.author.bytes(or: former?.author)
    }

    func fill(_ message: inout Protobuf__PushNotification, _ arena: ProtobufArena) {
        message.access_token = arena.data(accessToken.bytes)
        message.chat_id = arena.data(chatID)
        message.public_key = arena.data(publicKey)
        message.installation_id = arena.data(installationID.bytes)
        message.message = arena.data(self.message)
        message.type = Protobuf__PushNotification__PushNotificationType(rawValue: UInt32(bitPattern: kind.rawValue))
        message.author = arena.data(author)
    }
}

/// A request to notify devices.
///
///     1 requests    2 message_id: the message of the notifications; a device is notified once per message_id
public struct PushNotificationRequest: Hashable, Sendable {
    /// Requests with more entries are dropped.
    public static let notificationLimit = 1000
    private static let fieldLimit = notificationLimit + 64
    private static let nestedFieldLimit = 64

    /// At most ``notificationLimit``. A device that is named twice is notified once.
    public var requests: [PushNotification]
    /// The message that the notifications are about. Requests without it are dropped; the answer repeats it.
    public var messageID: [UInt8]

    /// - Parameters:
    ///   - requests: An entry for each device; the reports have the same order.
    ///   - messageID: Not empty. The same id notifies a device once within 24 h, even if several clients send requests.
    public init(requests: [PushNotification], messageID: [UInt8]) {
        self.requests = requests
        self.messageID = messageID
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        try ProtobufScan.checkNested(bytes, field: 1, fieldLimit: Self.fieldLimit, nestedFieldLimit: Self.nestedFieldLimit)
        self = try ProtobufC.decode(bytes, protobuf__push_notification_request__init) { message throws(ProtobufError) in
            guard message.pointee.n_requests <= Self.notificationLimit else { throw .tooMany }
            var requests: [PushNotification] = []
            let start = message.pointee.requests
            for case let request? in UnsafeBufferPointer(start: start, count: start == nil ? 0 : message.pointee.n_requests) {
                requests.append(try PushNotification(request.pointee, after: requests.last))
            }
            return PushNotificationRequest(requests: requests, messageID: message.pointee.message_id.bytes)
        }
    }

    /// The protobuf encoding: the payload of an envelope of kind ``MessageKind/request``.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__push_notification_request__init) { message, arena in
            message.n_requests = requests.count
            message.requests = arena.messages(requests, protobuf__push_notification__init) { $0.fill(&$1, arena) }
            message.message_id = arena.data(messageID)
        }
    }
}
