import Core

/// The push address of a device, as the payer of places in the outbox: devices with the same token are one recipient.
///
/// A hash with a secret of this process, so that nobody can choose tokens that collide, and no token is kept.
package struct PushRecipient: Hashable, Sendable {
    private let value: Int

    package init(_ address: DeviceAddress) {
        var hasher = Hasher()
        switch address.target {
        case .gorush(let device): hasher.combine(device.token.bytes)
        case .webPush(let subscription): hasher.combine(subscription.endpoint)
        }
        value = hasher.finalize()
    }

    /// The recipient of a device whose address is unknown.
    package init(_ device: DeviceID) {
        value = device.hashValue
    }
}

extension DeviceAddress {
    /// For ``DeliveryTable/becameKnown(_:)``; nil for a device that gorush reaches.
    var knownSubscription: (recipient: PushRecipient, origin: WebPushOrigin)? { pushService.map { (PushRecipient(self), $0) } }
}
