package import Core
import Waku

/// How notifications are written for a gorush server: the app's format, and the operator's settings.
package struct NotificationFormat: Hashable, Sendable {
    package let profile: PayloadProfile
    package let settings: NotificationSettings

    package init(_ profile: PayloadProfile = .default, settings: NotificationSettings = .none) {
        self.profile = profile
        self.settings = settings
    }

    /// The JSON that gorush gets for at most 100 notifications: a pure function of them, the format and the time.
    ///
    /// - Parameters:
    ///   - notifications: with distinct ids.
    ///   - now: the time of the post, for settings of how long notifications live.
    package func encode(_ notifications: [Notification], at now: Timestamp) -> [UInt8] {
        PushRequest(notifications, format: self).encoded(at: now)
    }

    /// Whether a device that gets this notification twice, with the same id, shows it once: the second replaces the first. False for a notification
    /// that can be combined with others: it then has the id of the first of them, which may be another one the second time.
    package func showsRepetitionOnce(_ notification: Notification) -> Bool {
        guard notification.content.groupKey(in: profile) == nil else { return false }
        return NotificationBody([notification], self, at: Timestamp(rawValue: 0))?.showsRepetitionOnce ?? false
    }
}

extension PayloadProfile {
    /// The JSON that gorush gets without settings of the operator.
    package func encode(_ notifications: [Notification]) -> [UInt8] {
        NotificationFormat(self).encode(notifications, at: Timestamp(rawValue: 0))
    }
}
