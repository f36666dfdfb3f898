/// PushNotificationType. Senders may use other values: their notifications have the text of a mention.
public struct NotificationKind: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }

    public static let unknown = NotificationKind(rawValue: 0)
    public static let message = NotificationKind(rawValue: 1)
    public static let mention = NotificationKind(rawValue: 2)
    public static let requestToJoinCommunity = NotificationKind(rawValue: 3)
    public static let contactRequest = NotificationKind(rawValue: 4)
}
