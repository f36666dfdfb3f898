package import Core
import Waku

/// The format of notifications for a gorush server: the app's payload profile, and the operator's settings.
package struct NotificationFormat: Hashable, Sendable {
    package let profile: PayloadProfile
    package let settings: NotificationSettings

    package init(_ profile: PayloadProfile = .default, settings: NotificationSettings = .none) {
        self.profile = profile
        self.settings = settings
    }

    /// Encodes at most 100 notifications as gorush's JSON: a pure function of the notifications, the format and the time.
    ///
    /// - Parameters:
    ///   - notifications: with distinct ids.
    ///   - now: the time of the post, for settings of the time to live.
    package func encode(_ notifications: [Notification], at now: Timestamp) -> [UInt8] {
        PushRequest(notifications, format: self).encoded(at: now)
    }

    /// Whether a device that receives this notification twice with the same id shows it once, because the second replaces the first. False if the
    /// notification can be combined with others: it then has the id of the first of them, which may differ the second time.
    package func showsRepetitionOnce(_ notification: Notification) -> Bool {
        guard notification.content.groupKey(in: profile) == nil else { return false }
        return NotificationBody([notification], self, at: Timestamp(rawValue: 0))?.showsRepetitionOnce ?? false
    }
}

extension PayloadProfile {
    /// Encodes notifications as gorush's JSON, without operator settings.
    package func encode(_ notifications: [Notification]) -> [UInt8] {
        NotificationFormat(self).encode(notifications, at: Timestamp(rawValue: 0))
    }
}
