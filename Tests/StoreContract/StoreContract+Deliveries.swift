import Core
import Delivery
import Storage
import TestSupport
import Testing
import Waku

extension StoreContract {
    private static let device = DeviceID(ProtocolNumber(rawValue: 7), row: 1)

    /// Whether the delivery was new.
    private static func enqueue(_ delivery: DeliveryID, in store: any Store) -> StoreCommand<Bool> {
        let address = DeviceAddress(version: 1, platform: .firebase, deviceToken: DeviceToken("token"), apnTopic: "")
        return DeliveryStorage.enqueueOnce(
            delivery, for: device, at: address, TextContent("text"), payload: [1], expires: Timestamp(rawValue: 1000), markedAt: nil,
            times: nil, by: store.sealer
        ).map { $0 != nil }
    }

    static var deliveries: [StoreContract] {
        [
            StoreContract("A delivery that waits, or was accepted, is not enqueued again") { fixture in
                let store = try fixture.open([DeliveryStorage.part])
                let delivery = DeliveryID(hashing: [1])
                let first = try await store.commit(enqueue(delivery, in: store))
                let whileWaiting = try await store.commit(enqueue(delivery, in: store))
                #expect(first && !whileWaiting)
                #expect(try store.read(DeliveryStorage.waitingCount()) == 1)
                let posted = PostedNotification(delivery: delivery, device: device, version: 1)
                try await store.commit(.change(DeliveryStorage.accept(posted, postedAs: nil, at: .now())))
                let afterwards = try await store.commit(enqueue(delivery, in: store))
                #expect(!afterwards)
                #expect(try store.read(DeliveryStorage.waitingCount()) == 0)
            },
            StoreContract("Of equal deliveries submitted at once, one is enqueued; a dropped one can be enqueued again") { fixture in
                let store = try fixture.open([DeliveryStorage.part])
                let deliveries = [[1], [2], [1], [2], [1]].map { DeliveryID(hashing: $0) }
                let results = try await store.commitEach(deliveries.map { enqueue($0, in: store) }).map { try $0.get() }
                #expect(results == [true, true, false, false, false])
                let waiting = try store.read(DeliveryStorage.waitingDeliveries())
                #expect(waiting.map(\.delivery) == Array(deliveries.prefix(2)))
                try await store.commit(DeliveryStorage.drop(waiting.map(\.id), of: DeliverySources([]), at: .now()))
                let again = try await store.commit(enqueue(deliveries[0], in: store))
                #expect(again)
            },
        ]
    }
}
