package import PushTypes

/// What one device is to be told. Prints its id alone.
package struct Notification: Sendable, CustomStringConvertible, CustomReflectable {
    /// gorush's notif_id, unique: what its failures are matched by.
    package let id: String
    package let platform: Platform
    package let deviceToken: DeviceToken
    /// The app on APNs. Never sent for Firebase, where a topic is a broadcast.
    package let apnTopic: String
    /// Whether the token is of Apple's sandbox: gorush's `development`.
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

/// What a protocol has a device told: the part of gorush's JSON that is the protocol's own.
package protocol NotificationContent: Sendable {
    /// What the device shows until the app has opened the message.
    func text(in profile: PayloadProfile) -> String

    /// Notifications of one platform and topic with the same key become one, for all of their devices; nil: on its own.
    func groupKey(in profile: PayloadProfile) -> [UInt8]?

    /// Members beside those that every notification has.
    func writeMembers(for platform: Platform, in profile: PayloadProfile, to writer: inout JSONWriter)

    /// Members of `data`.
    ///
    /// - Parameters:
    ///   - devices: those of a group, this content's first; their contents are of this type.
    ///   - profile: of the endpoint.
    ///   - writer: takes them.
    func writeData(for devices: [Notification], in profile: PayloadProfile, to writer: inout JSONWriter)

    /// Of what it writes, roughly.
    var byteCount: Int { get }
}

extension NotificationContent {
    package func groupKey(in profile: PayloadProfile) -> [UInt8]? { nil }
    package func writeMembers(for platform: Platform, in profile: PayloadProfile, to writer: inout JSONWriter) {}
}
