import StatusProtocol

/// Applies a registrant's filters, `PROTOCOL.md` section 6. Compares 64-byte hashes.
///
/// An empty entry is no hash. It neither blocks notifications without an author or chat, nor allows them.
enum NotificationFilter {
    static func admits(_ notification: PushNotification, for registration: PushNotificationRegistration) -> Bool {
        guard registration.enabled, !contains(registration.blockedChatList, notification.author) else { return false }
        switch notification.kind {
        case .message:
            return [registration.blockedChatList, registration.mutedChatList].allSatisfy { !contains($0, notification.chatID) }
        case .mention:
            return !registration.blockMentions && contains(registration.allowedMentionsChatList, notification.chatID)
        default:
            return true
        }
    }

    private static func contains(_ list: [[UInt8]], _ hash: [UInt8]) -> Bool { !hash.isEmpty && list.contains(hash) }
}
