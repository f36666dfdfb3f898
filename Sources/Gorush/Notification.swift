package import PushTypes

/// A notification for one device. Prints only its id.
package struct Notification: Sendable, CustomStringConvertible, CustomReflectable {
    /// gorush's notif_id, unique: failures are matched by it.
    package let id: String
    package let platform: Platform
    package let deviceToken: DeviceToken
    /// The app on APNs. Never sent for Firebase, where a topic is a broadcast.
    package let apnTopic: String
    /// Whether the token belongs to Apple's sandbox: gorush's `development`.
    package let isForSandbox: Bool
    package let content: any NotificationContent

    package init(
        id: String, platform: Platform, deviceToken: DeviceToken, apnTopic: String, isForSandbox: Bool = false,
        content: any NotificationContent
    ) {
        self.id = id
        self.platform = platform
        self.deviceToken = deviceToken
        self.apnTopic = apnTopic
        self.isForSandbox = isForSandbox
        self.content = content
    }

    package var description: String { "notification \(id)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension Notification {
    /// Limit of a `collapse_id` in bytes: APNs refuses a notification with a longer one.
    private static let maximumCollapseIDByteCount = 64

    /// For APNs: a device replaces a notification that is delivered twice.
    package func writeCollapseID(to writer: inout JSONWriter) {
        guard platform == .apn, (1...Self.maximumCollapseIDByteCount).contains(id.utf8.count) else { return }
        writer.value("collapse_id", id)
    }
}

/// The content of a notification: the part of gorush's JSON that depends on the protocol.
package protocol NotificationContent: Sendable {
    /// The text that the device shows unless the app replaces it.
    func text(in profile: PayloadProfile) -> String

    /// Notifications of the same platform and topic with equal keys are combined into one for all their devices; nil if it is not to be combined.
    func groupKey(in profile: PayloadProfile) -> [UInt8]?

    /// Writes additional members, besides those that every notification has.
    func writeMembers(for platform: Platform, in profile: PayloadProfile, to writer: inout JSONWriter)

    /// Writes the members of `data`.
    ///
    /// - Parameters:
    ///   - devices: the devices of a group, this content's first; all contents have this type.
    ///   - profile: the endpoint's profile.
    ///   - writer: the output.
    func writeData(for devices: [Notification], in profile: PayloadProfile, to writer: inout JSONWriter)

    /// Writes all members but `notif_id`, `tokens` and `platform`. By default these are text, topic, ``writeMembers(for:in:to:)`` and `data`.
    ///
    /// - Parameters:
    ///   - devices: as for ``writeData(for:in:to:)``.
    ///   - profile: the endpoint's profile.
    ///   - writer: the output.
    func write(for devices: [Notification], in profile: PayloadProfile, to writer: inout JSONWriter)

    /// The approximate size of its output.
    var byteCount: Int { get }
}

extension NotificationContent {
    package func groupKey(in profile: PayloadProfile) -> [UInt8]? { nil }
    package func writeMembers(for platform: Platform, in profile: PayloadProfile, to writer: inout JSONWriter) {}

    package func write(for devices: [Notification], in profile: PayloadProfile, to writer: inout JSONWriter) {
        guard let first = devices.first else { return }
        writer.value("message", text(in: profile))
        if first.platform == .apn, !first.apnTopic.isEmpty { writer.value("topic", first.apnTopic) }
        first.writeCollapseID(to: &writer)
        if first.isForSandbox { writer.value("development", true) }
        writeMembers(for: first.platform, in: profile, to: &writer)
        writer.object("data") { writeData(for: devices, in: profile, to: &$0) }
    }
}
