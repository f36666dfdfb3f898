public import WakuPushNode

/// A device, and the topics that its owner wants to be notified of.
public struct Registration: RegisteredDevice {
    public static let topic = ContentTopic(rawValue: "/topic-push/1/registrations/json")

    /// A Firebase token of at most 4096 bytes; at most 20 topics of 256; and the text of each notification, of 1024.
    var token: String
    var topics: [String]
    var text: String

    public var isValid: Bool {
        (1...4096).contains(token.utf8.count) && text.utf8.count <= 1024
            && topics.count <= 20 && topics.allSatisfy { $0.utf8.count <= 256 }
    }

    public func address(version: UInt64, end: Timestamp) -> DeviceAddress {
        DeviceAddress(version: version, platform: .firebase, deviceToken: DeviceToken(token), apnTopic: "", endsAt: end)
    }

    public func content(of payload: [UInt8]) -> any NotificationContent { TextContent(text) }
}
