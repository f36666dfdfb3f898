/// The style and delivery options of a notification. A nil property is left to the payload profile; an empty text removes the profile's value.
public struct NotificationStyle: Hashable, Sendable {
    package enum Text: Hashable, Sendable {
        case text(String)
        /// A key of the app's string resources.
        case localized(key: String)

        var text: String? {
            guard case .text(let text) = self, !text.isEmpty else { return nil }
            return text
        }

        var key: String? {
            guard case .localized(let key) = self else { return nil }
            return key
        }
    }

    package enum Priority: String, Sendable, CaseIterable {
        case high
        case normal
    }

    /// Apple's interruption level, from iOS 15. `critical` needs an entitlement.
    package enum InterruptionLevel: String, Sendable, CaseIterable {
        case passive
        case active
        case timeSensitive = "time-sensitive"
        case critical
    }

    package enum TimeToLive: Hashable, Sendable {
        /// The time after the post. Zero notifies only devices that are connected.
        case seconds(Int)
        /// Until the notification would expire in the outbox.
        case remaining
    }

    /// The notifications that a later one replaces.
    package enum Collapse: String, Sendable, CaseIterable {
        case never = "none"
        /// Only a repetition of the same notification.
        case message
        /// Notifications of the same chat.
        case chat
    }

    /// The notifications that a device shows as one group.
    package enum Thread: String, Sendable, CaseIterable {
        case never = "none"
        case chat
    }

    package var title: Text?
    package var body: Text?
    package var sound: String?
    package var badge: Int?
    package var category: String?
    /// Android's notification channel.
    package var channel: String?
    package var isMutable: Bool?
    package var isContentAvailable: Bool?
    package var interruptionLevel: InterruptionLevel?
    package var priority: Priority?
    package var pushType: String?
    package var timeToLive: TimeToLive?
    package var collapse: Collapse?
    package var thread: Thread?
    /// Whether to use Apple's sandbox; nil: ``Notification/isForSandbox`` decides.
    package var isForSandbox: Bool?
    package var deepLink: DeepLinkTemplate?
    /// Huawei's tag for delivery reports.
    package var reportTag: String?

    package init() {}

    package init(body: String) {
        self.body = .text(body)
    }

    /// Returns a copy in which the properties set in `other` replace these.
    package func overlaid(by other: NotificationStyle) -> NotificationStyle {
        var style = self
        style.title = other.title ?? title
        style.body = other.body ?? body
        style.sound = other.sound ?? sound
        style.badge = other.badge ?? badge
        style.category = other.category ?? category
        style.channel = other.channel ?? channel
        style.isMutable = other.isMutable ?? isMutable
        style.isContentAvailable = other.isContentAvailable ?? isContentAvailable
        style.interruptionLevel = other.interruptionLevel ?? interruptionLevel
        style.priority = other.priority ?? priority
        style.pushType = other.pushType ?? pushType
        style.timeToLive = other.timeToLive ?? timeToLive
        style.collapse = other.collapse ?? collapse
        style.thread = other.thread ?? thread
        style.isForSandbox = other.isForSandbox ?? isForSandbox
        style.deepLink = other.deepLink ?? deepLink
        style.reportTag = other.reportTag ?? reportTag
        return style
    }

    /// Settings by which two notifications for the same device would differ, or be alike where others differ.
    var distinctions: [String] {
        var names: [String] = []
        if timeToLive == .remaining { names.append("ttl: remaining") }
        if collapse == .chat { names.append("collapse: chat") }
        if thread == .chat { names.append("thread: chat") }
        if deepLink?.isConstant == false { names.append("placeholders in deep-link") }
        return names
    }

    /// Without the properties in ``distinctions``.
    var constant: NotificationStyle {
        var style = self
        if timeToLive == .remaining { style.timeToLive = nil }
        if collapse == .chat { style.collapse = nil }
        if thread == .chat { style.thread = nil }
        if deepLink?.isConstant == false { style.deepLink = nil }
        return style
    }

    /// Only the properties that do not change texts and data.
    var delivery: NotificationStyle {
        var style = NotificationStyle()
        style.timeToLive = timeToLive
        style.collapse = collapse
        style.reportTag = reportTag
        return style
    }
}
