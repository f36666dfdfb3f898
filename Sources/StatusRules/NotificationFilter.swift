import StatusProtocol

/// What a registrant does not want to hear of, `PROTOCOL.md` section 6. Hashes are compared, 64 bytes each.
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
