package import Delivery
package import Core
import SessionProtocol
package import Storage

/// The delivery source of Session: a device is a subscription, and its version the subscription's `sig_ts`.
package struct SessionDeliverySource: DeliverySource {
    private let subscriptions: Subscriptions
    private let apnsTopic: String
    private let delivered = DeliveredRows()

    /// - Parameter apnsTopic: `--session-apns-topic`; empty for none.
    package init(_ sealer: Sealer, apnsTopic: String) {
        subscriptions = Subscriptions(sealer)
        self.apnsTopic = apnsTopic
    }

    package var number: ProtocolNumber { SessionStorage.protocolNumber }
    package var devices: Query { Self.findDevices }
    /// A storage server reports any `z`.
    package var othersChooseExpiry: Bool { true }

    private static let findDevices = Query(
        SessionStorage.subscription,
        [
            .id, SessionStorage.signedAt, SessionStorage.name, SessionStorage.account, SessionStorage.service, SessionStorage.sealed,
        ], where: [.idAmong])

    package func address(of device: Row) throws -> DeviceAddress {
        let signedAt = try device.integer(1)
        return try address(
            of: try subscriptions.open(try device.bytes(5), named: try device.bytes(2), signedAt: signedAt),
            try PushService(stored: try device.integer(4)))
    }

    /// Throws for a Web Push device without a valid subscription, which is refused on arrival.
    func address(of record: SubscriptionRecord, _ service: PushService) throws(UnexpectedValue) -> DeviceAddress {
        let version = UInt64(bitPattern: record.authority.signedAt)
        let endsAt = Timestamp(rawValue: 0) + .seconds(StoredSubscription(signedAt: record.authority.signedAt).expiresAt)
        switch service.platform {
        case .apn, .firebase, .huawei:
            return DeviceAddress(
                version: version, platform: service.platform, deviceToken: DeviceToken(record.token.value),
                apnTopic: service.isApple ? apnsTopic : "", service: service, endsAt: endsAt)
        case .webPush:
            guard let subscription = PushSubscription(json: Array(record.token.value.utf8)) else { throw UnexpectedValue() }
            return DeviceAddress(version: version, .webPush(subscription), endsAt: endsAt)
        }
    }

    package func owner(of device: Row) throws -> DeviceOwner? {
        DeviceOwner(keyHash: try device.bytes(3), installation: try PushService(stored: try device.integer(4)).rawValue)
    }

    package func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent {
        content(try SessionPayload(parsing: payload), try PushService(stored: try device.integer(4)))
    }

    func content(_ payload: SessionPayload, _ service: PushService) -> SessionContent {
        SessionContent(payload, service: service, apnsTopic: apnsTopic)
    }

    /// Ends the subscriptions of a dead token, under every pubkey.
    package func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        Subscriptions.endToken(ofRow: row, version: version, at: now)
    }

    /// Notes the first delivery of a subscription, which strengthens its claim to a place: see `DevicePlaces`.
    package func noteAccepted(_ row: Int64, at now: Timestamp) -> Change? {
        delivered.isNew(row) ? Subscriptions.noteDelivered(row, at: now) : nil
    }

    /// Remembers the delivery, because another storage server may report the same message again.
    package func noteGivenUp(_ delivery: DeliveryID, at now: Timestamp) -> Change? { Subscriptions.noteSeen(delivery, at: now) }
}
