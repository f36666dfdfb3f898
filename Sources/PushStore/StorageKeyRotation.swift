import Foundation
import GRDB
import StatusProtocol
public import WakuCrypto

/// Seals all rows under a new key, while no daemon runs.
///
/// The new key is derived from the identity's storage key with a fresh random salt, which replaces the salt before it in the database.
///
/// - It protects what is written from now on against whoever got hold of the rows' old key (from a memory image, say), and what is in the
///   database against whoever has that key and takes a copy from now on. It starts the count of messages under one AES-GCM key anew.
/// - It also rewrites the whole file: pages that were free and may have held ended registrations are gone.
/// - It does not protect against whoever has the identity itself and the database: the identity opens everything. Nor does it change copies
///   and backups made before, or blocks that a file system or an SSD kept.
///
/// One transaction changes every row, the salt and the check of the key: a process that is killed leaves either all old or all new. After
/// it, the file is rewritten, so that no page and no log has what the old key opens; killed before the end of that, the database says so
/// (``StoreInspection/isRotationUnfinished``), and another rotation mends it. Needs free disk of some twice the database's size meanwhile.
public struct StorageKeyRotation {
    private static let unfinishedProperty = "storage key rotation unfinished"
    private static let page = 500

    private let db: Database
    private let old: SealedRows
    private let new: SealedRows

    /// - Parameters:
    ///   - storageKey: of the identity.
    ///   - folder: locked by the caller.
    /// - Throws: ``StoreError``; `damaged` when a row can't be opened, and then nothing is changed.
    /// - Returns: how many rows were sealed anew.
    @discardableResult
    public static func run(_ storageKey: SymmetricKey, in folder: DataFolder) throws(StoreError) -> Int {
        let store = try Store(folder: folder.path, storageKey: storageKey)
        do {
            let count = try store.pool.writeWithoutTransaction { db in
                // What is replaced is overwritten, the salt too.
                try db.execute(sql: "PRAGMA secure_delete = ON")
                let salt = randomBytes(SymmetricKey.byteCount)
                let rotation = StorageKeyRotation(db: db, old: store.rows, new: SealedRows(storageKey: storageKey, salt: salt))
                var count = 0
                try db.inTransaction(.immediate) {
                    count = try rotation.sealAll()
                    try rotation.setKey(salt)
                    return .commit
                }
                try db.execute(sql: "VACUUM")
                try db.checkpoint(.truncate)
                try StoreTransaction(db: db, rows: store.rows).removeProperty(unfinishedProperty)
                return count
            }
            try store.close()
            return count
        } catch {
            throw StoreError(explaining: error, in: folder.path)
        }
    }

    static func isUnfinished(in db: Database) throws -> Bool {
        try Int.fetchOne(db, sql: "SELECT 1 FROM property WHERE name = ?", arguments: [unfinishedProperty]) != nil
    }

    private func setKey(_ salt: [UInt8]) throws {
        let transaction = StoreTransaction(db: db, rows: new)
        try transaction.setProperty(SealedRows.saltProperty, salt)
        try transaction.setProperty(SealedRows.checkProperty, new.sealCheck())
        try transaction.setProperty(Self.unfinishedProperty, [1])
    }

    private func sealAll() throws -> Int {
        let registrations = try forEach("registration", "sealed, key_hash, installation, version") { row in
            guard let keyHash = KeyHash(bytes: try row.bytes(2)) else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
            let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(3)))
            let version = UInt64(bitPattern: try row.decode(atIndex: 4))
            return new.seal(try old.open(try row.bytes(1), of: key, version: version), for: key, version: version)
        }
        let notifications = try forEach("outbox", "sealed, delivery") { row in
            guard let delivery = DeliveryID(bytes: try row.bytes(2)) else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
            return try old.resealed(try row.bytes(1), of: delivery, by: new)
        }
        return try registrations + notifications + sealTopicKeys()
    }

    /// In pages, by the row's id: what is read is not changed at the same time.
    private func forEach(_ table: String, _ columns: String, _ seal: (Row) throws -> [UInt8]) throws -> Int {
        let select = try db.makeStatement(
            sql: "SELECT id, \(columns) FROM \(table) WHERE id > ? AND sealed IS NOT NULL ORDER BY id LIMIT \(Self.page)")
        let update = try db.makeStatement(sql: "UPDATE \(table) SET sealed = ? WHERE id = ?")
        var (last, count) = (Int64.min, 0)
        while true {
            let page = try Row.fetchAll(select, arguments: [last])
            for row in page {
                last = try row.decode(atIndex: 0)
                try update.execute(arguments: [Data(try seal(row)), last])
            }
            count += page.count
            if page.isEmpty { return count }
        }
    }

    /// They are bound to their topic strings, which those who are registered tell. The others are derived again if they are ever needed.
    private func sealTopicKeys() throws -> Int {
        try db.execute(sql: "CREATE TEMP TABLE kept_topic_key (id INTEGER PRIMARY KEY, sealed BLOB NOT NULL)")
        let keep = try db.makeStatement(sql: "INSERT OR REPLACE INTO kept_topic_key (id, sealed) VALUES (?, ?)")
        let before = StoreTransaction(db: db, rows: old)
        let registrants = try Data.fetchCursor(db, sql: "SELECT DISTINCT key_hash FROM registration WHERE sealed IS NOT NULL")
        var count = 0
        while let bytes = try registrants.next() {
            guard let keyHash = KeyHash(bytes: Array(bytes)) else { continue }
            for topic in [StatusTopics.query(keyHash), StatusTopics.publishedQuery(keyHash)] {
                guard let key = try before.topicKey(topic) else { continue }
                try keep.execute(arguments: [StoreTransaction.topicKeyID(topic), Data(new.seal(key, of: topic))])
                count += 1
            }
        }
        try db.execute(
            sql: """
                DELETE FROM topic_key;
                INSERT INTO topic_key (id, sealed) SELECT id, sealed FROM kept_topic_key;
                DROP TABLE kept_topic_key;
                """)
        return count
    }
}
