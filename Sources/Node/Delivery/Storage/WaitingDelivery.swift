package import Core
import Storage

/// A row of the outbox without its payload: a notification that waits.
package struct WaitingDelivery: Hashable, Sendable {
    /// The id of its outbox row; later rows have higher ids.
    package let id: Int64
    package let delivery: DeliveryID
    package let device: DeviceID
    package let expires: Timestamp
    /// The time at which it was first marked as possibly posted; nil: never, or unknown.
    package let markedAt: Timestamp?

    package init(id: Int64, delivery: DeliveryID, device: DeviceID, expires: Timestamp, markedAt: Timestamp? = nil) {
        self.markedAt = markedAt
        self.id = id
        self.delivery = delivery
        self.device = device
        self.expires = expires
    }

    /// A copy without a mark: no post of it has an unknown outcome.
    package var unmarked: WaitingDelivery { WaitingDelivery(id: id, delivery: delivery, device: device, expires: expires) }

    /// - Parameter row: id, protocol, device and expiry.
    init(_ row: Row, _ delivery: DeliveryID, markedAt: Timestamp? = nil) throws(UnexpectedValue) {
        self.init(
            id: try row.integer(0), delivery: delivery,
            device: DeviceID(ProtocolNumber(rawValue: try row.integer(1)), row: try row.integer(2)),
            expires: Timestamp(rawValue: try row.integer(3)), markedAt: markedAt)
    }
}

/// A notification that gorush accepted, and the device that has its token.
package struct PostedNotification: Hashable, Sendable {
    package let delivery: DeliveryID
    package let device: DeviceID
    /// The version of the registration whose token was posted.
    package let version: UInt64

    package init(delivery: DeliveryID, device: DeviceID, version: UInt64) {
        self.delivery = delivery
        self.device = device
        self.version = version
    }
}
