public import Core
public import Delivery
import Foundation
public import NodeMetrics
import RateLimits
public import Storage
public import Waku
import WakuCrypto

/// The stored registrations of a protocol, one row for each owner, and the commands that change and notify them.
///
///     (no row) ──(registration)──▶ device ──(registration without a device, or a dead token)──▶ tombstone ──(registration)──▶ device
///        ▲                            └──────────────────(latest end)──▶ (no row)  ◀──(latest end)──┘
///        └──(no room for a new owner)── the oldest row that was never notified, device or tombstone
///
/// Only a higher version changes a row. Rows stay until the latest end that their owner named, also as tombstones, so that an earlier registration
/// can't be replayed.
///
/// Keys cost nothing, so anyone can fill the table up to its limit. A new owner still gets a place there: that of the row that was stored or
/// renewed longest ago among those for which gorush has never accepted a notification. Rows of notified devices are never displaced.
public struct RegistrationTable<Device: RegisteredDevice>: Sendable {
    /// The rows of the protocol's other tables that a registration stands for.
    ///
    /// - Parameters:
    ///   - owner: the owner, to be a column of these tables.
    ///   - device: nil: all rows of the owner are to be deleted.
    ///   - end: the time until which the registration's row stays.
    public typealias Rows = @Sendable (_ owner: Value, _ device: Device?, _ end: Timestamp) -> [Change]

    /// The table. Tokens and settings are encrypted.
    public let table: Table
    /// Identifies owners: see ``NodeProtocol/registrants``.
    public let owner = Column("owner", .bytes)
    let version = Column("version", .integer)
    /// 8 bytes of the registration's hash; null if the node itself has ended the device.
    let mark = Column("mark", .integer, isOptional: true)
    let end = Column("end_at", .integer)
    let changedAt = Column("changed_at", .integer)
    /// null in a tombstone.
    let platform = Column("platform", .integer, isOptional: true)
    /// 1 until gorush accepts a notification for the device, then null.
    let unused = Column("unused", .integer, isOptional: true)
    /// null in a tombstone.
    let sealed = Column("sealed", .bytes, isOptional: true)
    package let number: ProtocolNumber
    let rows: Rows

    let find, count, countByPlatform, countAmong, devices, findUnused: Query
    private let insert, update, endDevice, use, claimUnused, remove: Mutation
    private let ended: ExpiredRows

    /// - Parameters:
    ///   - name: the name of the table, which is also its name in `admin check`.
    ///   - rows: the rows of other tables, replaced with each change of the registration, also by operators and expiry.
    public init(_ name: String, of number: ProtocolNumber, rows: @escaping Rows = { _, _, _ in [] }) {
        self.number = number
        self.rows = rows
        let stored = [version, mark, end, changedAt, platform, sealed]
        table = Table(
            name, columns: [owner] + stored + [unused], unique: [owner],
            indexes: [
                Index(name + "_end", on: [end]), Index(name + "_platform", on: [platform]),
                Index(name + "_unused", on: [unused, changedAt], where: .present(unused)),
            ],
            neverReusesIDs: true, sealed: SealedColumn(sealed, boundTo: [owner], label: name))
        let columns: [Column] = [.id, version, owner, end, sealed, mark, unused]
        find = Query(table, columns, where: [.equal(owner)])
        devices = Query(table, columns, where: [.idAmong, .present(sealed)])
        findUnused = Query(table, columns, where: [.equal(unused)], order: [.ascending(changedAt)])
        count = Query(table, [.count])
        countByPlatform = Query(table, [.column(platform), .count], group: platform)
        countAmong = Query(table, [.column(platform), .count], where: [.idAmong, .present(platform)], group: platform)
        insert = Mutation(table, .insert([owner] + stored + [unused]))
        update = Mutation(table, .update(stored, where: [.equal(.id), .equal(version)]))
        endDevice = Mutation(table, .update([mark, platform, sealed], where: [.equal(.id), .equal(version)]))
        ended = ExpiredRows(table, by: end)
        use = Mutation(table, .updateAny([unused], where: [.equal(.id), .equal(unused)]))
        claimUnused = Mutation(table, .update([unused], where: [.equal(.id), .equal(unused)]))
        remove = Mutation(table, .delete(where: [.equal(.id)]))
    }

    // MARK: Registrations

    /// Stores a registration if its version is higher than the owner's stored one, and limits allow it.
    ///
    /// - Returns: the result for ``NodeServices/answer(_:_:to:)``.
    public func store(_ registration: SealedRegistration<Device>, by node: NodeServices) -> StoreCommand<RegistrationResult> {
        store(registration, sealer: node.store.sealer, drain: node.drain, limits: node.limits, at: node.now())
    }

    package func store(
        _ registration: SealedRegistration<Device>, sealer: Sealer, drain: Drain, limits: RegistrationLimits? = nil, at now: Timestamp
    ) -> StoreCommand<RegistrationResult> {
        let owner = Value.bytes(registration.owner.compressed)
        let mark = Int64(bitPattern: registration.digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        return .find(find(owner)) { rows in
            guard let row = try rows.first.map(StoredRegistration.init) else {
                if drain.isOn { return .done(.failed) }
                return try makingRoom(for: registration, limits, at: now) { displaced in
                    let stored = RegistrationCopy(registration, mark: mark, changedAt: now)
                    return .change(displaced + (try insertion(stored, by: sealer)), registration.result)
                }
            }
            if row.version == registration.version, row.mark == mark { return .done(.repeated) }
            if drain.isOn { return .done(.failed) }
            guard registration.version > row.version else { return .done(.outdated) }
            if limits?.denies(registration.owner) == true { return .done(.failed) }
            let stored = RegistrationCopy(registration, mark: mark, changedAt: now)
            return .change(try replacement(of: row, by: stored, sealer), registration.result)
        }
    }

    /// Passes the changes that make room for a new owner to `then`, if limits allow one.
    private func makingRoom(
        for registration: SealedRegistration<Device>, _ limits: RegistrationLimits?, at now: Timestamp,
        _ then: @escaping @Sendable ([Change]) throws -> StoreCommand<RegistrationResult>
    ) throws -> StoreCommand<RegistrationResult> {
        guard let limits else { return try then([]) }
        if limits.denies(registration.owner) { return .done(.failed) }
        let (id, token) = (ChargeID(registration.digest, at: now), registration.address?.tokenBytes)
        guard limits.limiter.isFull(for: id) else {
            let isRefused = limits.refusesNew(registration.owner, id, token: token, isReplacement: false, at: now)
            return isRefused ? .done(.failed) : try then([])
        }
        return .find(findUnused(.integer(1), limit: 1)) { found in
            limits.displaced()
            guard let unused = try found.first.map(StoredRegistration.init) else { return .done(.full) }
            let isRefused = limits.refusesNew(registration.owner, id, token: token, isReplacement: true, at: now)
            return isRefused ? .done(.failed) : try then(displacement(of: unused))
        }
    }

    /// Fails if the device was notified meanwhile: then the command runs again.
    private func displacement(of row: StoredRegistration) -> [Change] {
        [claimUnused(.null, .integer(row.id), .integer(1)), remove(.integer(row.id))] + rows(.bytes(row.owner), nil, row.end)
            + DeliveryStorage.forget(DeviceID(number, row: row.id))
    }

    func insertion(_ copy: RegistrationCopy<Device>, by sealer: Sealer) throws -> [Change] {
        let owner = Value.bytes(copy.owner)
        let values = try values(of: copy, until: copy.rowEnd, by: sealer)
        return [insert.change([owner] + values + [copy.isUsed ? .null : .integer(1)])] + rows(owner, copy.device, copy.rowEnd)
    }

    func replacement(of row: StoredRegistration, by copy: RegistrationCopy<Device>, _ sealer: Sealer) throws -> [Change] {
        let end = max(row.end, copy.rowEnd)
        let stored = update.change(try values(of: copy, until: end, by: sealer) + [.integer(row.id), .version(row.version)])
        let device = DeviceID(number, row: row.id)
        let forgotten = copy.device == nil ? DeliveryStorage.forget(device) : []
        let used = copy.isUsed && row.isUnused ? [noteUsed(row.id)] : []
        return [stored] + used + forgotten + rows(.bytes(copy.owner), copy.device, end)
    }

    private func values(of copy: RegistrationCopy<Device>, until end: Timestamp, by sealer: Sealer) throws -> [Value] {
        let platform = copy.device.map { $0.address(version: copy.version, end: copy.end).platform.rawValue }
        let sealed = try copy.content().map { sealer.seal($0, in: table, boundTo: [.bytes(copy.owner)]) }
        return [
            .version(copy.version), Value(copy.mark), .integer(end.rawValue), .integer(copy.changedAt.rawValue),
            Value(platform.map(Int64.init)), sealed ?? .null,
        ]
    }

    func open(_ row: Row, by sealer: Sealer) throws -> StoredDevice<Device> {
        let json = try sealer.open(try row.bytes(4), in: table, boundTo: [.bytes(try row.bytes(2))])
        return try JSONDecoder().decode(StoredDevice<Device>.self, from: Data(json))
    }

    /// Deletes rows whose end has passed, some thousand in each commit: for ``ProtocolService/expire(at:)``.
    public func expire(at now: Timestamp, in store: any Store) async throws(StoreError) {
        try await store.commitInChunks { ended.remove(before: now.rawValue, limit: $0) }
    }

    private func noteUsed(_ row: Int64) -> Change { use(.null, .integer(row), .integer(1)) }

    /// The changes that end a device. They fail if the row changed meanwhile: then the command runs again.
    func ending(_ row: StoredRegistration) -> [Change] {
        [endDevice(.null, .null, .null, .integer(row.id), .version(row.version))] + rows(.bytes(row.owner), nil, row.end)
            + DeliveryStorage.forget(DeviceID(number, row: row.id))
    }

    // MARK: Notifications

    /// Notifies the devices of owners, each once for a message, however often the message is handled, as far as limits allow it.
    ///
    /// - Parameters:
    ///   - owners: compressed public keys. Those without a device are skipped.
    ///   - payload: the protocol's encoding of the notification: see ``RegisteredDevice/content(of:)``.
    ///   - lifetime: after this time the notification is given up.
    /// - Returns: the notifications for ``WakuHandler/queued(by:)``.
    public func notify(
        _ owners: [[UInt8]], of hash: MessageHash, payload: [UInt8] = [], lifetime: Duration = .seconds(3600), at now: Timestamp,
        times: MessageTimes?, by node: NodeServices
    ) -> StoreCommand<[QueuedDelivery]> {
        // A transaction that enqueues a delivery twice would fail.
        var seen: Set<[UInt8]> = []
        return .read(owners.filter { seen.insert($0).inserted }.map { find(.bytes($0)) }) { found in
            let devices = try found.joined().filter { row in
                guard try row.optionalBytes(4) != nil else { return false }
                let owner = try row.bytes(2)
                let delivery = DeliveryID(hashing: hash.bytes, owner)
                return node.limits?.refuses(delivery, to: owner, isKnown: row.isNull(6), at: now) != true
            }
            let source = deliverySource(node.store.sealer)
            return StoreCommand.each(
                try devices.compactMap { row -> StoreCommand<QueuedDelivery?>? in
                    let (address, content): (DeviceAddress, any NotificationContent)
                    do {
                        (address, content) = (try source.address(of: row), try source.content(of: payload, to: row))
                    } catch let error as DecodingError {
                        // Of an earlier release of the protocol: its owner counts as not registered.
                        node.errors.log("failed to parse a stored registration", reason: "\(type(of: error))")
                        return nil
                    }
                    return node.enqueueOnce(
                        DeliveryID(hashing: hash.bytes, try row.bytes(2)), for: DeviceID(number, row: try row.integer(0)),
                        at: address, content, payload: payload, expires: now + lifetime, now: now, times: times)
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
            let stored = try registrations.open(device, by: sealer)
            return stored.device.address(version: try device.unsigned(1), end: Timestamp(rawValue: stored.end))
        }

        func owner(of device: Row) throws -> DeviceOwner? { DeviceOwner(keyHash: try device.bytes(2), installation: "") }

        func content(of payload: [UInt8], to device: Row) throws -> any NotificationContent {
            try registrations.open(device, by: sealer).device.content(of: payload)
        }

        func endDevice(_ row: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
            .find(registrations.devices(ids: [row])) { found in
                guard let device = try found.first.map(StoredRegistration.init), device.version == version else { return .done(()) }
                return .change(registrations.ending(device))
            }
        }

        func noteAccepted(_ row: Int64, at now: Timestamp) -> Change? { registrations.noteUsed(row) }
    }
}

/// A row of ``RegistrationTable/find`` and the queries with the same columns.
struct StoredRegistration {
    let id: Int64
    let version: UInt64
    let owner: [UInt8]
    let end: Timestamp
    let isDevice: Bool
    let mark: Int64?
    let isUnused: Bool

    init(_ row: Row) throws {
        id = try row.integer(0)
        version = try row.unsigned(1)
        owner = try row.bytes(2)
        end = Timestamp(rawValue: try row.integer(3))
        isDevice = !row.isNull(4)
        mark = try row.optionalInteger(5)
        isUnused = !row.isNull(6)
    }
}

/// The encrypted content of a row. The end is that of the registration, which may be before that of the row.
struct StoredDevice<Device: RegisteredDevice>: Codable {
    let end: Int64
    let device: Device
}

/// A registration as it is stored.
struct RegistrationCopy<Device: RegisteredDevice> {
    let owner: [UInt8]
    let version: UInt64
    let mark: Int64?
    /// The end of the registration.
    let end: Timestamp
    /// The latest end that the owner named: the row stays until then.
    let rowEnd: Timestamp
    let changedAt: Timestamp
    let device: Device?
    /// Whether gorush has accepted a notification for the device.
    let isUsed: Bool

    /// nil in a tombstone.
    func content() throws -> [UInt8]? {
        try device.map { Array(try JSONEncoder().encode(StoredDevice(end: end.rawValue, device: $0))) }
    }
}

extension RegistrationCopy {
    init(_ registration: SealedRegistration<Device>, mark: Int64, changedAt: Timestamp) {
        self.init(
            owner: registration.owner.compressed, version: registration.version, mark: mark, end: registration.end,
            rowEnd: registration.end, changedAt: changedAt, device: registration.device, isUsed: false)
    }
}

extension Value {
    static func version(_ version: UInt64) -> Value { .integer(Int64(bitPattern: version)) }
}

extension SealedRegistration {
    fileprivate var result: RegistrationResult { device == nil ? .ended : .stored }
    fileprivate var address: DeviceAddress? { device?.address(version: version, end: end) }
}

extension DeviceAddress {
    var platform: Platform { gorushDevice?.platform ?? .webPush }

    /// Identifies the device for limits: its token, or its endpoint.
    var tokenBytes: [UInt8] {
        switch target {
        case .gorush(let device): device.token.bytes
        case .webPush(let subscription): Array(subscription.endpoint.utf8)
        }
    }
}
