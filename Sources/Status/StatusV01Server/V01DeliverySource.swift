package import Delivery
package import Core
import StatusProtocol
package import Storage

/// The delivery source of version 0.1: devices have their own table, payloads consist of chat and message.
package struct V01DeliverySource: DeliverySource {
    private let records: Records
    private let apnsTopic: String

    /// - Parameter apnsTopic: the APNs topic of notifications, because a Register contains none; empty for none.
    package init(_ sealer: Sealer, apnsTopic: String) {
        records = Records(sealer)
        self.apnsTopic = apnsTopic
    }

    package var number: ProtocolNumber { V01Storage.protocolNumber }
    package var devices: Query { Self.findDevices }

    private static let findDevices = Query(
        V01Storage.device,
        [.id, V01Storage.version, V01Storage.keyHash, V01Storage.installation, V01Storage.platform, V01Storage.sealedToken],
        where: [.idAmong])

    package var devicesOfRegistrant: Query? { Self.findOfRegistrant }

    private static let findOfRegistrant = Query(V01Storage.device, [.id], where: [.equal(V01Storage.keyHash)])

    package func address(of device: Row) throws -> DeviceAddress {
        let version = try device.unsigned(1)
        let (keyHash, installation) = try Self.identity(of: device)
        guard let platform = Platform(rawValue: Int32(truncatingIfNeeded: try device.integer(4))) else { throw UnexpectedValue() }
        let token = try records.sealer.open(
            try device.bytes(5), in: V01Storage.device,
            boundTo: Records.deviceBinding(keyHash, version: version, installation: installation))
        return DeviceAddress(
            version: version, platform: platform, deviceToken: DeviceToken(bytes: token), apnTopic: platform == .apn ? apnsTopic : "")
    }

    package func owner(of device: Row) throws -> DeviceOwner? {
        let (keyHash, installation) = try Self.identity(of: device)
        return DeviceOwner(keyHash: keyHash.bytes, installation: installation.string)
    }

    package func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent {
        try V01Payload.decode(payload, for: try Self.identity(of: device).installation)
    }

    package func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        records.endDevice(row, version: version, at: now)
    }

    static func identity(of device: Row) throws -> (keyHash: V01.KeyHash, installation: InstallationID) {
        guard let keyHash = V01.KeyHash(stored: try device.bytes(2)) else { throw UnexpectedValue() }
        return (keyHash, InstallationID(bytes: try device.bytes(3)))
    }
}
