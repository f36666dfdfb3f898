package import Core
package import Storage
import Waku

/// What a protocol's devices and payloads mean: all that delivery knows of a protocol.
package protocol DeliverySource: Sendable {
    var number: ProtocolNumber { get }

    /// Rows of devices that are registered at present, with the conditions ``Storage/Condition/idAmong`` and what tells them from ended ones.
    /// The first output is the id, the second the version of the registration.
    var devices: Query { get }

    /// Where a device is reached. Throws when the row can't be opened.
    func address(of device: Row) throws -> DeviceAddress

    /// Whose a device is; nil when the protocol does not tell. The row need not be opened.
    func owner(of device: Row) throws -> DeviceOwner?

    /// What a payload from the outbox tells a device. Throws when it can't be read.
    func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent

    /// Ends a device's registration because its token does not work: as if its owner had, so that a later registration works. Does nothing
    /// when its version is another one by now. ``DeliveryStorage/forget(_:)`` is part of it.
    func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void>

    /// Remembers a delivery that was given up: expired, evicted, or refused by gorush. nil when the same may be asked for again.
    func noteGivenUp(_ delivery: DeliveryID, at now: Timestamp) -> Change?
}

extension DeliverySource {
    package func noteGivenUp(_ delivery: DeliveryID, at now: Timestamp) -> Change? { nil }
    package func owner(of device: Row) throws -> DeviceOwner? { nil }
}

/// Whose a device is, for operators.
package struct DeviceOwner: Hashable, Sendable {
    /// By which the protocol names the registrant.
    package let keyHash: [UInt8]
    package let installation: String

    package init(keyHash: [UInt8], installation: String) {
        self.keyHash = keyHash
        self.installation = installation
    }
}

/// Where a device is reached, by the registration that is in force.
package struct DeviceAddress: Sendable {
    /// Of the registration.
    package let version: UInt64
    package let platform: Platform
    package let deviceToken: DeviceToken
    /// The app on APNs.
    package let apnTopic: String
    /// Of a Session device; nil for those of other protocols.
    package let service: PushService?
    /// When the registration ends by its age; nil: never. From then on nothing is posted to it, also while its row is not removed yet.
    package let endsAt: Timestamp?

    package init(
        version: UInt64, platform: Platform, deviceToken: DeviceToken, apnTopic: String, service: PushService? = nil,
        endsAt: Timestamp? = nil
    ) {
        self.service = service
        self.endsAt = endsAt
        self.version = version
        self.platform = platform
        self.deviceToken = deviceToken
        self.apnTopic = apnTopic
    }
}

/// The sources of a node's protocols.
package struct DeliverySources: Sendable {
    private let sources: [ProtocolNumber: any DeliverySource]
    /// Ids and versions alone, which costs a fraction of what reading what is registered does.
    private let versions: [ProtocolNumber: Query]

    /// - Precondition: no two have the same number.
    package init(_ sources: [any DeliverySource]) {
        self.sources = Dictionary(uniqueKeysWithValues: sources.map { ($0.number, $0) })
        versions = self.sources.mapValues { source in
            let devices = source.devices
            return Query(devices.table, Array(devices.outputs.prefix(2)), where: devices.conditions)
        }
    }

    subscript(number: ProtocolNumber) -> (any DeliverySource)? { sources[number] }

    /// See ``DeliverySource/noteGivenUp(_:at:)``.
    func noteGivenUp(_ deliveries: [(number: ProtocolNumber, delivery: DeliveryID)], at now: Timestamp) -> [Change] {
        deliveries.compactMap { sources[$0.number]?.noteGivenUp($0.delivery, at: now) }
    }

    /// Whose the registered devices among these are.
    package func owners(of devices: some Sequence<DeviceID>) -> StoreCommand<[DeviceID: DeviceOwner]> {
        rows(of: devices).map { [self] rows in
            rows.reduce(into: [:]) { owners, device in
                owners[device.key] = (try? sources[device.key.protocol]?.owner(of: device.value)) ?? nil
            }
        }
    }

    /// Rows of the devices that are registered, of all protocols; a row each, with the columns of its source.
    func rows(of devices: some Sequence<DeviceID>) -> StoreCommand<[DeviceID: Row]> {
        find(devices, by: { sources[$0]?.devices }) { $0 }
    }

    /// Versions of the registrations that are in force.
    func versions(of devices: some Sequence<DeviceID>) -> StoreCommand<[DeviceID: UInt64]> {
        find(devices, by: { versions[$0] }) { try $0.unsigned(1) }
    }

    /// - Parameters:
    ///   - devices: of any protocols.
    ///   - query: a protocol's, with the device's id as the first output.
    ///   - value: what is wanted of a row.
    private func find<Found: Sendable>(
        _ devices: some Sequence<DeviceID>, by query: (ProtocolNumber) -> Query?, _ value: @escaping @Sendable (Row) throws -> Found
    ) -> StoreCommand<[DeviceID: Found]> {
        let byProtocol = Dictionary(grouping: Set(devices), by: \.protocol).compactMap { number, devices in
            query(number).map { (number: number, read: $0(ids: devices.map(\.row))) }
        }
        return .read(byProtocol.map(\.read)) { found in
            var values: [DeviceID: Found] = [:]
            for ((number, _), rows) in zip(byProtocol, found) {
                for row in rows { values[DeviceID(number, row: try row.integer(0))] = try value(row) }
            }
            return .done(values)
        }
    }
}
