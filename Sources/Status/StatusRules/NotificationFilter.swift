import StatusProtocol

/// Applies a registrant's filters, `PROTOCOL.md` section 6. Compares 64-byte hashes.
enum NotificationFilter {
    static func admits(_ notification: PushNotification, for registration: PushNotificationRegistration) -> Bool {
        guard registration.enabled, !registration.blockedChatList.contains(notification.author) else { return false }
        switch notification.kind {
        case .message:
            return !registration.blockedChatList.contains(notification.chatID) && !registration.mutedChatList.contains(notification.chatID)
        case .mention:
            return !registration.blockMentions && registration.allowedMentionsChatList.contains(notification.chatID)
        default:
            return true
        }
    }
}
