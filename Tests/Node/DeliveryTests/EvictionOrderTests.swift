import Core
import Testing
import Waku

@testable import Delivery

struct EvictionOrderTests {
    private let device = DeviceID(ProtocolNumber(rawValue: 1), row: 1)
    private let other = DeviceID(ProtocolNumber(rawValue: 1), row: 2)
    private let expires = Timestamp(rawValue: 1_000)
    private var order = EvictionOrder()

    private mutating func add(_ id: Int64, _ device: DeviceID, token: Int64, isKnown: Bool) {
        let recipient = DeliveryQueue.recipient(token)
        order.joined(device, of: recipient, isKnown: isKnown)
        order.insert(id, of: recipient, expires: expires)
    }

    @Test mutating func recipientThatBecomesKnownIsTheLongestOfTheKnown() {
        add(1, other, token: 2, isKnown: true)
        for id in Int64(2)...3 { add(id, device, token: 1, isKnown: false) }
        let hasDeliveries = order.becameKnown(DeliveryQueue.recipient(1))
        #expect(hasDeliveries)
        for id in Int64(2)...3 { order.moveToKnown(id, expires: expires) }
        #expect(order.candidates(limit: 4).devices == [device])
    }
}
