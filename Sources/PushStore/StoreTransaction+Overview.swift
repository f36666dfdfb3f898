import Foundation
import GRDB
public import StatusProtocol
public import Waku
import WakuCrypto

/// What can be told of a registration without opening it.
public struct RegistrationSummary: Sendable {
    public let key: RegistrationKey
    public let version: UInt64
    public let changedAt: Timestamp
    /// nil: a tombstone.
    public let platform: Platform?

    public init(key: RegistrationKey, version: UInt64, changedAt: Timestamp, platform: Platform?) {
        self.key = key
        self.version = version
        self.changedAt = changedAt
        self.platform = platform
    }
}

/// A registration with its content, or a tombstone.
public struct RegistrationRecord: Sendable {
    public let key: RegistrationKey
    public let version: UInt64
    public let changedAt: Timestamp
    /// The registration as it came; nil: a tombstone.
    public let registration: [UInt8]?

    public init(key: RegistrationKey, version: UInt64, changedAt: Timestamp, registration: [UInt8]?) {
        self.key = key
        self.version = version
        self.changedAt = changedAt
        self.registration = registration
    }
}

/// Which installations are meant: all that meet every condition.
public struct RegistrationFilter: Sendable {
    /// Hexadecimal digits that the key hash begins with.
    public var keyHashPrefix = ""
    /// What the installation id begins with.
    public var installationPrefix: [UInt8] = []
    public var platform: Platform?
    /// false: tombstones.
    public var isRegistered: Bool?
    public var changedBefore: Timestamp?
    public var changedSince: Timestamp?

    public init() {}

    var condition: (sql: String, arguments: StatementArguments) {
        var parts: [String] = []
        var arguments = StatementArguments()
        if !keyHashPrefix.isEmpty {
            parts.append("key_hash BETWEEN :low AND :high")
            arguments = arguments &+ StoreTransaction.range(keyHashPrefix)
        }
        if !installationPrefix.isEmpty {
            parts.append("substr(installation, 1, :length) = :beginning")
            arguments = arguments &+ ["length": installationPrefix.count, "beginning": Data(installationPrefix)]
        }
        if let platform {
            parts.append("platform = :platform")
            arguments = arguments &+ ["platform": platform.rawValue]
        }
        if let isRegistered { parts.append(isRegistered ? "sealed IS NOT NULL" : "sealed IS NULL") }
        if let changedBefore {
            parts.append("changed_at < :before")
            arguments = arguments &+ ["before": changedBefore.rawValue]
        }
        if let changedSince {
            parts.append("changed_at >= :since")
            arguments = arguments &+ ["since": changedSince.rawValue]
        }
        return (parts.isEmpty ? "" : "WHERE " + parts.joined(separator: " AND "), arguments)
    }
}

public struct RegistrationStatistics: Hashable, Sendable {
    public var apn = 0
    public var firebase = 0
    public var tombstones = 0
    public var registrants = 0

    public init() {}
}

/// What can be told of a waiting notification without opening it.
public struct OutboxSummary: Sendable {
    public let id: Int64
    public let key: RegistrationKey
    public let expires: Timestamp
}

extension StoreTransaction {
    /// Those that a filter lets through, oldest first.
    public func summaries(_ filter: RegistrationFilter, limit: Int, offset: Int = 0) throws -> [RegistrationSummary] {
        let (condition, arguments) = filter.condition
        var summaries: [RegistrationSummary] = []
        let rows = try Row.fetchCursor(
            db,
            sql:
                "SELECT key_hash, installation, version, changed_at, platform FROM registration \(condition) ORDER BY id LIMIT :limit OFFSET :offset",
            arguments: arguments &+ ["limit": limit, "offset": offset])
        while let row = try rows.next() {
            guard let keyHash = KeyHash(bytes: try row.bytes(0)) else { continue }
            let platform = try row.decode(Int32?.self, atIndex: 4).flatMap(Platform.init)
            summaries.append(
                RegistrationSummary(
                    key: RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(1))),
                    version: UInt64(bitPattern: try row.decode(atIndex: 2)), changedAt: Timestamp(rawValue: try row.decode(atIndex: 3)),
                    platform: platform))
        }
        return summaries
    }

    /// Those whose key hash begins with `prefix` (hexadecimal digits), oldest first.
    public func summaries(keyHashPrefix prefix: String = "", limit: Int, offset: Int = 0) throws -> [RegistrationSummary] {
        var filter = RegistrationFilter()
        filter.keyHashPrefix = prefix
        return try summaries(filter, limit: limit, offset: offset)
    }

    /// Those that a filter lets through, opened, oldest first, until `visit` returns false.
    public func forEachRecord(_ filter: RegistrationFilter = RegistrationFilter(), _ visit: (RegistrationRecord) throws -> Bool) throws {
        let (condition, arguments) = filter.condition
        let found = try Row.fetchCursor(
            db, sql: "SELECT key_hash, installation, version, changed_at, sealed FROM registration \(condition) ORDER BY id",
            arguments: arguments)
        while let row = try found.next() {
            guard let keyHash = KeyHash(bytes: try row.bytes(0)) else { continue }
            let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(1)))
            let version = UInt64(bitPattern: try row.decode(atIndex: 2))
            let registration = try row.decode(Data?.self, atIndex: 4).map { try rows.open(Array($0), of: key, version: version) }
            let record = RegistrationRecord(
                key: key, version: version, changedAt: Timestamp(rawValue: try row.decode(atIndex: 3)), registration: registration)
            guard try visit(record) else { return }
        }
    }

    /// Stores what is newer than what stands for its installation. Returns whether it was.
    public func merge(_ record: RegistrationRecord) throws -> Bool {
        let head = try head(of: record.key)
        if let head, head.version >= record.version { return false }
        if let bytes = record.registration {
            let registration = try PushNotificationRegistration(parsing: bytes)
            try store(registration, bytes: bytes, as: record.key, replacing: head, at: record.changedAt)
        } else {
            try unregister(record.key, version: record.version, wasRegistered: true, at: record.changedAt)
        }
        return true
    }

    /// The registrants whose hash begins with `prefix` (hexadecimal digits); no more than `limit`.
    public func keyHashes(prefix: String, limit: Int) throws -> [KeyHash] {
        try Data.fetchAll(
            db, sql: "SELECT DISTINCT key_hash FROM registration WHERE key_hash BETWEEN :low AND :high LIMIT :limit",
            arguments: Self.range(prefix) &+ ["limit": limit]
        ).compactMap { KeyHash(bytes: Array($0)) }
    }

    /// The first and the last hash that begin with these digits.
    static func range(_ prefix: String) -> StatementArguments {
        let digits = prefix.prefix(2 * KeyHash.byteCount)
        let low = digits + String(repeating: "0", count: 2 * KeyHash.byteCount - digits.count)
        let high = digits + String(repeating: "f", count: 2 * KeyHash.byteCount - digits.count)
        return ["low": Data(bytes(hex: low) ?? []), "high": Data(bytes(hex: high) ?? [])]
    }

    /// Of those who are registered, oldest first.
    public func registeredKeyHashes(limit: Int) throws -> [KeyHash] {
        try Data.fetchAll(
            db, sql: "SELECT key_hash FROM registration WHERE platform IS NOT NULL GROUP BY key_hash ORDER BY min(id) LIMIT ?",
            arguments: [limit]
        ).compactMap { KeyHash(bytes: Array($0)) }
    }

    public func statistics() throws -> RegistrationStatistics {
        var statistics = RegistrationStatistics()
        for row in try Row.fetchAll(db, sql: "SELECT platform, count(*) FROM registration GROUP BY platform") {
            switch (row[0] as Int32?).flatMap(Platform.init) {
            case .apn: statistics.apn = row[1]
            case .firebase: statistics.firebase = row[1]
            case nil: statistics.tombstones = row[1]
            }
        }
        statistics.registrants =
            try Int.fetchOne(db, sql: "SELECT count(DISTINCT key_hash) FROM registration WHERE platform IS NOT NULL") ?? 0
        return statistics
    }

    public func outboxSummaries(limit: Int) throws -> [OutboxSummary] {
        var summaries: [OutboxSummary] = []
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT outbox.id, key_hash, installation, expires_at
                FROM outbox JOIN registration ON registration.id = outbox.registration ORDER BY outbox.id LIMIT ?
                """, arguments: [limit])
        while let row = try rows.next() {
            guard let keyHash = KeyHash(bytes: try row.bytes(1)) else { continue }
            let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(2)))
            let expires = Timestamp(rawValue: try row.decode(atIndex: 3))
            summaries.append(OutboxSummary(id: try row.decode(atIndex: 0), key: key, expires: expires))
        }
        return summaries
    }

    /// How SQLite keeps what is committed: `synchronous` 2 is FULL.
    package func pragmas() throws -> (synchronous: Int, journal: String) {
        (try Int.fetchOne(db, sql: "PRAGMA synchronous") ?? -1, try String.fetchOne(db, sql: "PRAGMA journal_mode") ?? "")
    }
}
