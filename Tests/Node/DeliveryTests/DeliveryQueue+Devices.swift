import Core
import Waku

@testable import Delivery

extension DeliveryQueue {
    /// Adds a notification for a device of one protocol.
    ///
    /// - Parameter token: the number of its token; nil: unknown.
    mutating func add(
        _ id: Int64, device: Int64, token: Int64? = nil, isKnown: Bool = false, expires: Timestamp, isAwaited: Bool = true,
        isInherited: Bool = false, now: Timestamp
    ) {
        add(
            id, device: DeviceID(ProtocolNumber(rawValue: 1), row: device), recipient: token.map(Self.recipient), isKnown: isKnown,
            expires: expires, isAwaited: isAwaited, isInherited: isInherited, now: now)
    }

    static func recipient(_ token: Int64) -> PushRecipient {
        PushRecipient(DeviceAddress(version: 1, platform: .apn, deviceToken: DeviceToken("token \(token)"), apnTopic: "app"))
    }
}
