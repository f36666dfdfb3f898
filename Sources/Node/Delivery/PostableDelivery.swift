import Core
import WakuCrypto

/// A notification that waits, with its device as it is registered now: an update since it was asked for reaches the new token.
package struct PostableDelivery: Sendable {
    package let waiting: WaitingDelivery
    package let address: DeviceAddress
    package let content: any NotificationContent

    package init(_ waiting: WaitingDelivery, to address: DeviceAddress, _ content: any NotificationContent) {
        self.waiting = waiting
        self.address = address
        self.content = content
    }

    var posted: PostedNotification {
        PostedNotification(delivery: waiting.delivery, device: waiting.device, version: address.version)
    }

    var audience: FailureGuard.Audience { address.audience }

    /// - Parameter sandbox: APNs topics whose tokens are of Apple's sandbox.
    func notification(sandbox: Set<String>) -> Delivery.Notification {
        Delivery.Notification(
            id: waiting.delivery.notificationID, platform: address.platform, deviceToken: address.deviceToken, apnTopic: address.apnTopic,
            isForSandbox: address.platform == .apn && sandbox.contains(address.apnTopic), expires: waiting.expires, content: content)
    }
}

extension DeviceAddress {
    /// Who shares its certificate, key or project.
    var audience: FailureGuard.Audience { FailureGuard.Audience(platform: platform, topic: apnTopic, service: service) }
}

extension DeliveryID {
    private static let namedByteCount = 16

    /// gorush's notif_id. Unique among all that this gorush ever gets: derived from what is delivered to whom.
    package var notificationID: String { hexString(bytes.prefix(Self.namedByteCount)) }

    /// The beginning of the delivery that a notification was named after; nil when it is none of this server's.
    static func prefix(of notificationID: String) -> [UInt8]? {
        guard let prefix = WakuCrypto.bytes(hex: notificationID), prefix.count == namedByteCount else { return nil }
        return prefix
    }
}
