public import StatusProtocol
public import WakuCrypto

/// A message about which devices are to be notified.
public struct OutgoingNotification: Sendable {
    public struct Recipient: Hashable, Sendable {
        public let registrant: PublicKey
        /// The devices to notify; empty for the most recently active known ones.
        public let installations: [InstallationID]

        public init(_ registrant: PublicKey, installations: [InstallationID] = []) {
            self.registrant = registrant
            self.installations = installations
        }
    }

    /// The maximum length of ``messageID`` in bytes.
    public static let messageIDByteLimit = 1024

    /// The message's id, 1 to ``messageIDByteLimit`` bytes. The same id notifies a device once.
    public let messageID: [UInt8]
    /// Servers receive only a hash of it.
    public let chatID: String
    public let kind: NotificationKind
    /// The encrypted message for the device. Content and chat hash together are at most `PushNotification.contentByteLimit`.
    public let content: [UInt8]
    public let recipients: [Recipient]

    public init(messageID: [UInt8], chatID: String, kind: NotificationKind, content: [UInt8] = [], recipients: [Recipient]) {
        self.messageID = messageID
        self.chatID = chatID
        self.kind = kind
        self.content = content
        self.recipients = recipients
    }
}

/// The outcome of a notification for one device.
public struct DeviceOutcome: Hashable, Sendable {
    public enum Result: Hashable, Sendable {
        /// A server accepted the request.
        case notified(by: PublicKey)
        /// The device's owner allows only other clients to notify it.
        case notAllowed
        /// No server that knows the device accepted the request within the message's age and the allowed attempts.
        case gaveUp(GiveUpReason)
    }

    public enum GiveUpReason: String, Hashable, Sendable, Codable {
        /// No device of the registrant is known, and no server returned one.
        case noDevice
        /// No advertisement of the registrant names a server, and the application listed none: see ``StatusPushClient/Configuration/servers``.
        case noServerKnown
        /// The servers did not answer, or failed.
        case noServer
        /// The message is too old.
        case expired
        /// The caller cancelled the message.
        case cancelled
    }

    public let registrant: PublicKey
    /// nil when no device of the registrant is known.
    public let installationID: InstallationID?
    public let result: Result

    public init(registrant: PublicKey, installationID: InstallationID?, result: Result) {
        self.registrant = registrant
        self.installationID = installationID
        self.result = result
    }
}

/// Kinds of messages, and the notification that each causes, if any.
public enum NotifiableMessage: Hashable, Sendable, CaseIterable {
    case oneToOne
    case group
    case communityMention
    case communityReply
    /// A message in a community that neither mentions nor answers the recipient.
    case communityMessage
    case communityJoinRequest
    case contactRequest

    /// nil: no notification.
    public var kind: NotificationKind? {
        switch self {
        case .oneToOne, .group: .message
        case .communityMention, .communityReply: .mention
        case .communityMessage: nil
        case .communityJoinRequest: .requestToJoinCommunity
        case .contactRequest: .contactRequest
        }
    }
}
