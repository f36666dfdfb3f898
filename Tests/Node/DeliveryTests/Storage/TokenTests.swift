import Core
import Storage
import Testing
import WakuCrypto

@testable import Delivery

@Suite("Posted deliveries, and tokens in doubt")
struct TokenTests {
    let fixture: DeliveryStoreFixture
    let device = DeliveryStoreFixture.device
    var store: any Store { fixture.store }

    init() throws {
        fixture = try DeliveryStoreFixture()
    }

    private func accept(_ number: UInt8, postedAs shared: DeliveryID? = nil) async throws -> DeliveryID {
        let delivery = DeliveryStoreFixture.delivery(number)
        _ = try await store.enqueue(delivery)
        try await store.accept(delivery, version: .max - 4, postedAs: shared, at: Timestamp(rawValue: Int64(number)))
        return delivery
    }

    @Test("A posted delivery is found by its id, also after the store was reopened")
    func posted() async throws {
        let first = try await accept(1)
        _ = try await accept(2)
        try store.close()
        let store = try fixture.reopened()
        let expected = PostedNotification(delivery: first, device: device, version: .max - 4)
        for count in [4, 16, 32] { #expect(try store.read(DeliveryStorage.posted(under: Array(first.bytes.prefix(count)))) == [expected]) }
        #expect(try store.read(DeliveryStorage.posted(under: first.bytes + [1, 2, 3])) == [expected])
        #expect(try store.read(DeliveryStorage.posted(under: randomBytes(16))).isEmpty)
    }

    @Test("Combined deliveries are found by their shared id, and not by their own")
    func together() async throws {
        let first = try await accept(1)
        let second = try await accept(2, postedAs: first)
        let found = try store.read(DeliveryStorage.posted(under: Array(first.bytes.prefix(16))))
        #expect(Set(found.map(\.delivery)) == [first, second])
        #expect(try store.read(DeliveryStorage.posted(under: Array(second.bytes.prefix(16)))).isEmpty)
    }

    @Test("Rows of the first version have no device")
    func withoutADevice() async throws {
        let delivery = DeliveryStoreFixture.delivery(1)
        let insert = Mutation(DeliveryStorage.accepted, .insert([DeliveryStorage.delivery, DeliveryStorage.at]))
        try await store.commit(.change([insert(.bytes(delivery.bytes), .integer(1))]))
        #expect(try store.state(of: delivery) == .accepted)
        #expect(try store.read(DeliveryStorage.posted(under: Array(delivery.bytes.prefix(16)))).isEmpty)
    }

    @Test("A failure counts once per delivery")
    func failures() async throws {
        let (first, second) = (try await accept(1), try await accept(2))
        #expect(try await store.commit(DeliveryStorage.noteFailure(of: first)))
        #expect(try await store.commit(DeliveryStorage.noteFailure(of: first)) == false)
        #expect(try await store.commit(DeliveryStorage.noteFailure(of: DeliveryStoreFixture.delivery(9))) == false)
        let known = try store.read(DeliveryStorage.haveFailures([first, second, DeliveryStoreFixture.delivery(9)]))
        #expect(known == [true, false, false])
    }

    @Test("Posted deliveries are remembered when the device is removed, so failures can still be matched")
    func forgotten() async throws {
        let delivery = try await accept(1)
        try await store.commit(.change(DeliveryStorage.forget(device)))
        #expect(try store.read(DeliveryStorage.posted(under: Array(delivery.bytes.prefix(16)))).count == 1)
    }

    @Test("A doubt persists until it is removed, automatically after a long time")
    func doubts() async throws {
        #expect(try store.read(DeliveryStorage.hasDoubts()) == false)
        let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
        for unfailedSince in [nil, start] {
            let doubt = TokenDoubt(
                version: .max, failureCount: 3, firstFailure: start, lastFailure: start + .seconds(5), unfailedSince: unfailedSince)
            try await store.commit(.change([DeliveryStorage.setDoubt(doubt, of: device)]))
            #expect(try store.read(DeliveryStorage.doubt(of: device)) == doubt)
        }
        #expect(try store.read(DeliveryStorage.hasDoubts()))
        #expect(try store.read(DeliveryStorage.doubtedDevices(of: device.protocol)) == [device.row])
        for other in [DeviceID(device.protocol, row: 8), DeviceID(ProtocolNumber(rawValue: 2), row: device.row)] {
            #expect(try store.read(DeliveryStorage.doubt(of: other)) == nil)
            try await store.commit(.change([DeliveryStorage.setDoubt(nil, of: other)]))
        }
        #expect(try store.read(DeliveryStorage.doubtedDevices(of: ProtocolNumber(rawValue: 2))).isEmpty)
        try await DeliveryStorage.prune(store, before: start + .seconds(89 * 86_400), at: start, keeping: 100)
        #expect(try store.read(DeliveryStorage.hasDoubts()))
        try await DeliveryStorage.prune(store, before: start + .seconds(91 * 86_400), at: start, keeping: 100)
        #expect(try store.read(DeliveryStorage.hasDoubts()) == false)
        try await store.commit(.change([DeliveryStorage.setDoubt(nil, of: device)]))
    }

    @Test("A doubt ends with a success, or with a newer registration")
    func acceptance() async throws {
        let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
        let later = start + TokenDoubt.grace + .seconds(1)
        try await store.commit(.change([DeliveryStorage.setDoubt(TokenDoubt(version: 4, at: start), of: device)]))
        try await store.commit(DeliveryStorage.noteAcceptance(by: device, version: 4, at: start))
        #expect(try store.read(DeliveryStorage.doubt(of: device))?.unfailedSince == start)
        try await store.commit(DeliveryStorage.noteAcceptance(by: device, version: 4, at: later))
        #expect(try store.read(DeliveryStorage.doubt(of: device)) == nil)
        try await store.commit(.change([DeliveryStorage.setDoubt(TokenDoubt(version: 4, at: start), of: device)]))
        try await store.commit(DeliveryStorage.noteAcceptance(by: device, version: 5, at: start))
        #expect(try store.read(DeliveryStorage.doubt(of: device)) == nil)
        try await store.commit(DeliveryStorage.noteAcceptance(by: device, version: 5, at: start))
        #expect(try store.read(DeliveryStorage.hasDoubts()) == false)
    }
}
