package import Core

/// The format of notifications for a gorush server: the app's payload profile, and the operator's settings.
package struct NotificationFormat: Sendable {
    package let profile: PayloadProfile
    package let settings: NotificationSettings
    private let ids: NotificationIDCipher?

    /// - Parameters:
    ///   - ids: for ``PayloadProfile/private``; without it each attempt has another random id, so that a device may show a repetition twice.
    package init(
        _ profile: PayloadProfile = .default, settings: NotificationSettings = .none, ids: NotificationIDCipher? = nil
    ) {
        self.profile = profile
        self.settings = settings
        self.ids = ids
    }

    /// The `notif_id` of a notification.
    func postedID(of id: String) -> String {
        guard profile == .private else { return id }
        return ids?.postedID(of: id) ?? NotificationIDCipher.randomID()
    }

    /// The key by which a notification is combined with others; nil if it is not to be combined. In ``PayloadProfile/private`` none is: the
    /// devices that are notified together are those of one person.
    func groupKey(of notification: Notification) -> [UInt8]? {
        profile == .private ? nil : notification.content.groupKey(in: profile)
    }

    /// The style of a notification: the content's own, with the operator's settings over it. In ``PayloadProfile/private`` it is the same for all
    /// contents, except those of protocols that prescribe their members.
    func style(of notification: Notification) -> NotificationStyle {
        guard profile == .private, !notification.content.subject.isFixed else {
            let own = notification.content.style(for: notification.platform, in: profile)
            return settings.isEmpty ? own : own.overlaid(by: settings.style(for: notification))
        }
        var own = NotificationStyle(body: PayloadProfile.privateText)
        own.isMutable = true
        return own.overlaid(by: settings.constantStyle(for: notification))
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
        guard groupKey(of: notification) == nil else { return false }
        guard profile != .private || ids != nil else { return false }
        return NotificationBody([notification], self, at: Timestamp(rawValue: 0))?.showsRepetitionOnce ?? false
    }
}

extension PayloadProfile {
    /// Encodes notifications as gorush's JSON, without operator settings.
    package func encode(_ notifications: [Notification]) -> [UInt8] {
        NotificationFormat(self).encode(notifications, at: Timestamp(rawValue: 0))
    }
}
