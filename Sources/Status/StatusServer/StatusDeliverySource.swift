package import Delivery
package import Core
package import StatusProtocol
package import Storage

/// The delivery source of the Status protocol: devices are rows of registrations, payloads are notifications of requests.
package struct StatusDeliverySource: DeliverySource {
    private let registrations: Registrations

    package init(_ sealer: Sealer) {
        registrations = Registrations(sealer)
    }

    package var number: ProtocolNumber { StatusStorage.protocolNumber }

    package var devices: Query { Self.findDevices }

    private static let findDevices = Query(
        StatusStorage.registration,
        [.id, StatusStorage.version, StatusStorage.keyHash, StatusStorage.installation, StatusStorage.sealed],
        where: [.idAmong, .present(StatusStorage.sealed)])

    package var devicesOfRegistrant: Query? { Self.findOfRegistrant }

    private static let findOfRegistrant = Query(
        StatusStorage.registration, [.id], where: [.equal(StatusStorage.keyHash), .present(StatusStorage.sealed)])

    package func address(of device: Row) throws -> DeviceAddress {
        let version = try device.unsigned(1)
        let key = try RegistrationKey(device, at: 2)
        guard let registration = try registrations.open(try device.bytes(4), of: key, version: version),
            let address = DeviceAddress(registration)
        else { throw UnexpectedValue() }
        return address
    }

    package func owner(of device: Row) throws -> DeviceOwner? {
        let key = try RegistrationKey(device, at: 2)
        return DeviceOwner(keyHash: key.keyHash.bytes, installation: key.installationID.string)
    }

    package func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent {
        StatusContent(try StatusPayload.decode(payload), for: try RegistrationKey(device, at: 2))
    }

    private static let findKey = Query(
        StatusStorage.registration, [StatusStorage.keyHash, StatusStorage.installation, StatusStorage.version],
        where: [.idAmong, .present(StatusStorage.sealed)])

    package func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        .find(Self.findKey(ids: [row])) { rows in
            guard let row = rows.first, try row.unsigned(2) == version else { return .change([]) }
            return Registrations.end(try RegistrationKey(row, at: 0), version: version, at: now).map { _ in }
        }
    }
}

/// The encoding of a notification in the outbox: a PushNotificationRequest with this entry only, without the fields that were checked or are
/// stored in other columns.
enum StatusPayload {
    static func encode(_ notification: PushNotification) -> [UInt8] {
        var rest = notification
        rest.accessToken = AccessToken("")
        rest.publicKey = []
        rest.installationID = InstallationID("")
        return PushNotificationRequest(requests: [rest], messageID: []).encoded()
    }

    /// - Throws: if the bytes were not made by ``encode(_:)``.
    static func decode(_ bytes: [UInt8]) throws -> PushNotification {
        guard let notification = try PushNotificationRequest(parsing: bytes).requests.first else { throw UnexpectedValue() }
        return notification
    }
}

extension DeviceAddress {
    /// nil for a Web Push registration without a valid subscription and for an unknown token type, which are refused on arrival. A later release
    /// may have stored such a token: gorush must not get it as one of another platform.
    package init?(_ registration: PushNotificationRegistration) {
        guard let platform = registration.platform else { return nil }
        switch platform {
        case .webPush:
            guard let subscription = registration.subscription else { return nil }
            self.init(version: registration.version, .webPush(subscription))
        case .apn, .firebase, .huawei:
            self.init(
                version: registration.version, platform: platform, deviceToken: registration.deviceToken, apnTopic: registration.apnTopic)
        }
    }
}
