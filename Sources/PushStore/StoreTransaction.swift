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
        let statement = try HotStatement("SELECT version, changed_at, sealed FROM registration WHERE key_hash = ? AND installation = ?", db)
        statement.bind(1, key.keyHash.bytes)
        statement.bind(2, key.installationID.bytes)
        guard try statement.next() else { return nil }
        let version = UInt64(bitPattern: try statement.integer(0))
        guard !statement.isNull(2) else { return .tombstone(version: version) }
        return .registered(try registration(key, version: version, changedAt: statement.integer(1), sealed: statement.bytes(2)))
    }

    /// Installations that one call looks at, at most: far more than an answer holds.
    private static let installationLimit = 20_000

    /// All registrations of these registrants that are in force, the most recently changed first, until `visit` returns false.
    public func forEachRegistration(of keyHashes: [KeyHash], _ visit: (StoredRegistration) -> Bool) throws {
        // First which there are: what they hold may be large, and not all of it may be wanted.
        var found: [(id: Int64, key: RegistrationKey, version: UInt64, changedAt: Int64)] = []
        for keyHash in keyHashes where found.count < Self.installationLimit {
            let statement = try HotStatement(
                "SELECT id, installation, version, changed_at FROM registration WHERE key_hash = ? AND sealed IS NOT NULL", db)
            statement.bind(1, keyHash.bytes)
            while try statement.next() {
                let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try statement.bytes(1)))
                found.append(
                    (
                        try statement.integer(0), key, UInt64(bitPattern: try statement.integer(2)), try statement.integer(3)
                    ))
            }
        }
        if found.count > 1 { found.sort { ($0.changedAt, $0.id) > ($1.changedAt, $1.id) } }
        for (id, key, version, changedAt) in found {
            let statement = try HotStatement("SELECT sealed FROM registration WHERE id = ?", db)
            statement.bind(1, id)
            guard try statement.next() else { continue }
            let stored = try registration(key, version: version, changedAt: changedAt, sealed: statement.bytes(0))
            if !visit(stored) { return }
        }
    }

    /// All that are in force, the most recently changed first, until `visit` returns false.
    public func forEachRegistration(of keyHash: KeyHash, _ visit: (StoredRegistration) -> Bool) throws {
        try forEachRegistration(of: [keyHash], visit)
    }

    private func registration(_ key: RegistrationKey, version: UInt64, changedAt: Int64, sealed: [UInt8]) throws -> StoredRegistration {
        StoredRegistration(
            key: key, registration: try rows.openRegistration(sealed, of: key, version: version), storedAt: Timestamp(rawValue: changedAt))
    }

    /// What stands for an installation, without its content.
    public func head(of key: RegistrationKey) throws -> RegistrationHead? {
        let statement = try HotStatement(
            "SELECT id, version, message, sealed IS NOT NULL, unfounded FROM registration WHERE key_hash = ? AND installation = ?", db)
        statement.bind(1, key.keyHash.bytes)
        statement.bind(2, key.installationID.bytes)
        guard try statement.next() else { return nil }
        return RegistrationHead(
            id: try statement.integer(0), version: UInt64(bitPattern: try statement.integer(1)),
            message: statement.isNull(2) ? nil : MessageMark(rawValue: try statement.integer(2)),
            isRegistered: try statement.integer(3) != 0, isUnfounded: !statement.isNull(4))
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
        let sealed = rows.seal(bytes, for: key, version: registration.version)
        let platform = registration.platform.map { Int64($0.rawValue) }
        if let head, head.isRegistered {
            // Its topics stay, and so do the pages of their indexes.
            let statement = try HotStatement(
                "UPDATE registration SET version = ?, changed_at = ?, platform = ?, message = ?, sealed = ? WHERE id = ?", db)
            statement.bind(1, version)
            statement.bind(2, now.rawValue)
            statement.bind(3, platform)
            statement.bind(4, message?.rawValue)
            statement.bind(5, sealed)
            statement.bind(6, head.id)
            return try statement.run()
        }
        let statement = try HotStatement(
            """
            INSERT INTO registration
                (key_hash, installation, version, changed_at, platform, query_topic, published_query_topic, message, sealed)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (key_hash, installation) DO UPDATE SET
                version = excluded.version, changed_at = excluded.changed_at, platform = excluded.platform,
                query_topic = excluded.query_topic, published_query_topic = excluded.published_query_topic,
                message = excluded.message, sealed = excluded.sealed, unfounded = NULL
            """, db)
        let tags = QueryTopics(of: key.keyHash)
        statement.bind(1, key.keyHash.bytes)
        statement.bind(2, key.installationID.bytes)
        statement.bind(3, version)
        statement.bind(4, now.rawValue)
        statement.bind(5, platform)
        statement.bind(6, Int64(tags.deployed.rawValue))
        statement.bind(7, Int64(tags.published.rawValue))
        statement.bind(8, message?.rawValue)
        statement.bind(9, sealed)
        try statement.run()
    }

    /// Leaves only key hash, installation and version, and forgets what was waiting for the device, doubts about its token, and with a
    /// registrant's last installation the keys of its topics. When it never was registered, the row is
    /// marked as unfounded: ``forgetUnfounded(before:limit:)`` removes it.
    ///
    /// - Parameter wasRegistered: it was, elsewhere; of what is stored here it is known.
    public func unregister(
        _ key: RegistrationKey, version: UInt64, message: MessageMark? = nil, wasRegistered: Bool = false, at now: Timestamp
    ) throws {
        let arguments: [(any DatabaseValueConvertible)?] = [Data(key.keyHash.bytes), Data(key.installationID.bytes)]
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO registration (key_hash, installation, version, changed_at, message, unfounded) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (key_hash, installation) DO UPDATE SET
                    version = excluded.version, changed_at = excluded.changed_at, message = excluded.message, platform = NULL,
                    query_topic = NULL, published_query_topic = NULL, sealed = NULL
                """)
        try statement.execute(
            arguments: StatementArguments(
                arguments + [Int64(bitPattern: version), now.rawValue, message?.rawValue, wasRegistered ? nil : 1]))
        let waiting = try db.cachedStatement(
            sql: "DELETE FROM outbox WHERE registration = (SELECT id FROM registration WHERE key_hash = ? AND installation = ?)")
        try waiting.execute(arguments: StatementArguments(arguments))
        let doubt = try db.cachedStatement(
            sql: "DELETE FROM doubt WHERE registration = (SELECT id FROM registration WHERE key_hash = ? AND installation = ?)")
        try doubt.execute(arguments: StatementArguments(arguments))
        guard try installationCount(of: key.keyHash) == 0 else { return }
        let topicKeys = try db.cachedStatement(sql: "DELETE FROM topic_key WHERE id IN (?, ?)")
        try topicKeys.execute(arguments: [
            Self.topicKeyID(StatusTopics.query(key.keyHash)), Self.topicKeyID(StatusTopics.publishedQuery(key.keyHash)),
        ])
    }

    /// How many of a registrant's installations are in force.
    public func installationCount(of keyHash: KeyHash) throws -> Int {
        let statement = try HotStatement("SELECT count(*) FROM registration WHERE key_hash = ? AND sealed IS NOT NULL", db)
        statement.bind(1, keyHash.bytes)
        return try statement.next() ? Int(try statement.integer(0)) : 0
    }

    /// How many rows a registrant takes up as far as limits count them: installations in force, and unfounded tombstones.
    public func countedInstallations(of keyHash: KeyHash) throws -> Int {
        let statement = try HotStatement(
            "SELECT count(*) FROM registration WHERE key_hash = ? AND (sealed IS NOT NULL OR unfounded = 1)", db)
        statement.bind(1, keyHash.bytes)
        return try statement.next() ? Int(try statement.integer(0)) : 0
    }

    /// How many registrations are in force. Looks at all of them in an index: some 20 ms for a million.
    public func registrationCount() throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM registration WHERE query_topic IS NOT NULL") ?? 0
    }

    /// How many rows limits count: registrations in force, and unfounded tombstones. Looks at all of them in an index: some 20 ms for a million.
    public func countedRegistrations() throws -> Int {
        try Int.fetchOne(
            db,
            sql: """
                SELECT (SELECT count(*) FROM registration WHERE query_topic IS NOT NULL)
                    + (SELECT count(*) FROM registration WHERE unfounded = 1)
                """) ?? 0
    }

    /// Forgets tombstones of installations that were never registered, the oldest first.
    ///
    /// - Returns: How many were forgotten; when it is `limit`, there may be more.
    @discardableResult
    public func forgetUnfounded(before cutoff: Timestamp, limit: Int) throws -> Int {
        try db.execute(
            sql: """
                DELETE FROM registration WHERE id IN (
                    SELECT id FROM registration WHERE unfounded = 1 AND changed_at < ? ORDER BY changed_at LIMIT ?)
                """, arguments: [cutoff.rawValue, limit])
        return db.changesCount
    }

    /// Those in force that were neither registered nor renewed since then, the oldest rows first. Looks at all rows.
    public func registrations(unchangedSince time: Timestamp, limit: Int = 100_000) throws -> [RegistrationKey] {
        let statement = try HotStatement(
            "SELECT key_hash, installation FROM registration WHERE changed_at < ? AND sealed IS NOT NULL LIMIT ?", db)
        statement.bind(1, time.rawValue)
        statement.bind(2, Int64(limit))
        var found: [RegistrationKey] = []
        while try statement.next() {
            guard let keyHash = KeyHash(bytes: try statement.bytes(0)) else { continue }
            found.append(RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try statement.bytes(1))))
        }
        return found
    }

    /// Ends a registration under the version that it has, unless it was renewed meanwhile; then false. What it holds is not looked at: a row
    /// that can't be opened ends as well.
    public func expire(_ key: RegistrationKey, unchangedSince time: Timestamp, at now: Timestamp) throws -> Bool {
        let statement = try HotStatement(
            "SELECT version FROM registration WHERE key_hash = ? AND installation = ? AND sealed IS NOT NULL AND changed_at < ?", db)
        statement.bind(1, key.keyHash.bytes)
        statement.bind(2, key.installationID.bytes)
        statement.bind(3, time.rawValue)
        guard try statement.next() else { return false }
        try unregister(key, version: UInt64(bitPattern: statement.integer(0)), at: now)
        return true
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

    /// Registrants in force whose query topic, in its deployed form, has no key yet: the newest rows first.
    ///
    /// - Parameters:
    ///   - id: rows before this one are looked at; nil: all.
    ///   - limit: rows to look at.
    /// - Returns: Registrants, each once, and where to go on; nil at the end.
    public func registrantsWithoutTopicKey(before id: Int64?, limit: Int) throws -> (registrants: [KeyHash], next: Int64?) {
        // A key's id begins with the 4 bytes of its topic.
        let statement = try HotStatement(
            """
            SELECT id, key_hash, NOT EXISTS (
                SELECT 1 FROM topic_key WHERE topic_key.id BETWEEN query_topic << 32 AND (query_topic << 32) + 4294967295)
            FROM registration WHERE id < ? AND query_topic IS NOT NULL ORDER BY id DESC LIMIT ?
            """, db)
        statement.bind(1, id ?? .max)
        statement.bind(2, Int64(limit))
        var (registrants, seen) = ([KeyHash](), Set<KeyHash>())
        var (last, count) = (Int64.max, 0)
        while try statement.next() {
            last = try statement.integer(0)
            count += 1
            guard try statement.integer(2) != 0, let keyHash = KeyHash(bytes: try statement.bytes(1)) else { continue }
            if seen.insert(keyHash).inserted { registrants.append(keyHash) }
        }
        return (registrants, count < limit ? nil : last)
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
        let statement = try HotStatement("SELECT codes FROM answer WHERE message = ?", db)
        statement.bind(1, message)
        return try statement.next() ? try statement.bytes(0) : nil
    }

    public func remember(answer codes: [UInt8], to message: [UInt8], at now: Timestamp) throws {
        let statement = try HotStatement("INSERT OR IGNORE INTO answer (message, codes, at) VALUES (?, ?, ?)", db)
        statement.bind(1, message)
        statement.bind(2, codes)
        statement.bind(3, now.rawValue)
        try statement.run()
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
    /// A tombstone of an installation that was never registered.
    public let isUnfounded: Bool
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
