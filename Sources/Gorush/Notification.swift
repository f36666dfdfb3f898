public import StatusProtocol

/// What one device is to be told. Prints its id alone.
public struct Notification: Sendable, CustomStringConvertible, CustomReflectable {
    /// gorush's notif_id, unique: what its failures are matched by.
    public let id: String
    public let platform: Platform
    public let deviceToken: DeviceToken
    /// The app on APNs. Never sent for Firebase, where a topic is a broadcast.
    public let apnTopic: String
    public let kind: NotificationKind
    public let chatID: [UInt8]
    public let registrant: KeyHash
    /// Sealed by the sender, for the device to open.
    public let message: [UInt8]
    public let installationID: InstallationID
    /// Of Apple's sandbox is the device's token: gorush's `development`.
    public let isForSandbox: Bool

    public init(
        id: String, platform: Platform, deviceToken: DeviceToken, apnTopic: String, kind: NotificationKind, chatID: [UInt8],
        registrant: KeyHash, message: [UInt8], installationID: InstallationID, isForSandbox: Bool = false
    ) {
        self.id = id
        self.platform = platform
        self.deviceToken = deviceToken
        self.apnTopic = apnTopic
        self.kind = kind
        self.chatID = chatID
        self.registrant = registrant
        self.message = message
        self.installationID = installationID
        self.isForSandbox = isForSandbox
    }

    public var description: String { "notification \(id)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
