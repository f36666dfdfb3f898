import Foundation
import GRDB
import StoreSQLite
import Storage
import TestSupport
import WakuCrypto

/// A database as created by versions of this program from before tables belonged to parts.
struct LegacyDatabase {
    static let versionCount = 5
    let folder: TemporaryFolder
    let storageKey = SymmetricKey.random()

    var path: String { DataFolder.databasePath(in: folder.path) }
    var sealer: Sealer { Sealer(storageKey: storageKey, salt: nil) }

    /// - Parameter version: the version of the schema: the number of applied migrations.
    init(version: Int) throws {
        folder = try TemporaryFolder()
        let pool = try DatabasePool(path: path)
        try Self.migrator.migrate(pool, upTo: Self.migrator.migrations[version - 1])
        try pool.write { try Self.execute("INSERT INTO property VALUES ('storage key check', ?)", [.bytes(sealer.sealCheck())], $0) }
        try pool.close()
    }

    /// Changes rows by SQL on a separate connection.
    func execute(_ statements: [(sql: String, arguments: [Value])]) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            for (sql, arguments) in statements { try Self.execute(sql, arguments, db) }
        }
        try queue.close()
    }

    private static func execute(_ sql: String, _ arguments: [Value], _ db: Database) throws {
        try db.execute(
            sql: sql,
            arguments: StatementArguments(
                arguments.map { value -> (any DatabaseValueConvertible)? in
                    switch value {
                    case .null: nil
                    case .integer(let integer): integer
                    case .text(let text): text
                    case .bytes(let bytes): Data(bytes)
                    }
                }))
    }

    // MARK: The schema

    /// Must never change.
    private static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 registrations, outbox, answers") { db in
            try db.execute(
                sql: """
                    -- One row for each installation ever registered or unregistered. A tombstone has neither seal, platform nor topics.
                    CREATE TABLE registration (
                        id INTEGER PRIMARY KEY,
                        key_hash BLOB NOT NULL,
                        installation BLOB NOT NULL,
                        version INTEGER NOT NULL,
                        changed_at INTEGER NOT NULL,            -- Unix ns
                        platform INTEGER,                       -- 1 APN, 2 Firebase
                        query_topic INTEGER,                    -- first 4 bytes of Keccak-256 of the topic string
                        published_query_topic INTEGER,
                        sealed BLOB,                            -- PushNotificationRegistration as it came, AES-256-GCM
                        UNIQUE (key_hash, installation)
                    );
                    CREATE INDEX registration_query_topic ON registration (query_topic) WHERE query_topic IS NOT NULL;
                    CREATE INDEX registration_published_query_topic ON registration (published_query_topic)
                        WHERE published_query_topic IS NOT NULL;

                    -- Notifications that were accepted and not yet taken by gorush.
                    CREATE TABLE outbox (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used twice
                        delivery BLOB NOT NULL UNIQUE,          -- DeliveryID
                        registration INTEGER NOT NULL,          -- registration.id
                        expires_at INTEGER NOT NULL,            -- Unix ns
                        sealed BLOB NOT NULL                    -- PushNotification, AES-256-GCM
                    );
                    CREATE INDEX outbox_registration ON outbox (registration);

                    -- Deliveries that gorush took. Rows are added in the order of time, and pruned in it.
                    CREATE TABLE accepted (
                        id INTEGER PRIMARY KEY,
                        delivery BLOB NOT NULL UNIQUE,
                        at INTEGER NOT NULL
                    );

                    -- Answers that were given, so that the same message gets the same answer.
                    CREATE TABLE answer (
                        id INTEGER PRIMARY KEY,
                        message BLOB NOT NULL UNIQUE,           -- 32 bytes that name the message
                        codes BLOB NOT NULL,                    -- one byte for each part of the answer
                        at INTEGER NOT NULL
                    );

                    CREATE TABLE property (
                        name TEXT PRIMARY KEY NOT NULL,
                        value BLOB NOT NULL
                    ) WITHOUT ROWID;
                    """)
        }
        migrator.registerMigration("2 tokens") { db in
            try db.execute(
                sql: """
                    -- What a failure that gorush tells of later is about. All of it is null for deliveries from before.
                    ALTER TABLE accepted ADD COLUMN registration INTEGER;   -- registration.id
                    ALTER TABLE accepted ADD COLUMN version INTEGER;        -- of the registration whose token was posted
                    ALTER TABLE accepted ADD COLUMN posted_as BLOB;         -- the delivery whose id it was posted under, if not its own
                    ALTER TABLE accepted ADD COLUMN has_failed INTEGER;     -- 1 once a failure was held against the token
                    CREATE INDEX accepted_posted_as ON accepted (posted_as) WHERE posted_as IS NOT NULL;

                    -- Registrations whose tokens are in doubt: TokenDoubt.
                    CREATE TABLE doubt (
                        registration INTEGER PRIMARY KEY,       -- registration.id
                        version INTEGER NOT NULL,
                        failures INTEGER NOT NULL,
                        first_failure INTEGER NOT NULL,         -- Unix ns
                        last_failure INTEGER NOT NULL,
                        unfailed_since INTEGER
                    );
                    """)
        }
        migrator.registerMigration("3 topic keys, messages of registrations") { db in
            try db.execute(
                sql: """
                    -- The message that a registration came with: first 8 bytes of its hash. It may come again.
                    ALTER TABLE registration ADD COLUMN message INTEGER;

                    -- Symmetric keys of query topics. A row is as good as the derivation that it saves.
                    CREATE TABLE topic_key (
                        id INTEGER PRIMARY KEY,                 -- first 8 bytes of Keccak-256 of the topic string
                        sealed BLOB NOT NULL                    -- 32 bytes, AES-256-GCM
                    );
                    """)
        }
        migrator.registerMigration("4 unfounded tombstones") { db in
            try db.execute(
                sql: """
                    -- 1 for the tombstone of an installation that was never registered here: it is forgotten after a while.
                    ALTER TABLE registration ADD COLUMN unfounded INTEGER;
                    CREATE INDEX registration_unfounded ON registration (changed_at) WHERE unfounded = 1;
                    """)
        }
        migrator.registerMigration("5 handled messages") { db in
            try db.execute(
                sql: """
                    -- Messages that were handled lately, and need no second look when the relay's store tells of them again.
                    CREATE TABLE handled (
                        id INTEGER PRIMARY KEY,
                        at INTEGER NOT NULL,                    -- Unix ns
                        hashes BLOB NOT NULL                    -- 32 bytes each
                    );
                    """)
        }
        return migrator
    }()
}
