public import StatusProtocol
public import WakuCrypto

/// A message about which devices are to be notified.
public struct OutgoingNotification: Sendable {
    /// A registrant to notify, on some or all of its devices.
    public struct Recipient: Hashable, Sendable {
        /// The owner of the devices.
        public let registrant: PublicKey
        /// The devices to notify; empty for the most recently active known ones.
        public let installations: [InstallationID]

        /// The client's own identity is allowed as registrant; its own device is left out.
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
    /// Selects the recipients' filters and the text of the notification. Clients do not notify of messages in a community that neither mention nor
    /// answer the recipient.
    public let kind: NotificationKind
    /// The encrypted message for the device. Content and chat hash together are at most `PushNotification.contentByteLimit`.
    public let content: [UInt8]
    /// Registrants that the message was sent to.
    public let recipients: [Recipient]

    /// Creates a notification. Its content is empty if the app fetches the message.
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
    /// The outcomes. All are final: the client makes no further requests for the message and the device.
    public enum Result: Hashable, Sendable {
        /// A server accepted the request.
        case notified(by: PublicKey)
        /// The device's owner allows only other clients to notify it.
        case notAllowed
        /// No server that knows the device accepted the request within the message's age and the allowed attempts.
        case gaveUp(GiveUpReason)
    }

    /// Why no server accepted the request. The raw values are stored.
    public enum GiveUpReason: String, Hashable, Sendable, Codable {
        /// No device of the registrant is known, and no server returned one.
        case noDevice
        /// No advertisement of the registrant names a server, and the application listed none: see ``StatusPushClient/Configuration/servers``.
        case noServerKnown
        /// Every server that is known to have had the device answered that it is not registered, and a query brought no other one.
        case notRegistered
        /// The servers did not answer, or failed.
        case noServer
        /// The message is too old.
        case expired
        /// The caller cancelled the message.
        case cancelled
    }

    /// The owner of the device.
    public let registrant: PublicKey
    /// nil when no device of the registrant is known.
    public let installationID: InstallationID?
    /// Remembered for 24 h, and returned again when the same message is notified again.
    public let result: Result
}
