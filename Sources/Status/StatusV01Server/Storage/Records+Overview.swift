import Delivery
package import NodeAPI
package import Core
package import StatusProtocol
import StatusRules
package import Storage
package import WakuCrypto

/// The data of a record that is not encrypted.
package struct RecordSummary: Sendable {
    package let keyHash: V01.KeyHash
    package let version: UInt64
    package let changedAt: Timestamp
    package let isRegistered: Bool
}

/// A record with its content, or a tombstone.
package struct RecordExport: Sendable {
    package let keyHash: V01.KeyHash
    package let version: UInt64
    package let changedAt: Timestamp
    /// The record as received; nil for a tombstone.
    package let preferences: [UInt8]?
    /// Whether this is a tombstone of an account that was never registered.
    package let neverRegistered: Bool

    package init(
        keyHash: V01.KeyHash, version: UInt64, changedAt: Timestamp, preferences: [UInt8]?, neverRegistered: Bool = false
    ) {
        self.keyHash = keyHash
        self.version = version
        self.changedAt = changedAt
        self.preferences = preferences
        self.neverRegistered = neverRegistered
    }
}

/// Numbers of records and devices.
package struct RecordFigures: Hashable, Sendable {
    /// Their unregistered ones are the tombstones of accounts.
    package var devices = DeviceFigures()
    package var records = 0

    package init() {}
}

extension Records {
    private static let summaryColumns: [Query.Output] = [
        .column(V01Storage.keyHash), .column(V01Storage.version), .column(V01Storage.changedAt), .isPresent(V01Storage.sealed),
    ]
    private static let findSummaries = Query(V01Storage.record, summaryColumns, order: [.ascending(.id)])
    private static let findSummariesByHash = Query(
        V01Storage.record, summaryColumns, where: [.between(V01Storage.keyHash)], order: [.ascending(.id)])

    /// Records whose key hash begins with `prefix` (hexadecimal digits), oldest first.
    package static func summaries(keyHashPrefix prefix: String = "", limit: Int, offset: Int = 0) -> StoreCommand<[RecordSummary]> {
        let read =
            prefix.isEmpty
            ? findSummaries(limit: limit, offset: offset) : findSummariesByHash.read(range(prefix), limit: limit, offset: offset)
        return .find(read) { rows in
            .done(
                try rows.compactMap { row in
                    guard let keyHash = V01.KeyHash(stored: try row.bytes(0)) else { return nil }
                    return RecordSummary(
                        keyHash: keyHash, version: try row.unsigned(1), changedAt: Timestamp(rawValue: try row.integer(2)),
                        isRegistered: try row.integer(3) != 0)
                })
        }
    }

    /// The lowest and the highest hash with this prefix.
    private static func range(_ prefix: String) -> [Value] {
        let digits = prefix.prefix(2 * V01.KeyHash.byteCount)
        let fill = 2 * V01.KeyHash.byteCount - digits.count
        // The highest has room for a mark.
        return ["0", "f"].map {
            let mark = $0 == "f" ? String(repeating: "f", count: 2 * ServerMark.byteCount) : ""
            return .bytes(bytes(hex: digits + String(repeating: $0, count: fill) + mark) ?? [])
        }
    }

    private static let findAll = Query(
        V01Storage.record, [V01Storage.keyHash, V01Storage.version, V01Storage.changedAt, V01Storage.sealed, V01Storage.unfounded],
        order: [.ascending(.id)])

    /// Decrypts all records, oldest first, until `visit` returns false. Blocks, as the store's `scan` does.
    ///
    /// - Throws: `StoreError`, also if `visit` throws.
    package func forEach(in store: any Store, _ visit: (RecordExport) throws -> Bool) throws(StoreError) {
        try store.scan(Self.findAll()) { row in
            guard let keyHash = V01.KeyHash(stored: try row.bytes(0)) else { throw UnexpectedValue() }
            let version = try row.unsigned(1)
            return try visit(
                RecordExport(
                    keyHash: keyHash, version: version, changedAt: Timestamp(rawValue: try row.integer(2)),
                    preferences: try row.optionalBytes(3).map { try open($0, of: keyHash, version: version) },
                    neverRegistered: !row.isNull(4)))
        }
    }

    /// As ``merge(_:)``, for a record whose key hash has no mark.
    ///
    /// - Parameters:
    ///   - identity: the identity with which it is registered.
    ///   - owner: the identity to which the database belongs.
    package func merge(_ record: RecordExport, with identity: PublicKey, in owner: PublicKey) -> StoreCommand<Bool> {
        StoreIdentities.all().then { known in
            let mark = ServerMarks(known: known, identity: owner).mark(of: identity)
            guard mark != nil else { return merge(record) }
            let marked = RecordExport(
                keyHash: record.keyHash.registered(with: mark), version: record.version, changedAt: record.changedAt,
                preferences: record.preferences, neverRegistered: record.neverRegistered)
            return StoreIdentities.add([owner, identity], by: sealer).then { merge(marked) }
        }
    }

    /// Stores a record if it is newer than the stored row of its account, unless its access token belongs to another account now. Returns whether
    /// it was stored. A record that can't be parsed is not.
    package func merge(_ record: RecordExport) -> StoreCommand<Bool> {
        let preferences = record.preferences.flatMap(parse)
        guard record.preferences == nil || preferences != nil else { return .done(false) }
        let keyHash = record.keyHash
        return .read(
            [Self.rowRead(keyHash), Self.devicesRead(keyHash)] + (preferences.map { holderReads($0.accessToken, at: keyHash.server) } ?? [])
        ) { found in
            let row = try Self.row(found[0])
            if let row, row.head.version >= record.version { return .done(false) }
            let devices = try Self.devices(found[1])
            guard let preferences, let payload = record.preferences else {
                return .change(
                    Self.end(
                        keyHash, version: record.version, mark: nil, replacing: row, devices: devices,
                        wasRegistered: !record.neverRegistered, at: record.changedAt), true)
            }
            if try Self.isTaken(found[2...], from: keyHash) { return .done(false) }
            return .change(
                store(
                    preferences, payload: payload, as: keyHash, mark: nil, replacing: row, devices: devices, at: record.changedAt), true)
        }
    }

    // MARK: Figures

    private static let countDevices = Query(
        V01Storage.device, [.column(V01Storage.platform), .count], group: V01Storage.platform)
    private static let countAmong = Query(
        V01Storage.device, [.column(V01Storage.platform), .count], where: [.idAmong], group: V01Storage.platform)
    private static let countRecords = Query(V01Storage.record, [.count], where: [.present(V01Storage.sealed)])
    private static let countTombstones = Query(V01Storage.record, [.count], where: [.absent(V01Storage.sealed)])
    private static let countAllDevices = Query(V01Storage.device, [.count])

    /// Reads all records: about one second per million.
    package static func figures() -> StoreCommand<RecordFigures> {
        DeliveryStorage.doubtedDevices(of: V01Storage.protocolNumber).then { doubted in
            .read([countDevices(), countAmong(ids: doubted), countRecords(), countTombstones()]) { found in
                var figures = RecordFigures()
                figures.devices = try DeviceFigures(byPlatform: found[0], inDoubt: found[1])
                figures.records = Int(try found[2][0].integer(0))
                figures.devices.unregistered = Int(try found[3][0].integer(0))
                return .done(figures)
            }
        }
    }

    /// Number of registered devices, for limits.
    static func deviceCount() -> StoreCommand<Int> {
        .find(countAllDevices()) { .done(Int(try $0[0].integer(0))) }
    }
}
