public import WakuPushNode

/// A device, and the topics that its owner wants to be notified of.
public struct Registration: RegisteredDevice {
    public static let topic = ContentTopic(rawValue: "/topic-push/1/registrations/json")

    /// A Firebase token.
    var token: String
    /// At most 20.
    var topics: [String]
    /// The text of each notification.
    var text: String

    public var isValid: Bool { !token.isEmpty && topics.count <= 20 }

    public func address(version: UInt64, end: Timestamp) -> DeviceAddress {
        DeviceAddress(version: version, platform: .firebase, deviceToken: DeviceToken(token), apnTopic: "", endsAt: end)
    }

    public func content(of payload: [UInt8]) -> any NotificationContent { TextContent(text) }
}
