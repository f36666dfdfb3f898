public import Core

/// The push address of a device under its current registration.
public struct DeviceAddress: Sendable {
    package enum Target: Sendable {
        case gorush(GorushDevice)
        case webPush(PushSubscription)
    }

    /// The version of the registration.
    package let version: UInt64
    package let target: Target
    /// The expiry of the registration; nil: never. From then on nothing is posted to the device, even before its row is removed.
    package let endsAt: Timestamp?

    package init(version: UInt64, _ target: Target, endsAt: Timestamp? = nil) {
        self.version = version
        self.target = target
        self.endsAt = endsAt
    }

    /// nil for a device that gorush does not reach.
    package var gorushDevice: GorushDevice? { if case .gorush(let device) = target { device } else { nil } }

    /// nil for a device that gorush reaches.
    var pushService: WebPushOrigin? { if case .webPush(let subscription) = target { subscription.origin } else { nil } }

    public init(
        version: UInt64, platform: Platform, deviceToken: DeviceToken, apnTopic: String, service: PushService? = nil,
        endsAt: Timestamp? = nil
    ) {
        let device = GorushDevice(platform: platform, token: deviceToken, apnTopic: apnTopic, service: service)
        self.init(version: version, .gorush(device), endsAt: endsAt)
    }
}

/// A device that is reached by gorush.
package struct GorushDevice: Sendable {
    package let platform: Platform
    package let token: DeviceToken
    /// The app's APNs topic.
    package let apnTopic: String
    /// The push service by which endpoints select devices; nil for protocols without.
    package var service: PushService? = nil
}
