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

    /// The approximate size of its output.
    var byteCount: Int { get }
}

extension NotificationContent {
    package func groupKey(in profile: PayloadProfile) -> [UInt8]? { nil }
    package func writeMembers(for platform: Platform, in profile: PayloadProfile, to writer: inout JSONWriter) {}
}
