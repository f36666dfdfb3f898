import Core
import Storage
import Testing
import WakuCrypto

@testable import Delivery

@Suite("Traces of deliveries")
struct DeliveryTraceTests {
    let fixture: DeliveryStoreFixture
    let device = DeliveryStoreFixture.device
    let delivery = DeliveryStoreFixture.delivery(1)
    var store: any Store { fixture.store }

    init() throws {
        fixture = try DeliveryStoreFixture()
    }

    private func traces(of delivery: DeliveryID) throws -> [DeliveryTrace] {
        try store.read(DeliveryStorage.traces(of: try #require(DeliveryID.prefix(of: delivery.notificationID, nil))))
    }

    private func trace(_ delivery: DeliveryID, _ state: DeliveryTrace.State) -> DeliveryTrace {
        DeliveryTrace(delivery: delivery, device: device, state: state)
    }

    @Test("A waiting delivery, before and after the mark of its first post")
    func waiting() async throws {
        let waiting = try await store.enqueue(delivery)
        _ = try await store.enqueue(DeliveryStoreFixture.delivery(2))
        #expect(try traces(of: delivery) == [trace(delivery, .waiting(id: waiting.id, expires: waiting.expires, markedAt: nil))])
        let now = Timestamp(rawValue: 7)
        try await store.commit(DeliveryStorage.mark([waiting.id], at: now))
        #expect(try traces(of: delivery) == [trace(delivery, .waiting(id: waiting.id, expires: waiting.expires, markedAt: now))])
    }

    @Test("An accepted delivery, before and after a reported failure")
    func accepted() async throws {
        _ = try await store.enqueue(delivery)
        try await store.accept(delivery, version: .max, at: Timestamp(rawValue: 9))
        #expect(try traces(of: delivery) == [trace(delivery, .accepted(at: Timestamp(rawValue: 9), version: .max, hasFailed: false))])
        #expect(try await store.commit(DeliveryStorage.noteFailure(of: delivery)))
        #expect(try traces(of: delivery) == [trace(delivery, .accepted(at: Timestamp(rawValue: 9), version: .max, hasFailed: true))])
    }

    @Test("Deliveries posted together are found by the id that they were posted under")
    func together() async throws {
        let other = DeliveryStoreFixture.delivery(2)
        try await store.accept(delivery)
        try await store.accept(other, postedAs: delivery)
        #expect(Set(try traces(of: delivery).map(\.delivery)) == [delivery, other])
        #expect(try traces(of: other).map(\.delivery) == [other])
    }

    @Test("Nothing is found of a dropped or unknown delivery")
    func unknown() async throws {
        let waiting = try await store.enqueue(delivery)
        try await store.commit(DeliveryStorage.drop([waiting.id], of: DeliverySources([]), at: .now()))
        #expect(try traces(of: delivery).isEmpty)
        #expect(try traces(of: DeliveryStoreFixture.delivery(3)).isEmpty)
    }

    @Test("An id of the profile private is read with the node's key")
    func privateIDs() throws {
        let cipher = NotificationIDCipher(identity: .generate())
        let prefix = DeliveryID.prefix(of: delivery.notificationID, nil)
        #expect(prefix == Array(delivery.bytes.prefix(16)))
        #expect(DeliveryID.prefix(of: cipher.postedID(of: delivery.notificationID), cipher) == prefix)
        #expect(DeliveryID.prefix(of: cipher.postedID(of: delivery.notificationID), nil) == nil)
        #expect(DeliveryID.prefix(of: "test", cipher) == nil)
    }
}
