import Core
import WakuCrypto

/// A waiting notification with the current registration of its device, so that an updated token is used.
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

    var credentialScope: FailureGuard.CredentialScope { address.credentialScope }

    /// - Parameter sandbox: the APNs topics with tokens of Apple's sandbox.
    func notification(sandbox: Set<String>) -> Delivery.Notification {
        Delivery.Notification(
            id: waiting.delivery.notificationID, platform: address.platform, deviceToken: address.deviceToken, apnTopic: address.apnTopic,
            isForSandbox: address.platform == .apn && sandbox.contains(address.apnTopic), expires: waiting.expires, content: content)
    }
}

extension DeviceAddress {
    /// The devices that share its certificate, key or project.
    var credentialScope: FailureGuard.CredentialScope {
        FailureGuard.CredentialScope(platform: platform, topic: apnTopic, service: service)
    }
}

extension DeliveryID {
    private static let namedByteCount = 16

    /// gorush's `notif_id`, unique for each gorush because it derives from the delivery id.
    package var notificationID: String { hexString(bytes.prefix(Self.namedByteCount)) }

    /// The prefix of the delivery id encoded in a `notif_id`; nil when this server did not create the id.
    static func prefix(of notificationID: String) -> [UInt8]? {
        guard let prefix = WakuCrypto.bytes(hex: notificationID), prefix.count == namedByteCount else { return nil }
        return prefix
    }
}
