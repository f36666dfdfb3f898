package import Core
package import Delivery
import Foundation
package import Storage
import WakuCrypto

/// The registrations of a protocol as operators see them, independent of the device type.
package protocol OperatedRegistrations: Sendable {
    var table: Table { get }
    var owner: Column { get }
    /// The number of owners, tombstones included.
    func rowCount() -> StoreCommand<Int>
    func figures() -> StoreCommand<DeviceFigures>
    /// Rows that match a filter, oldest first.
    func rows(_ filter: OwnerFilter, limit: Int, offset: Int) -> StoreCommand<[RegisteredOwner]>
    /// Decrypts the rows that match a filter, oldest first, until `visit` returns false. Blocks, as the store's `scan` does.
    func forEach(
        _ filter: OwnerFilter, in store: any Store, _ visit: (OpenedRegistration) throws -> Bool
    ) throws(StoreError)
    /// Ends a device: a tombstone stays until the row's end.
    ///
    /// - Returns: whether it was registered with this version.
    func end(_ registered: RegisteredOwner) -> StoreCommand<Bool>
    /// Whether an exported row has an owner, and the content of a device or none.
    func isValid(_ copy: OpenedRegistration) -> Bool
    /// Stores an exported row unless one with the same or a higher version is stored.
    ///
    /// - Returns: whether it was stored.
    func merge(_ copy: OpenedRegistration, by sealer: Sealer) -> StoreCommand<Bool>
}

/// The parts of a registration that are not encrypted.
package struct RegisteredOwner: Sendable {
    /// The compressed public key.
    package let owner: [UInt8]
    package let version: UInt64
    /// Identifies the registration; nil if the node itself has ended the device.
    package let mark: Int64?
    package let changedAt: Timestamp
    /// The time until which the row stays.
    package let end: Timestamp
    /// nil for a tombstone.
    package let platform: Platform?
    /// Whether gorush has accepted a notification for the device.
    package let isUsed: Bool

    package init(
        owner: [UInt8], version: UInt64, mark: Int64?, changedAt: Timestamp, end: Timestamp, platform: Platform?, isUsed: Bool
    ) {
        self.owner = owner
        self.version = version
        self.mark = mark
        self.changedAt = changedAt
        self.end = end
        self.platform = platform
        self.isUsed = isUsed
    }
}

/// A registration with its content.
package struct OpenedRegistration: Sendable {
    package let row: RegisteredOwner
    /// The device as JSON, with the end of its registration; nil for a tombstone.
    package let content: [UInt8]?
    /// nil for a tombstone.
    package let address: DeviceAddress?

    package init(_ row: RegisteredOwner, content: [UInt8]?, address: DeviceAddress? = nil) {
        self.row = row
        self.content = content
        self.address = address
    }
}

/// Selects the registrations that meet all conditions.
package struct OwnerFilter: Sendable {
    /// A prefix of the compressed public key in hexadecimal digits.
    package var prefix = ""
    package var platform: Platform?
    /// true: devices only; false: tombstones only; nil: both.
    package var isRegistered: Bool?
    package var changedBefore: Timestamp?
    package var changedSince: Timestamp?

    package init(prefix: String = "") {
        self.prefix = prefix
    }
}

extension RegistrationTable: OperatedRegistrations {
    package func rowCount() -> StoreCommand<Int> { .find(count()) { .done(Int(try $0[0].integer(0))) } }

    package func figures() -> StoreCommand<DeviceFigures> {
        DeliveryStorage.doubtedDevices(of: number).then { doubted in
            .read([countByPlatform(), countAmong(ids: doubted)]) { found in
                .done(try DeviceFigures(byPlatform: found[0], inDoubt: found[1]))
            }
        }
    }

    /// The numbers of devices and of tombstones, for `admin status`: see ``ProtocolDescription``.
    package func storedCounts(in store: any Store, of name: String) throws(StoreError) -> [StoredCount] {
        let figures = try store.read(figures())
        return [
            StoredCount(key: "\(name)-devices", name: "\(name) devices", count: figures.total),
            StoredCount(key: "\(name)-ended", name: nil, count: figures.unregistered),
        ]
    }

    private var ownerByteCount: Int { 33 }
    private static var shownCount: Int { 7 }
    private var shown: [Column] { [owner, version, mark, changedAt, end, platform, unused] }

    private static func shown(_ row: Row) throws -> RegisteredOwner {
        RegisteredOwner(
            owner: try row.bytes(0), version: try row.unsigned(1), mark: try row.optionalInteger(2),
            changedAt: Timestamp(rawValue: try row.integer(3)), end: Timestamp(rawValue: try row.integer(4)),
            platform: try row.optionalInteger(5).flatMap { Platform(rawValue: Int32(truncatingIfNeeded: $0)) }, isUsed: row.isNull(6))
    }

    private func read(_ filter: OwnerFilter, _ columns: [Column], limit: Int? = nil, offset: Int = 0) -> Read {
        var conditions: [Condition] = []
        var arguments: [Value] = []
        if !filter.prefix.isEmpty {
            let digits = filter.prefix.prefix(2 * ownerByteCount)
            let fill = 2 * ownerByteCount - digits.count
            conditions.append(.between(owner))
            arguments += ["0", "f"].map { .bytes(bytes(hex: digits + String(repeating: $0, count: fill)) ?? []) }
        }
        if let platform = filter.platform {
            conditions.append(.equal(self.platform))
            arguments.append(.integer(Int64(platform.rawValue)))
        }
        if let isRegistered = filter.isRegistered { conditions.append(isRegistered ? .present(sealed) : .absent(sealed)) }
        if let time = filter.changedBefore {
            conditions.append(.less(changedAt))
            arguments.append(.integer(time.rawValue))
        }
        if let time = filter.changedSince {
            conditions.append(.atLeast(changedAt))
            arguments.append(.integer(time.rawValue))
        }
        return Query(table, columns, where: conditions, order: [.ascending(.id)]).read(arguments, limit: limit, offset: offset)
    }

    package func rows(_ filter: OwnerFilter, limit: Int, offset: Int) -> StoreCommand<[RegisteredOwner]> {
        .find(read(filter, shown, limit: limit, offset: offset)) { rows in .done(try rows.map(Self.shown)) }
    }

    package func forEach(
        _ filter: OwnerFilter, in store: any Store, _ visit: (OpenedRegistration) throws -> Bool
    ) throws(StoreError) {
        let sealer = store.sealer
        try store.scan(read(filter, shown + [sealed])) { row in
            let found = try Self.shown(row)
            guard let bytes = try row.optionalBytes(Self.shownCount) else { return try visit(OpenedRegistration(found, content: nil)) }
            let content = try sealer.open(bytes, in: table, boundTo: [.bytes(found.owner)])
            // An earlier release of the protocol may have stored content that this one can't decode.
            let stored = try? JSONDecoder().decode(StoredDevice<Device>.self, from: Data(content))
            let address = stored.map { $0.device.address(version: found.version, end: Timestamp(rawValue: $0.end)) }
            return try visit(OpenedRegistration(found, content: content, address: address))
        }
    }

    package func end(_ registered: RegisteredOwner) -> StoreCommand<Bool> {
        .find(find(.bytes(registered.owner))) { rows in
            guard let row = try rows.first.map(StoredRegistration.init), row.isDevice, row.version == registered.version else {
                return .done(false)
            }
            return .change(ending(row), true)
        }
    }

    private func device(in copy: OpenedRegistration) throws -> StoredDevice<Device>? {
        try copy.content.map { try JSONDecoder().decode(StoredDevice<Device>.self, from: Data($0)) }
    }

    package func isValid(_ copy: OpenedRegistration) -> Bool {
        guard copy.row.owner.count == ownerByteCount, (try? PublicKey(parsing: copy.row.owner)) != nil else { return false }
        do {
            _ = try device(in: copy)
            return true
        } catch {
            return false
        }
    }

    package func merge(_ copy: OpenedRegistration, by sealer: Sealer) -> StoreCommand<Bool> {
        .find(find(.bytes(copy.row.owner))) { rows in
            let stored = try device(in: copy)
            let device = RegistrationCopy(
                owner: copy.row.owner, version: copy.row.version, mark: copy.row.mark,
                end: stored.map { Timestamp(rawValue: $0.end) } ?? copy.row.end, rowEnd: copy.row.end, changedAt: copy.row.changedAt,
                device: stored?.device, isUsed: copy.row.isUsed)
            guard let row = try rows.first.map(StoredRegistration.init) else { return .change(try insertion(device, by: sealer), true) }
            guard copy.row.version > row.version else { return .done(false) }
            return .change(try replacement(of: row, by: device, sealer), true)
        }
    }
}
