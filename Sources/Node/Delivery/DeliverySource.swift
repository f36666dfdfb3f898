public import Core
public import Storage
import Waku

/// Interprets the devices and payloads of one protocol; delivery knows nothing else about protocols.
public protocol DeliverySource: Sendable {
    var number: ProtocolNumber { get }

    /// Selects registered devices: its conditions are `Condition.idAmong` and the exclusion of removed devices. The first output is the id,
    /// the second the version of the registration.
    var devices: Query { get }

    /// Selects the ids of a registrant's devices by `DeviceOwner.keyHash`, its only argument; nil when operators can't look for registrants.
    var devicesOfRegistrant: Query? { get }

    /// The push address of a device. Throws when the row can't be decoded.
    func address(of device: Row) throws -> DeviceAddress

    /// The owner of a device; nil when the protocol does not reveal it. The row need not be decrypted.
    func owner(of device: Row) throws -> DeviceOwner?

    /// Decodes a payload from the outbox for a device. Throws when it can't be read.
    func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent

    /// Unregisters a device whose token does not work, as if its owner had, so that a later registration succeeds. Does nothing when the stored
    /// version differs. Includes ``DeliveryStorage/forget(_:)``.
    func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void>

    /// Records that gorush accepted a notification for a device, in the transaction that stores the acceptance. nil for nothing to record.
    func noteAccepted(_ row: Int64, at now: Timestamp) -> Change?

    /// Records a delivery that was given up: expired, evicted, or refused by gorush. nil when the same delivery may be requested again.
    func noteGivenUp(_ delivery: DeliveryID, at now: Timestamp) -> Change?

    /// Whether others can choose the expiry of a notification, besides the node's age limit. Expired notifications are then counted apart from lost ones.
    var othersChooseExpiry: Bool { get }
}

extension DeliverySource {
    public func noteGivenUp(_ delivery: DeliveryID, at now: Timestamp) -> Change? { nil }
    public func noteAccepted(_ row: Int64, at now: Timestamp) -> Change? { nil }
    public func owner(of device: Row) throws -> DeviceOwner? { nil }
    public var othersChooseExpiry: Bool { false }
    public var devicesOfRegistrant: Query? { nil }
}

/// The owner of a device, for operators.
public struct DeviceOwner: Hashable, Sendable {
    /// The hash by which the protocol identifies the registrant.
    package let keyHash: [UInt8]
    package let installation: String

    package init(keyHash: [UInt8], installation: String) {
        self.keyHash = keyHash
        self.installation = installation
    }
}

/// The sources of a node's protocols.
package struct DeliverySources: Sendable {
    private let sources: [ProtocolNumber: any DeliverySource]
    /// Queries for ids and versions only, at a fraction of the cost of reading whole registrations.
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

    /// See ``DeliverySource/noteAccepted(_:at:)``.
    func noteAccepted(_ device: DeviceID, at now: Timestamp) -> [Change] {
        sources[device.protocol]?.noteAccepted(device.row, at: now).map { [$0] } ?? []
    }

    /// The owners of the registered devices among these.
    package func owners(of devices: some Sequence<DeviceID>) -> StoreCommand<[DeviceID: DeviceOwner]> {
        rows(of: devices).map { [self] rows in
            rows.reduce(into: [:]) { owners, device in
                owners[device.key] = (try? sources[device.key.protocol]?.owner(of: device.value)) ?? nil
            }
        }
    }

    /// The rows of the registered devices among these, of all protocols, with the columns of their sources.
    func rows(of devices: some Sequence<DeviceID>) -> StoreCommand<[DeviceID: Row]> {
        find(devices, by: { sources[$0]?.devices }) { $0 }
    }

    /// The devices of a registrant with any protocol, some of which may not be registered.
    ///
    /// - Parameter keyHashes: the hashes of the registrant's key, one for each way in which protocols hash keys.
    package func devices(ofRegistrant keyHashes: [[UInt8]]) -> StoreCommand<[DeviceID]> {
        let queries = sources.values.compactMap { source in source.devicesOfRegistrant.map { (source.number, $0) } }
        let reads = queries.flatMap { number, query in keyHashes.map { (number: number, read: query(.bytes($0))) } }
        return .read(reads.map(\.read)) { found in
            .done(try zip(reads, found).flatMap { read, rows in try rows.map { DeviceID(read.number, row: try $0.integer(0)) } })
        }
    }

    /// The versions of the current registrations.
    package func versions(of devices: some Sequence<DeviceID>) -> StoreCommand<[DeviceID: UInt64]> {
        find(devices, by: { versions[$0] }) { try $0.unsigned(1) }
    }

    /// - Parameter query: the device query of a protocol, with the device's id as the first output.
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
