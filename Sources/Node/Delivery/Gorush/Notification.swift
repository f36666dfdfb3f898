public import Core
import Waku

/// A notification for one device. Prints only its id.
package struct Notification: Sendable, CustomStringConvertible, CustomReflectable {
    /// gorush's `notif_id`, unique, by which failures are matched.
    package let id: String
    package let platform: Platform
    package let deviceToken: DeviceToken
    /// The app's APNs topic. Never sent for Firebase, where a topic is a broadcast.
    package let apnTopic: String
    /// Whether the token belongs to Apple's sandbox: gorush's `development`.
    package let isForSandbox: Bool
    /// The time at which it is given up; nil if never.
    package let expires: Timestamp?
    package let content: any NotificationContent

    package init(
        id: String, platform: Platform, deviceToken: DeviceToken, apnTopic: String, isForSandbox: Bool = false,
        expires: Timestamp? = nil, content: any NotificationContent
    ) {
        self.id = id
        self.platform = platform
        self.deviceToken = deviceToken
        self.apnTopic = apnTopic
        self.isForSandbox = isForSandbox
        self.expires = expires
        self.content = content
    }

    /// The same notification with another id.
    func renamed(_ id: String) -> Notification {
        Notification(
            id: id, platform: platform, deviceToken: deviceToken, apnTopic: apnTopic, isForSandbox: isForSandbox, expires: expires,
            content: content)
    }

    package var description: String { "notification \(id)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The content of a notification: the part of gorush's JSON that depends on the protocol.
public protocol NotificationContent: Sendable {
    /// The text that the device shows unless the app or the operator replaces it.
    func text(in profile: PayloadProfile) -> String

    /// The properties by which settings select notifications. By default no settings apply.
    var subject: NotificationSubject { get }

    /// Its style without the operator's settings. By default only ``text(in:)`` is set.
    func style(for platform: Platform, in profile: PayloadProfile) -> NotificationStyle

    /// Whether the device shows it without the app's help. By default `NotificationBody.isVisible`; contents that write their own members override
    /// it.
    func isVisible(in body: NotificationBody) -> Bool

    /// Notifications of the same platform and topic with equal keys are combined into one for all their devices; nil if it is not to be combined.
    func groupKey(in profile: PayloadProfile) -> [UInt8]?

    /// Writes the members of `data`.
    ///
    /// - Parameter body: the body, with the devices of a group, of which the first has this content.
    func writeData(for body: NotificationBody, to writer: inout JSONWriter)

    /// Writes all members but `notif_id`, `tokens` and `platform`. By default `NotificationBody.write(to:)`.
    ///
    /// - Parameter body: as for ``writeData(for:to:)``.
    func write(_ body: NotificationBody, to writer: inout JSONWriter)

    /// The content for a Web Push receiver; nil if the protocol has none.
    func webPushContent(id: String) -> WebPushContent?

    /// The approximate size of its output.
    var byteCount: Int { get }
}

extension NotificationContent {
    public var subject: NotificationSubject { NotificationSubject(protocolName: "", kind: .other, isFixed: true) }

    public func style(for platform: Platform, in profile: PayloadProfile) -> NotificationStyle {
        NotificationStyle(body: text(in: profile))
    }

    public func webPushContent(id: String) -> WebPushContent? { nil }
    public func groupKey(in profile: PayloadProfile) -> [UInt8]? { nil }
    public func isVisible(in body: NotificationBody) -> Bool { body.isVisible }
    public func write(_ body: NotificationBody, to writer: inout JSONWriter) { body.write(to: &writer) }
}
