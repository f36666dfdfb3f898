public import StatusProtocol

/// What notifications look like to the app that gets them.
public enum PayloadProfile: String, CaseIterable, Sendable {
    /// As deployed servers write it today.
    case status
    /// As they wrote it in 2024: without the additions for APNs, and with other texts.
    case status2024 = "status-2024"
    /// The published shape: devices that get the same are put together.
    case rfc
    /// `status`, with the published keys beside its own.
    case combined

    public static let `default` = PayloadProfile.combined

    /// What the device shows until the app has opened the message.
    public func text(for kind: NotificationKind) -> String {
        switch (self, kind) {
        case (.rfc, _), (.status2024, .message): "You have a new message"
        case (_, .requestToJoinCommunity): "Someone requested to join a community you are an admin of"
        case (.status2024, _): "Someone mentioned you"
        case (_, .message): "New message in Messenger"
        case (_, .contactRequest): "Someone sent you a contact request"
        default: "New mention or reply in Communities"
        }
    }

    /// Where the app opens, on APNs; nil where the profile has none.
    func deepLink(for kind: NotificationKind) -> String? {
        switch (self, kind) {
        case (.status2024, _), (.rfc, _): nil
        case (_, .message): "status-app://chats"
        case (_, .contactRequest): "status-app://contact-requests"
        default: "status-app://ac"
        }
    }
}
