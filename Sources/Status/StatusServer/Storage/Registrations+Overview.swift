import Delivery
package import NodeAPI
package import Core
package import StatusProtocol
import StatusRules
package import Storage
import Waku
package import WakuCrypto

/// The data of a registration that is not encrypted.
package struct RegistrationSummary: Sendable {
    package let key: RegistrationKey
    package let version: UInt64
    package let changedAt: Timestamp
    /// nil for a tombstone.
    package let platform: Platform?

    package init(key: RegistrationKey, version: UInt64, changedAt: Timestamp, platform: Platform?) {
        self.key = key
        self.version = version
        self.changedAt = changedAt
        self.platform = platform
    }
}

/// A registration with its content, or a tombstone.
package struct RegistrationRecord: Sendable {
    package let key: RegistrationKey
    package let version: UInt64
    package let changedAt: Timestamp
    /// The registration as received; nil for a tombstone.
    package let registration: [UInt8]?
    /// Whether no one has asked for the installation.
    package let isNeverAsked: Bool
    /// Whether this is a tombstone of an installation that was never registered.
    package let neverRegistered: Bool
    /// The mark of the message that stored it; nil for one that was read from a store, to be merged into another.
    package let message: MessageMark?

    package init(
        key: RegistrationKey, version: UInt64, changedAt: Timestamp, registration: [UInt8]?, isNeverAsked: Bool = false,
        neverRegistered: Bool = false, message: MessageMark? = nil
    ) {
        self.key = key
        self.version = version
        self.changedAt = changedAt
        self.registration = registration
        self.isNeverAsked = isNeverAsked
        self.neverRegistered = neverRegistered
        self.message = message
    }
}

package struct RegistrationStatistics: Hashable, Sendable {
    package var apn = 0
    package var firebase = 0
    package var webPush = 0
    package var tombstones = 0
    package var registrants = 0

    package var installations: Int { apn + firebase + webPush }
}

/// Numbers of installations: by state and platform, and by identity of the node.
package struct RegistrationFigures: Hashable, Sendable {
    package var devices = DeviceFigures()
    /// Registered installations of the identities in the question.
    package var byServer: [ServerMark: Int] = [:]
}

extension Registrations {
    /// Installations that match a filter, oldest first.
    package static func summaries(_ filter: RegistrationFilter, limit: Int, offset: Int = 0) -> StoreCommand<[RegistrationSummary]> {
        let columns = [
            StatusStorage.keyHash, StatusStorage.installation, StatusStorage.version, StatusStorage.changedAt, StatusStorage.platform,
        ]
        return .find(filter.read(columns, limit: limit, offset: offset)) { rows in
            .done(
                try rows.compactMap { row in
                    guard let key = try? RegistrationKey(row, at: 0) else { return nil }
                    return RegistrationSummary(
                        key: key, version: try row.unsigned(2), changedAt: Timestamp(rawValue: try row.integer(3)),
                        platform: try row.optionalInteger(4).flatMap { Platform(rawValue: Int32(truncatingIfNeeded: $0)) })
                })
        }
    }

    /// Installations whose key hash begins with `prefix` (hexadecimal digits), oldest first.
    package static func summaries(keyHashPrefix prefix: String = "", limit: Int, offset: Int = 0) -> StoreCommand<[RegistrationSummary]> {
        var filter = RegistrationFilter()
        filter.keyHashPrefix = prefix
        return summaries(filter, limit: limit, offset: offset)
    }

    /// Decrypts the installations that match a filter, oldest first, until `visit` returns false. Blocks, as the store's `scan` does.
    ///
    /// - Throws: `StoreError`, also if `visit` throws.
    package func forEachRecord(
        _ filter: RegistrationFilter = RegistrationFilter(), in store: any Store, _ visit: (RegistrationRecord) throws -> Bool
    ) throws(StoreError) {
        let columns = [
            StatusStorage.keyHash, StatusStorage.installation, StatusStorage.version, StatusStorage.changedAt, StatusStorage.sealed,
            StatusStorage.neverAsked, StatusStorage.unfounded,
        ]
        try store.scan(filter.read(columns)) { row in
            let key = try RegistrationKey(row, at: 0)
            let version = try row.unsigned(2)
            return try visit(
                RegistrationRecord(
                    key: key, version: version, changedAt: Timestamp(rawValue: try row.integer(3)),
                    registration: try row.optionalBytes(4).map {
                        try sealer.open($0, in: StatusStorage.registration, boundTo: Self.binding(key, version))
                    }, isNeverAsked: !row.isNull(5), neverRegistered: !row.isNull(6)))
        }
    }

    /// As ``merge(_:)``, for a record that names its identity.
    ///
    /// - Parameters:
    ///   - record: its key has no mark.
    ///   - identity: the identity with which it is registered.
    ///   - owner: the identity to which the database belongs.
    package func merge(_ record: RegistrationRecord, with identity: PublicKey, in owner: PublicKey) -> StoreCommand<Bool> {
        StoreIdentities.all().then { known in
            let mark = ServerMarks(known: known, identity: owner).mark(of: identity)
            guard mark != nil else { return merge(record) }
            let key = RegistrationKey(keyHash: record.key.keyHash, installationID: record.key.installationID, server: mark)
            let marked = RegistrationRecord(
                key: key, version: record.version, changedAt: record.changedAt, registration: record.registration,
                isNeverAsked: record.isNeverAsked, neverRegistered: record.neverRegistered)
            return StoreIdentities.add([owner, identity], by: sealer).then { merge(marked) }
        }
    }

    /// Stores a record if it is newer than the stored row of its installation. Returns whether it was stored. A registration that can't be parsed is
    /// not.
    package func merge(_ record: RegistrationRecord) -> StoreCommand<Bool> {
        Self.head(of: record.key).then { head in
            if let head, head.version >= record.version { return .done(false) }
            guard let bytes = record.registration else {
                return Self.unregister(
                    record.key, version: record.version, replacing: head, wasRegistered: !record.neverRegistered,
                    isNeverAsked: record.isNeverAsked, at: record.changedAt
                ).map { true }
            }
            guard let registration = parse(bytes) else { return .done(false) }
            let wasAsked = !record.isNeverAsked
            return .change(
                store(
                    registration, bytes: bytes, as: record.key, message: record.message, replacing: head, wasAsked: wasAsked,
                    at: record.changedAt)
                    + (wasAsked ? head.map { [Self.asked($0.id)] } ?? [] : []), true)
        }
    }

    private static let findKeyHashes = Query(
        StatusStorage.registration, [.column(StatusStorage.keyHash)], where: [.between(StatusStorage.keyHash)], isDistinct: true)
    private static let findRegistered = Query(
        StatusStorage.registration, [.column(StatusStorage.keyHash), .minimum(.id)], where: [.present(StatusStorage.platform)],
        order: [.output(1)], group: StatusStorage.keyHash)

    /// At most `limit` registrants whose hash begins with `prefix` (hexadecimal digits).
    package static func keyHashes(prefix: String, limit: Int) -> StoreCommand<[KeyHash]> {
        .find(findKeyHashes.read(RegistrationFilter.range(prefix), limit: limit)) { rows in
            .done(try rows.compactMap { KeyHash(bytes: try $0.bytes(0)) })
        }
    }

    /// The hashes of registered keys, oldest first. Reads all rows.
    package static func registeredKeyHashes(limit: Int) -> StoreCommand<[KeyHash]> {
        .find(findRegistered(limit: limit)) { rows in .done(try rows.compactMap { KeyHash(bytes: try $0.bytes(0)) }) }
    }

    // MARK: Figures

    private static let countByPlatform = Query(
        StatusStorage.registration, [.column(StatusStorage.platform), .count], group: StatusStorage.platform)
    private static let countRegistrants = Query(
        StatusStorage.registration, [.distinctCount(StatusStorage.keyHash)], where: [.present(StatusStorage.platform)])
    private static let countAmong = Query(
        StatusStorage.registration, [.column(StatusStorage.platform), .count], where: [.idAmong, .present(StatusStorage.platform)],
        group: StatusStorage.platform)

    private static let countByWebPushKey = Query(
        StatusStorage.registration, [.column(StatusStorage.webPushKey), .count], where: [.present(StatusStorage.webPushKey)],
        group: StatusStorage.webPushKey)

    /// Reads all registrations: about one second per million.
    package static func statistics() -> StoreCommand<RegistrationStatistics> {
        .read([countByPlatform(), countRegistrants()]) { found in
            let devices = try DeviceFigures(byPlatform: found[0])
            var statistics = RegistrationStatistics()
            statistics.apn = devices.registered[.apn] ?? 0
            statistics.firebase = devices.registered[.firebase] ?? 0
            statistics.webPush = devices.registered[.webPush] ?? 0
            statistics.tombstones = devices.unregistered
            statistics.registrants = Int(try found[1][0].integer(0))
            return .done(statistics)
        }
    }

    private static let countByServer = Query(
        StatusStorage.registration, [.count], where: [.hasPrefix(StatusStorage.installation), .present(StatusStorage.sealed)])

    /// Number of registered installations with each of these identities. Reads all registrations.
    package static func counts(by servers: [ServerMark]) -> StoreCommand<[ServerMark: Int]> {
        .read(servers.map { countByServer(.bytes($0.storedPrefix)) }) { found in
            .done(Dictionary(try zip(servers, found).map { ($0, Int(try $1[0].integer(0))) }) { first, _ in first })
        }
    }

    /// Scans an index: about 20 ms per million.
    ///
    /// - Parameter servers: identities whose registrations are counted. For each, all registrations are read: about one second per million.
    package static func figures(by servers: [ServerMark] = []) -> StoreCommand<RegistrationFigures> {
        counts(by: servers).then { byServer in
            devices().map { RegistrationFigures(devices: $0, byServer: byServer) }
        }
    }

    private static func devices() -> StoreCommand<DeviceFigures> {
        DeliveryStorage.doubtedDevices(of: StatusStorage.protocolNumber).then { doubted in
            .read([countByPlatform(), countAmong(ids: doubted), countByWebPushKey()]) { found in
                var devices = try DeviceFigures(byPlatform: found[0], inDoubt: found[1])
                for row in found[2] { devices.webPushKeys[try row.integer(0)] = Int(try row.integer(1)) }
                return .done(devices)
            }
        }
    }
}
