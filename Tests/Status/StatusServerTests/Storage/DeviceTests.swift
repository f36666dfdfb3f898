import Delivery
import Core
import StatusProtocol
import Storage
import StoreSQLite
import Testing
import WakuCrypto

@testable import StatusServer

@Suite("Devices of the outbox and their registrations")
struct DeviceTests {
    let fixture: StatusStoreFixture
    let key = StatusStoreFixture.key()
    let delivery = DeliveryID(hashing: [1])
    var store: SQLiteStore { fixture.store }

    init() async throws {
        fixture = try StatusStoreFixture()
        try await fixture.store.register(key, version: 4, token: "old")
    }

    /// The current registration of a pending notification's device.
    private func registration(of device: DeviceID) throws -> PushNotificationRegistration? {
        guard let key = try store.read(Registrations.keys(ofDevices: [device.row]))[device.row] else { return nil }
        return try store.state(of: key)?.registration
    }

    private func enqueue() async throws -> DeviceID {
        let head = try #require(try store.read(Registrations.head(of: key)))
        let device = Registrations.device(head.id)
        let change = DeliveryStorage.enqueue(delivery, for: device, payload: [1], expires: Timestamp(rawValue: 1_000), by: store.sealer)
        try await store.commit(.change([change]))
        return device
    }

    @Test("A token of an unknown type, as a later release may store one, is no APNs token")
    func unknownTokenType() throws {
        var registration = StatusStoreFixture.registration(key)
        #expect(DeviceAddress(registration)?.gorushDevice?.platform == .apn)
        registration.tokenType = 4
        #expect(DeviceAddress(registration) == nil)
    }

    @Test("A device keeps its row when it registers again: pending notifications reach the new token")
    func updated() async throws {
        let device = try await enqueue()
        #expect(try registration(of: device)?.deviceToken == DeviceToken("old"))
        try await store.register(key, version: 5, token: "new")
        #expect(try store.read(DeliveryStorage.waiting(delivery))?.device == device)
        let registration = try #require(try registration(of: device))
        #expect(registration.deviceToken == DeviceToken("new"))
        #expect(registration.version == 5)
        #expect(try store.read(Registrations.keys(ofDevices: [device.row, 4711])) == [device.row: key])
    }

    @Test("A device that registers again without being enabled loses its pending notifications")
    func disabled() async throws {
        let device = try await enqueue()
        var registration = StatusStoreFixture.registration(key, version: 5)
        registration.enabled = false
        let command = fixture.registrations.store(
            registration, bytes: registration.encoded(), as: key, at: Timestamp(rawValue: 2))
        try await store.commit(command)
        #expect(try store.read(DeliveryStorage.waitingDeliveries()).isEmpty)
        #expect(try self.registration(of: device)?.version == 5)
    }

    @Test("An unregistered device loses its pending notifications and its token, but keeps its row")
    func unregistered() async throws {
        let device = try await enqueue()
        try await store.unregister(key, version: 5)
        #expect(try store.read(DeliveryStorage.waitingDeliveries()).isEmpty)
        #expect(try registration(of: device) == nil)
        #expect(try store.read(Registrations.keys(ofDevices: [device.row])) == [device.row: key])
        try await store.register(key, version: 6)
        #expect(try store.read(Registrations.head(of: key))?.id == device.row)
    }

    @Test("Expiry removes a registration and its pending notifications, unless it was renewed")
    func expired() async throws {
        let device = try await enqueue()
        let cutoff = Timestamp(rawValue: 100)
        try await store.register(key, version: 5, at: Timestamp(rawValue: 200))
        #expect(try await store.commit(Registrations.expire(key, unchangedSince: cutoff, at: Timestamp(rawValue: 300))) == false)
        #expect(try store.read(DeliveryStorage.waitingCount()) == 1)
        #expect(try await store.commit(Registrations.expire(key, unchangedSince: Timestamp(rawValue: 250), at: Timestamp(rawValue: 300))))
        #expect(try store.state(of: key) == .tombstone(version: 5))
        #expect(try store.read(DeliveryStorage.waitingCount()) == 0)
        #expect(try registration(of: device) == nil)
    }
}
