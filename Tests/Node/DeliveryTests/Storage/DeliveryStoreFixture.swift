import Core
import Storage
import StoreSQLite
import TestSupport
import WakuCrypto

@testable import Delivery

/// A store with the delivery tables in a temporary folder.
struct DeliveryStoreFixture {
    let folder: TemporaryFolder
    let storageKey = SymmetricKey.random()
    let store: any Store
    static let device = DeviceID(ProtocolNumber(rawValue: 1), row: 3)

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: [DeliveryStorage.part])
    }

    func reopened() throws -> any Store {
        try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: [DeliveryStorage.part])
    }

    static func delivery(_ number: UInt8) -> DeliveryID { DeliveryID(hashing: [number]) }
}

extension Store {
    func enqueue(
        _ delivery: DeliveryID, for device: DeviceID = DeliveryStoreFixture.device, payload: [UInt8] = [1, 2],
        expires: Timestamp = Timestamp(rawValue: 1_000)
    ) async throws -> WaitingDelivery {
        let insert = DeliveryStorage.enqueue(delivery, for: device, payload: payload, expires: expires, by: sealer)
        return try await commit(.apply([insert]) { WaitingDelivery(id: $0[0], delivery: delivery, device: device, expires: expires) })
    }

    func accept(
        _ delivery: DeliveryID, for device: DeviceID = DeliveryStoreFixture.device, version: UInt64 = 4, postedAs shared: DeliveryID? = nil,
        at now: Timestamp = Timestamp(rawValue: 5)
    ) async throws {
        let posted = PostedNotification(delivery: delivery, device: device, version: version)
        try await commit(.change(DeliveryStorage.accept(posted, postedAs: shared, at: now)))
    }

    func state(of delivery: DeliveryID) throws -> DeliveryState? {
        try read(DeliveryStorage.states(of: [delivery]))[0]
    }
}

/// Devices with their tokens in plain text.
struct StoredDevices: DeliverySource {
    static let version = Column("version", .integer)
    static let token = Column("token", .bytes)
    static let table = Table("test_device", columns: [version, token])
    static let insert = Mutation(table, .insert([version, token]))

    let number = DeliveryStoreFixture.device.protocol
    let devices = Query(table, [.id, version, token], where: [.idAmong])
    var othersChooseExpiry = false

    func address(of device: Row) throws -> DeviceAddress {
        let token = DeviceToken(bytes: try device.bytes(2))
        return DeviceAddress(version: try device.unsigned(1), platform: .apn, deviceToken: token, apnTopic: "")
    }

    func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent { TextContent("") }

    func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> { .change([]) }
}
