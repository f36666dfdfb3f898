import Foundation
import GRDB
public import StatusProtocol
public import Waku
public import WakuCrypto

/// Reads and changes of one moment. What it changes is durable when the ``Store/commit(_:)`` that lent it returns.
public struct StoreTransaction {
    let db: Database
    let rows: SealedRows

    // MARK: Registrations

    /// What is stored for an installation; nil when nothing ever was.
    public func state(of key: RegistrationKey) throws -> StoredState? {
        let statement = try db.cachedStatement(
            sql: "SELECT version, changed_at, sealed FROM registration WHERE key_hash = ? AND installation = ?")
        guard let row = try Row.fetchOne(statement, arguments: [Data(key.keyHash.bytes), Data(key.installationID.bytes)]) else {
            return nil
        }
        let version = UInt64(bitPattern: try row.decode(atIndex: 0))
        let (changedAt, sealed) = (try row.decode(Int64.self, atIndex: 1), try row.decode(Data?.self, atIndex: 2))
        guard let stored = try registration(key, version: version, changedAt: changedAt, sealed: sealed) else {
            return .tombstone(version: version)
        }
        return .registered(stored)
    }

    /// The version alone, tombstones included: nothing is opened for it.
    public func version(of key: RegistrationKey) throws -> UInt64? {
        let statement = try db.cachedStatement(sql: "SELECT version FROM registration WHERE key_hash = ? AND installation = ?")
        let version = try Int64.fetchOne(statement, arguments: [Data(key.keyHash.bytes), Data(key.installationID.bytes)])
        return version.map(UInt64.init(bitPattern:))
    }

    /// All that are in force, in the order of their installation ids, until `visit` returns false.
    public func forEachRegistration(of keyHash: KeyHash, _ visit: (StoredRegistration) -> Bool) throws {
        let statement = try db.cachedStatement(
            sql: """
                SELECT installation, version, changed_at, sealed FROM registration WHERE key_hash = ? AND sealed IS NOT NULL
                ORDER BY installation
                """)
        let rows = try Row.fetchCursor(statement, arguments: [Data(keyHash.bytes)])
        while let row = try rows.next() {
            let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(0)))
            let stored = try registration(
                key, version: UInt64(bitPattern: try row.decode(atIndex: 1)), changedAt: try row.decode(atIndex: 2),
                sealed: try row.decode(atIndex: 3))
            if let stored, !visit(stored) { return }
        }
    }

    private func registration(_ key: RegistrationKey, version: UInt64, changedAt: Int64, sealed: Data?) throws -> StoredRegistration? {
        guard let sealed else { return nil }
        return StoredRegistration(
            key: key, registration: try rows.openRegistration(Array(sealed), of: key, version: version),
            storedAt: Timestamp(rawValue: changedAt))
    }

    /// What stands for an installation, without its content.
    public func head(of key: RegistrationKey) throws -> RegistrationHead? {
        let statement = try db.cachedStatement(
            sql: "SELECT id, version, message, sealed IS NOT NULL FROM registration WHERE key_hash = ? AND installation = ?")
        guard let row = try Row.fetchOne(statement, arguments: [Data(key.keyHash.bytes), Data(key.installationID.bytes)]) else {
            return nil
        }
        return RegistrationHead(
            id: try row.decode(atIndex: 0), version: UInt64(bitPattern: try row.decode(atIndex: 1)),
            message: try row.decode(Int64?.self, atIndex: 2).map(MessageMark.init), isRegistered: try row.decode(atIndex: 3))
    }

    /// - Parameters:
    ///   - bytes: the registration as it came. They are what is stored.
    ///   - message: what it came with, if it may come again.
    ///   - head: what ``head(of:)`` found in this transaction: knowing it saves looking again.
    public func store(
        _ registration: PushNotificationRegistration, bytes: [UInt8], as key: RegistrationKey, message: MessageMark? = nil,
        replacing head: RegistrationHead? = nil, at now: Timestamp
    ) throws {
        let version = Int64(bitPattern: registration.version)
        let sealed = Data(rows.seal(bytes, for: key, version: registration.version))
        if let head, head.isRegistered {
            // Its topics stay, and so do the pages of their indexes.
            try db.cachedStatement(
                sql: "UPDATE registration SET version = ?, changed_at = ?, platform = ?, message = ?, sealed = ? WHERE id = ?"
            ).execute(arguments: [version, now.rawValue, registration.platform?.rawValue, message?.rawValue, sealed, head.id])
            return
        }
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO registration
                    (key_hash, installation, version, changed_at, platform, query_topic, published_query_topic, message, sealed)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (key_hash, installation) DO UPDATE SET
                    version = excluded.version, changed_at = excluded.changed_at, platform = excluded.platform,
                    query_topic = excluded.query_topic, published_query_topic = excluded.published_query_topic,
                    message = excluded.message, sealed = excluded.sealed
                """)
        let tags = QueryTopics(of: key.keyHash)
        try statement.execute(arguments: [
            Data(key.keyHash.bytes), Data(key.installationID.bytes), version, now.rawValue, registration.platform?.rawValue,
            Int64(tags.deployed.rawValue), Int64(tags.published.rawValue), message?.rawValue, sealed,
        ])
    }

    /// Leaves only key hash, installation and version, and forgets what was waiting for the device.
    public func unregister(_ key: RegistrationKey, version: UInt64, message: MessageMark? = nil, at now: Timestamp) throws {
        let arguments: [(any DatabaseValueConvertible)?] = [Data(key.keyHash.bytes), Data(key.installationID.bytes)]
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO registration (key_hash, installation, version, changed_at, message) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT (key_hash, installation) DO UPDATE SET
                    version = excluded.version, changed_at = excluded.changed_at, message = excluded.message, platform = NULL,
                    query_topic = NULL, published_query_topic = NULL, sealed = NULL
                """)
        try statement.execute(
            arguments: StatementArguments(arguments + [Int64(bitPattern: version), now.rawValue, message?.rawValue]))
        let waiting = try db.cachedStatement(
            sql: "DELETE FROM outbox WHERE registration = (SELECT id FROM registration WHERE key_hash = ? AND installation = ?)")
        try waiting.execute(arguments: StatementArguments(arguments))
    }

    // MARK: Topics

    /// More registrants than this on one topic are no accident: the rest is not looked for.
    private static let candidateLimit = 16

    /// The registrants who may be asked about on a topic, with the form of the topic string that fits.
    public func queryTopics(withTag tag: TopicTag) throws -> [String] {
        let deployed = try keyHashes("query_topic", tag).map(StatusTopics.query)
        return try deployed + keyHashes("published_query_topic", tag).map(StatusTopics.publishedQuery)
    }

    private func keyHashes(_ column: String, _ tag: TopicTag) throws -> [KeyHash] {
        let statement = try db.cachedStatement(
            sql: "SELECT DISTINCT key_hash FROM registration WHERE \(column) = ? LIMIT \(Self.candidateLimit)")
        return try Data.fetchAll(statement, arguments: [Int64(tag.rawValue)]).compactMap { KeyHash(bytes: Array($0)) }
    }

    /// Roughly how many topics are in use, to make room for.
    public func queryTopicEstimate() throws -> Int {
        2 * min(try Int.fetchOne(db, sql: "SELECT max(id) FROM registration") ?? 0, 5_000_000)
    }

    /// Every topic on which queries may come. Calls `visit` for each, perhaps more than once.
    public func forEachQueryTopic(_ visit: (TopicTag) -> Void) throws {
        for column in ["query_topic", "published_query_topic"] {
            let tags = try Int64.fetchCursor(
                db, sql: "SELECT \(column) FROM registration INDEXED BY registration_\(column) WHERE \(column) IS NOT NULL")
            while let tag = try tags.next() {
                visit(TopicTag(rawValue: UInt32(truncatingIfNeeded: tag)))
            }
        }
    }

    /// The key of a topic string, when it was kept.
    public func topicKey(_ topicString: String) throws -> SymmetricKey? {
        let statement = try db.cachedStatement(sql: "SELECT sealed FROM topic_key WHERE id = ?")
        guard let sealed = try Data.fetchOne(statement, arguments: [Self.topicKeyID(topicString)]) else { return nil }
        return rows.openTopicKey(Array(sealed), of: topicString)
    }

    public func keep(_ key: SymmetricKey, of topicString: String) throws {
        let statement = try db.cachedStatement(sql: "INSERT OR REPLACE INTO topic_key (id, sealed) VALUES (?, ?)")
        try statement.execute(arguments: [Self.topicKeyID(topicString), Data(rows.seal(key, of: topicString))])
    }

    static func topicKeyID(_ topicString: String) -> Int64 {
        Keccak256.hash(Array(topicString.utf8)).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }

    // MARK: Answers

    /// How the message of this id was answered before, a byte for each part.
    public func answer(to message: [UInt8]) throws -> [UInt8]? {
        let statement = try db.cachedStatement(sql: "SELECT codes FROM answer WHERE message = ?")
        return try Data.fetchOne(statement, arguments: [Data(message)]).map(Array.init)
    }

    public func remember(answer codes: [UInt8], to message: [UInt8], at now: Timestamp) throws {
        let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO answer (message, codes, at) VALUES (?, ?, ?)")
        try statement.execute(arguments: [Data(message), Data(codes), now.rawValue])
    }

    // MARK: Properties

    public func property(_ name: String) throws -> [UInt8]? {
        let statement = try db.cachedStatement(sql: "SELECT value FROM property WHERE name = ?")
        return try Data.fetchOne(statement, arguments: [name]).map(Array.init)
    }

    public func setProperty(_ name: String, _ value: [UInt8]) throws {
        let statement = try db.cachedStatement(sql: "INSERT OR REPLACE INTO property (name, value) VALUES (?, ?)")
        try statement.execute(arguments: [name, Data(value)])
    }

    public func removeProperty(_ name: String) throws {
        let statement = try db.cachedStatement(sql: "DELETE FROM property WHERE name = ?")
        try statement.execute(arguments: [name])
    }
}

/// A row of a registration or tombstone, without its content.
public struct RegistrationHead: Sendable {
    let id: Int64
    public let version: UInt64
    /// What it came with.
    public let message: MessageMark?
    /// Not a tombstone.
    public let isRegistered: Bool
}

/// The first 8 bytes of a message's hash: enough to know that message again.
public struct MessageMark: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int64
    public init(rawValue: Int64) { self.rawValue = rawValue }

    public init(of hash: MessageHash) {
        rawValue = hash.bytes.prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }
}

extension Row {
    /// - Throws: when there is something else: a subscript would end the process, and what stands in a damaged page is anything.
    func bytes(_ index: Int) throws -> [UInt8] {
        Array(try decode(Data.self, atIndex: index))
    }
}

/// Where queries for a registrant come in.
public struct QueryTopics: Hashable, Sendable {
    public let deployed: TopicTag
    public let published: TopicTag

    public init(of keyHash: KeyHash) {
        deployed = TopicTag(of: StatusTopics.query(keyHash))
        published = TopicTag(of: StatusTopics.publishedQuery(keyHash))
    }
}
