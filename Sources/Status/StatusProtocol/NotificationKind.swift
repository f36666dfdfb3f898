/// PushNotificationType. Senders may use other values: their notifications have the text of a mention.
public struct NotificationKind: RawRepresentable, Hashable, Sendable {
    /// The number of the enumeration in the protobuf message. Any value is preserved.
    public let rawValue: Int32
    /// - Parameter rawValue: The number of the enumeration, including values that have no name here.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// The default of the field: servers do not notify, and report UNKNOWN_ERROR_TYPE.
    public static let unknown = NotificationKind(rawValue: 0)
    /// A one-to-one or group chat message. Subject to blocked and muted chats.
    public static let message = NotificationKind(rawValue: 1)
    /// A mention or reply in a community. Sent only if the recipient allows mentions in that chat.
    public static let mention = NotificationKind(rawValue: 2)
    /// A request to join a community that the recipient administers.
    public static let requestToJoinCommunity = NotificationKind(rawValue: 3)
    /// A contact request.
    public static let contactRequest = NotificationKind(rawValue: 4)
}
