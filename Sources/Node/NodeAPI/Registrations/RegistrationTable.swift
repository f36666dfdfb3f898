public import Core
public import Delivery
import Foundation
public import NodeMetrics
public import Storage
public import Waku
import WakuCrypto

/// The stored registrations of a protocol, one row for each owner, and the commands that change and notify them.
///
///     (no row) ──(registration)──▶ device ──(registration without a device, or a dead token)──▶ tombstone ──(registration)──▶ device
///                                     └──────────────────(latest end)──▶ (no row)  ◀──(latest end)──┘
///
/// Only a higher version changes a row. Rows stay until the latest end that their owner named, also as tombstones, so that an earlier registration
/// can't be replayed.
public struct RegistrationTable<Device: RegisteredDevice>: Sendable {
    /// To be part of the protocol's `StorePart`. Tokens and settings are encrypted.
    public let table: Table
    /// Identifies owners: see ``NodeProtocol/registrants``.
    public let owner = Column("owner", .bytes)
    private let version = Column("version", .integer)
    /// 8 bytes of the registration's hash; null if the node itself has ended the device.
    private let mark = Column("mark", .integer, isOptional: true)
    private let end = Column("end_at", .integer)
    /// null in a tombstone.
    private let sealed = Column("sealed", .bytes, isOptional: true)
    private let number: ProtocolNumber
    private let limit: Int

    private let find, count, countDevices, devices: Query
    private let insert, update, endDevice, removeEnded: Mutation

    /// - Parameters:
    ///   - name: the name of the table, which is also its name in `admin check`.
    ///   - number: the protocol's number.
    ///   - limit: the maximum number of owners.
    public init(_ name: String, of number: ProtocolNumber, limit: Int) {
        self.number = number
        self.limit = limit
        table = Table(
            name, columns: [owner, version, mark, end, sealed], unique: [owner], indexes: [Index(name + "_end", on: [end])],
            neverReusesIDs: true, sealed: SealedColumn(sealed, boundTo: [owner], label: name))
        let columns = [.id, version, owner, end, sealed, mark]
        find = Query(table, columns, where: [.equal(owner)])
        devices = Query(table, columns, where: [.idAmong, .present(sealed)])
        count = Query(table, [.count])
        countDevices = Query(table, [.count], where: [.present(sealed)])
        insert = Mutation(table, .insert([owner, version, mark, end, sealed]))
        update = Mutation(table, .update([version, mark, end, sealed], where: [.equal(.id), .equal(version)]))
        endDevice = Mutation(table, .updateAny([mark, sealed], where: [.equal(.id), .equal(version)]))
        removeEnded = Mutation(table, .delete(where: [.less(end)]))
    }

    // MARK: Registrations

    /// Stores a registration if its version is higher than the owner's stored one.
    ///
    /// - Parameters:
    ///   - registration: the registration.
    ///   - node: the services of the node.
    ///   - changes: of the protocol's other tables, made together with the registration or not at all. Receives the time until which the row stays.
    /// - Returns: the result for ``NodeServices/answer(_:_:to:)``.
    public func store(
        _ registration: SealedRegistration<Device>, by node: NodeServices,
        with changes: @escaping @Sendable (_ end: Timestamp) -> [Change] = { _ in [] }
    ) -> StoreCommand<RegistrationResult> {
        store(registration, sealer: node.store.sealer, drain: node.drain, with: changes)
    }

    package func store(
        _ registration: SealedRegistration<Device>, sealer: Sealer, drain: Drain,
        with changes: @escaping @Sendable (_ end: Timestamp) -> [Change]
    ) -> StoreCommand<RegistrationResult> {
        let owner = Value.bytes(registration.owner.compressed)
        let mark = Int64(bitPattern: registration.digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        return .find(find(owner)) { rows in
            guard let row = rows.first else {
                return .find(count()) { counts in
                    if drain.isOn { return .done(.failed) }
                    if try counts[0].integer(0) >= limit { return .done(.full) }
                    let stored = insert(
                        owner, .version(registration.version), .integer(mark), .integer(registration.end.rawValue),
                        try seal(registration, by: sealer))
                    return .change([stored] + changes(registration.end), registration.result)
                }
            }
            let storedVersion = try row.unsigned(1)
            if storedVersion == registration.version, try row.optionalInteger(5) == mark { return .done(.repeated) }
            if drain.isOn { return .done(.failed) }
            guard registration.version > storedVersion else { return .done(.outdated) }
            let end = Timestamp(rawValue: max(registration.end.rawValue, try row.integer(3)))
            let stored = update(
                .version(registration.version), .integer(mark), .integer(end.rawValue), try seal(registration, by: sealer),
                .integer(try row.integer(0)), .version(storedVersion))
            let forgotten = registration.device == nil ? DeliveryStorage.forget(DeviceID(number, row: try row.integer(0))) : []
            return .change([stored] + forgotten + changes(end), registration.result)
        }
    }

    private func seal(_ registration: SealedRegistration<Device>, by sealer: Sealer) throws -> Value {
        guard let device = registration.device else { return .null }
        let content = try JSONEncoder().encode(StoredDevice(end: registration.end.rawValue, device: device))
        return sealer.seal(Array(content), in: table, boundTo: [.bytes(registration.owner.compressed)])
    }

    /// The encrypted content of a row. The end is that of the registration, which may be before that of the row.
    private struct StoredDevice: Codable {
        let end: Int64
        let device: Device
    }

    fileprivate func open(_ row: Row, by sealer: Sealer) throws -> (end: Timestamp, device: Device) {
        let json = try sealer.open(try row.bytes(4), in: table, boundTo: [.bytes(try row.bytes(2))])
        let stored = try JSONDecoder().decode(StoredDevice.self, from: Data(json))
        return (Timestamp(rawValue: stored.end), stored.device)
    }

    /// Deletes rows whose end has passed: for ``ProtocolService/expire(at:)``.
    public func expire(at now: Timestamp) -> Change { removeEnded(.integer(now.rawValue)) }

    // MARK: Notifications

    /// Notifies the devices of owners, each once for a message, however often the message is handled.
    ///
    /// - Parameters:
    ///   - owners: compressed public keys. Those without a device are skipped.
    ///   - hash: of the message.
    ///   - payload: the protocol's encoding of the notification: see ``RegisteredDevice/content(of:)``.
    ///   - lifetime: after this time the notification is given up.
    ///   - now: the time of the command.
    ///   - times: of the message.
    ///   - node: the services of the node.
    /// - Returns: the notifications for ``WakuHandler/queued(by:)``.
    public func notify(
        _ owners: [[UInt8]], of hash: MessageHash, payload: [UInt8] = [], lifetime: Duration = .seconds(3600), at now: Timestamp,
        times: MessageTimes?, by node: NodeServices
    ) -> StoreCommand<[QueuedDelivery]> {
        .read(owners.map { find(.bytes($0)) }) { found in
            let devices = try found.joined().filter { try $0.optionalBytes(4) != nil }
            let source = deliverySource(node.store.sealer)
            return StoreCommand.each(
                try devices.map { row in
                    node.enqueueOnce(
                        DeliveryID(hashing: hash.bytes, try row.bytes(2)), for: DeviceID(number, row: try row.integer(0)),
                        at: try source.address(of: row), try source.content(of: payload, to: row), payload: payload,
                        expires: now + lifetime, now: now, times: times)
                }
            ).map { $0.compactMap(\.self) }
        }
    }

    /// The source for ``ProtocolDescription``.
    public func deliverySource(_ sealer: Sealer) -> any DeliverySource { Source(registrations: self, sealer: sealer) }

    private struct Source: DeliverySource {
        let registrations: RegistrationTable
        let sealer: Sealer
        var number: ProtocolNumber { registrations.number }
        var devices: Query { registrations.devices }

        func address(of device: Row) throws -> DeviceAddress {
            let (end, registered) = try registrations.open(device, by: sealer)
            return registered.address(version: try device.unsigned(1), end: end)
        }

        func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent {
            try registrations.open(device, by: sealer).device.content(of: payload)
        }

        func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
            .change(
                [registrations.endDevice(.null, .null, .integer(row), .version(version))]
                    + DeliveryStorage.forget(DeviceID(number, row: row)))
        }
    }

    // MARK: Operators

    /// The numbers of devices and of tombstones, for `admin status`: see ``ProtocolDescription``.
    ///
    /// - Parameter name: the protocol's name.
    public func storedCounts(in store: any Store, of name: String) throws(StoreError) -> [StoredCount] {
        let (all, registered) = try store.read(
            .read([count(), countDevices()]) { .done((try $0[0][0].integer(0), try $0[1][0].integer(0))) })
        return [
            StoredCount(key: "\(name)-devices", name: "\(name) devices", count: Int(registered)),
            StoredCount(key: "\(name)-ended", name: nil, count: Int(all - registered)),
        ]
    }
}

extension Value {
    fileprivate static func version(_ version: UInt64) -> Value { .integer(Int64(bitPattern: version)) }
}

extension SealedRegistration {
    fileprivate var result: RegistrationResult { device == nil ? .ended : .stored }
}
