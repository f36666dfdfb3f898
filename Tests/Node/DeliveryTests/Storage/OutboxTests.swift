import Core
import Storage
import Testing
import WakuCrypto

@testable import Delivery

@Suite("The outbox")
struct OutboxTests {
    let fixture: DeliveryStoreFixture
    let device = DeliveryStoreFixture.device
    let delivery = DeliveryStoreFixture.delivery(1)
    var store: any Store { fixture.store }

    init() throws {
        fixture = try DeliveryStoreFixture()
    }

    @Test("A notification and its content persist when the store is reopened")
    func waits() async throws {
        let waiting = try await store.enqueue(delivery, payload: [9, 8, 7])
        try store.close()
        let store = try fixture.reopened()
        #expect(try store.read(DeliveryStorage.waitingDeliveries()) == [waiting])
        #expect(try store.read(DeliveryStorage.waiting(delivery)) == waiting)
        #expect(try store.state(of: delivery) == .waiting)
        let stored = try #require(try store.read(DeliveryStorage.stored([waiting.id]))[waiting.id])
        #expect(stored.waiting == waiting)
        #expect(try store.sealer.open(stored.sealed, in: DeliveryStorage.outbox, boundTo: [.bytes(delivery.bytes)]) == [9, 8, 7])
        #expect(throws: CryptoError.self) {
            try store.sealer.open(stored.sealed, in: DeliveryStorage.outbox, boundTo: [.bytes(DeliveryStoreFixture.delivery(2).bytes)])
        }
    }

    @Test("Several notifications are loaded at once; missing ones are left out")
    func loaded() async throws {
        let others = [DeviceID(ProtocolNumber(rawValue: 1), row: 4), DeviceID(ProtocolNumber(rawValue: 2), row: 3)]
        var waiting: [WaitingDelivery] = []
        for number in UInt8(1)...6 {
            let device = ([device] + others)[Int(number) % 3]
            waiting.append(try await store.enqueue(DeliveryStoreFixture.delivery(number), for: device, payload: [number]))
        }
        try await store.commit(DeliveryStorage.drop([waiting[0].id], of: DeliverySources([]), at: .now()))
        let found = Array(try store.read(DeliveryStorage.stored(waiting.map(\.id) + [4711])).values)
        #expect(Set(found.map(\.waiting)) == Set(waiting.dropFirst()))
        for stored in found {
            let number = try #require(waiting.firstIndex(of: stored.waiting)) + 1
            let binding = Value.bytes(stored.waiting.delivery.bytes)
            #expect(try store.sealer.open(stored.sealed, in: DeliveryStorage.outbox, boundTo: [binding]) == [UInt8(number)])
        }
        #expect(try store.read(DeliveryStorage.waitingDeliveries()) == Array(waiting.dropFirst()))
        #expect(try store.read(DeliveryStorage.waitingDeliveries(limit: 2)) == Array(waiting[1...2]))
        #expect(try store.read(DeliveryStorage.waitingCount()) == 5)
    }

    @Test("Several notifications of one command get the ids of their rows")
    func severalAtOnce() async throws {
        let deliveries = (0..<5).map { DeliveryStoreFixture.delivery($0) }
        let (sealer, device) = (store.sealer, device)
        let ids = try await store.commit(
            StoreCommand<[Int64]>.each(
                deliveries.map { delivery in
                    .apply([DeliveryStorage.enqueue(delivery, for: device, payload: [], expires: .now(), by: sealer)]) { $0[0] }
                }))
        #expect(try store.read(DeliveryStorage.waitingDeliveries()).map(\.delivery) == deliveries)
        #expect(try store.read(DeliveryStorage.waitingDeliveries()).map(\.id) == ids)
    }

    @Test("A delivery can't be in the outbox twice")
    func onlyOnce() async throws {
        _ = try await store.enqueue(delivery)
        await #expect(throws: StoreError.self) { try await store.enqueue(delivery) }
        #expect(try store.read(DeliveryStorage.waitingCount()) == 1)
    }

    @Test("An accepted notification leaves the outbox, also if the device registered again during the post")
    func acceptedLate() async throws {
        let first = try await store.enqueue(delivery)
        try await store.commit(.change(DeliveryStorage.forget(device)))
        let second = try await store.enqueue(delivery)
        #expect(second.id > first.id)
        try await store.accept(delivery)
        #expect(try store.read(DeliveryStorage.waitingDeliveries()).isEmpty)
    }

    @Test("An accepted notification leaves the outbox and is remembered")
    func accepted() async throws {
        #expect(try store.state(of: delivery) == nil)
        _ = try await store.enqueue(delivery)
        #expect(try store.state(of: delivery) == .waiting)
        try await store.accept(delivery)
        #expect(try store.state(of: delivery) == .accepted)
        #expect(try store.read(DeliveryStorage.waiting(delivery)) == nil)
        #expect(try store.read(DeliveryStorage.waitingCount()) == 0)
        // gorush may accept it again: the first record is kept.
        try await store.accept(delivery, version: 9, at: Timestamp(rawValue: 6))
        #expect(try store.read(DeliveryStorage.posted(under: delivery.bytes)).map(\.version) == [4])
        let states = try store.read(DeliveryStorage.states(of: [DeliveryStoreFixture.delivery(7), delivery]))
        #expect(states == [nil, .accepted])
    }

    @Test("A dropped notification leaves no trace and can be requested again")
    func dropped() async throws {
        let waiting = try await store.enqueue(delivery)
        try await store.commit(DeliveryStorage.drop([waiting.id], of: DeliverySources([]), at: .now()))
        #expect(try store.state(of: delivery) == nil)
        let again = try await store.enqueue(delivery)
        #expect(again.id > waiting.id)
    }

    @Test("A damaged notification can be dropped, with and without its device")
    func damaged() async throws {
        let sources = DeliverySources([])
        let damage = Mutation(DeliveryStorage.outbox, .updateAny([DeliveryStorage.delivery], where: [.equal(.id)]))
        for isForgotten in [false, true] {
            let waiting = try await store.enqueue(delivery)
            try await store.commit(.change([damage(.integer(5), .integer(waiting.id))]))
            if isForgotten {
                let note = DeliveryStorage.forget(device)[0]
                try await store.commit(DeliveryStorage.forget([device]) { _ in note }.then { .change($0) })
            } else {
                try await store.commit(DeliveryStorage.drop([waiting.id], of: sources, at: .now()))
            }
            #expect(try store.read(DeliveryStorage.waitingCount()) == 0)
        }
    }

    @Test("Waiting notifications of a removed device are deleted; others remain, including those of another protocol with the same row id")
    func forgotten() async throws {
        let waiting = try await store.enqueue(delivery)
        let other = try await store.enqueue(DeliveryStoreFixture.delivery(2), for: DeviceID(ProtocolNumber(rawValue: 1), row: 4))
        let foreign = try await store.enqueue(
            DeliveryStoreFixture.delivery(3), for: DeviceID(ProtocolNumber(rawValue: 2), row: device.row))
        try await store.commit(.change(DeliveryStorage.forget(device)))
        #expect(try store.read(DeliveryStorage.stored([waiting.id])).isEmpty)
        #expect(try store.read(DeliveryStorage.waitingDeliveries()) == [other, foreign])
    }

    @Test("The first expiry")
    func firstExpiry() async throws {
        #expect(try store.read(DeliveryStorage.firstExpiry()) == nil)
        for (number, time) in [30, 10, 20].enumerated() {
            _ = try await store.enqueue(DeliveryStoreFixture.delivery(UInt8(number)), expires: Timestamp(rawValue: Int64(time)))
        }
        #expect(try store.read(DeliveryStorage.firstExpiry()) == Timestamp(rawValue: 10))
    }

    @Test("Deliveries are pruned by age and by count, oldest first")
    func pruned() async throws {
        let deliveries = (0..<10).map { DeliveryStoreFixture.delivery($0) }
        for (index, delivery) in deliveries.enumerated() { try await store.accept(delivery, at: Timestamp(rawValue: Int64(index))) }
        func known() throws -> [Int] {
            try store.read(DeliveryStorage.states(of: deliveries)).enumerated().filter { $1 == .accepted }.map(\.offset)
        }
        try await DeliveryStorage.prune(store, before: Timestamp(rawValue: 3), at: Timestamp(rawValue: 100), keeping: 100)
        #expect(try known() == Array(3..<10))
        try await DeliveryStorage.prune(
            store, before: Timestamp(rawValue: 0), at: Timestamp(rawValue: 100), keeping: 2, since: Timestamp(rawValue: 5))
        #expect(try known() == Array(5..<10))
        try await DeliveryStorage.prune(store, before: Timestamp(rawValue: 0), at: Timestamp(rawValue: 100), keeping: 2)
        #expect(try known() == [8, 9])
        try await DeliveryStorage.prune(store, before: Timestamp(rawValue: 100), at: Timestamp(rawValue: 100), keeping: 100)
        #expect(try known() == [])
    }

    @Test("The devices that were notified last are those of one protocol, each once, the latest first")
    func recentDevices() async throws {
        let (first, second) = (ProtocolNumber(rawValue: 1), ProtocolNumber(rawValue: 2))
        let accepted = [(first, 7), (first, 8), (second, 9), (first, 7)] as [(ProtocolNumber, Int64)]
        for (number, (spoken, row)) in zip(UInt8(1)..., accepted) {
            try await store.accept(DeliveryStoreFixture.delivery(number), for: DeviceID(spoken, row: row))
        }
        #expect(try store.read(DeliveryStorage.recentDevices(of: first, limit: 10)) == [7, 8])
        #expect(try store.read(DeliveryStorage.recentDevices(of: second, limit: 10)) == [9])
        #expect(try store.read(DeliveryStorage.recentDevices(of: first, limit: 2)) == [7])
    }
}
