package import Core
package import NodeMetrics
import WakuCrypto

/// A notification of the outbox with its content and the present registration of its device, so that an updated token is used.
public struct QueuedDelivery: Sendable {
    package let waiting: WaitingDelivery
    package let address: DeviceAddress
    package let content: any NotificationContent
    /// The times of the requesting message; nil for a notification that was read from the outbox.
    package let times: MessageTimes?
    /// The id of an outbox row. Deliveries of one group go into the same post while there is room, because they share their content and make one
    /// notification for several devices. nil: no group.
    let group: Int64?
    /// nil when its message is not traced.
    var trace: MessageTrace? { times?.trace }

    package init(
        _ waiting: WaitingDelivery, to address: DeviceAddress, _ content: any NotificationContent, times: MessageTimes? = nil,
        group: Int64? = nil
    ) {
        self.waiting = waiting
        self.address = address
        self.content = content
        self.times = times
        self.group = group
    }

    package var delivery: DeliveryID { waiting.delivery }

    var posted: PostedNotification {
        PostedNotification(delivery: waiting.delivery, device: waiting.device, version: address.version)
    }

    var credentialScope: FailureGuard.CredentialScope { address.credentialScope }

    /// The notification for a gorush endpoint; nil for a device that gorush does not reach.
    ///
    /// - Parameter sandbox: the APNs topics with tokens of Apple's sandbox.
    func notification(sandbox: Set<String>) -> Delivery.Notification? {
        guard case .gorush(let device) = address.target else { return nil }
        return Delivery.Notification(
            id: waiting.delivery.notificationID, platform: device.platform, deviceToken: device.token, apnTopic: device.apnTopic,
            isForSandbox: device.platform == .apn && sandbox.contains(device.apnTopic), expires: waiting.expires, content: content)
    }
}

extension DeviceAddress {
    /// The devices whose failures are compared: those that share a certificate, key or project, or the origin of a push service.
    var credentialScope: FailureGuard.CredentialScope {
        switch target {
        case .gorush(let device):
            FailureGuard.CredentialScope(platform: device.platform, topic: device.apnTopic, service: device.service)
        case .webPush(let subscription): FailureGuard.CredentialScope(origin: subscription.origin)
        }
    }
}

extension DeliveryID {
    private static let namedByteCount = 16

    /// gorush's `notif_id`, unique for each gorush because it derives from the delivery id.
    package var notificationID: String { hexString(bytes.prefix(Self.namedByteCount)) }

    /// The prefix of the delivery id encoded in a `notif_id`; nil when this server did not create the id.
    ///
    /// - Parameters:
    ///   - notificationID: of any payload profile.
    ///   - ids: reads the ids of the profile `private`.
    package static func prefix(of notificationID: String, _ ids: NotificationIDCipher?) -> [UInt8]? {
        ids?.deliveryPrefix(of: notificationID) ?? prefix(of: notificationID)
    }

    static func prefix(of notificationID: String) -> [UInt8]? {
        guard let prefix = WakuCrypto.bytes(hex: notificationID), prefix.count == namedByteCount else { return nil }
        return prefix
    }
}
