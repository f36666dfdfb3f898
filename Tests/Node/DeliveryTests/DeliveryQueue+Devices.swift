import Core
import Waku

@testable import Delivery

extension DeliveryQueue {
    /// Adds a notification for a device of one protocol.
    mutating func add(_ id: Int64, device: Int64, expires: Timestamp, isAwaited: Bool = true, now: Timestamp) {
        add(id, device: DeviceID(ProtocolNumber(rawValue: 1), row: device), expires: expires, isAwaited: isAwaited, now: now)
    }
}
