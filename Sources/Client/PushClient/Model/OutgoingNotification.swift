public import StatusProtocol
public import WakuCrypto

/// A message about which devices are to be notified.
public struct OutgoingNotification: Sendable {
    public struct Recipient: Hashable, Sendable {
        public let registrant: PublicKey
        /// The devices that the message goes to; empty: the most recently active known ones.
        public let installations: [InstallationID]

        public init(_ registrant: PublicKey, installations: [InstallationID] = []) {
            self.registrant = registrant
            self.installations = installations
        }
    }

    /// Of ``messageID``.
    public static let messageIDByteLimit = 1024

    /// What it is about: 1 to ``messageIDByteLimit`` bytes. The same id notifies a device once.
    public let messageID: [UInt8]
    /// Sent to servers as a hash only.
    public let chatID: String
    public let kind: NotificationKind
    /// The encrypted message, for the device. Together with the chat's hash at most `PushNotification.contentByteLimit`.
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

/// What became of one device.
public struct DeviceOutcome: Hashable, Sendable {
    public enum Result: Hashable, Sendable {
        /// A server took it.
        case notified(by: PublicKey)
        /// Its owner lets others notify it.
        case notAllowed
        /// No server that knows the device did it within the message's age and tries.
        case gaveUp(GiveUpReason)
    }

    public enum GiveUpReason: String, Hashable, Sendable, Codable {
        /// No device of the registrant is known, and no server told of any.
        case noDevice
        /// The servers did not answer, or could not do it.
        case noServer
        /// The message is too old.
        case expired
        /// The caller lost interest.
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

/// What messages are worth notifying about, and as what.
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
