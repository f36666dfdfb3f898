import GRDB

/// Migrations of databases that were created before tables belonged to parts. After the last one, ``Schema`` takes over.
enum LegacySchema {
    /// Upgrades such a database to the point from which the parts' own migrations continue.
    static func upgrade(_ pool: DatabasePool) throws {
        let isLegacy = try pool.read { try migrator.appliedIdentifiers($0).contains(first) }
        if isLegacy { try migrator.migrate(pool) }
    }

    /// Whether an identifier is one of these migrations'.
    static func isIdentifier(_ identifier: String) -> Bool { migrator.migrations.contains(identifier) }

    private static let first = "1 registrations, outbox, answers"

    /// The parts' migrations that the last legacy migration is equivalent to and records as applied.
    private static let parts = ["delivery 1", "node 1", "status 1"]

    static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration(first) { db in
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
        migrator.registerMigration("6 tables by part") { db in
            try db.execute(
                sql: """
                    -- Devices are named by their protocol and its row. Until then all were of Status: protocol 1.
                    ALTER TABLE outbox RENAME TO outbox_of_status;
                    CREATE TABLE outbox (
                        id INTEGER PRIMARY KEY AUTOINCREMENT, delivery BLOB NOT NULL, device INTEGER NOT NULL,
                        expires_at INTEGER NOT NULL, sealed BLOB NOT NULL, protocol INTEGER NOT NULL, UNIQUE (delivery)
                    );
                    INSERT INTO outbox (id, delivery, device, expires_at, sealed, protocol)
                        SELECT id, delivery, registration, expires_at, sealed, 1 FROM outbox_of_status;
                    -- The last id that was assigned, so that none is assigned again.
                    DELETE FROM sqlite_sequence WHERE name = 'outbox';
                    INSERT INTO sqlite_sequence (name, seq)
                        SELECT 'outbox', seq FROM sqlite_sequence WHERE name = 'outbox_of_status';
                    DROP TABLE outbox_of_status;
                    CREATE INDEX outbox_device ON outbox (protocol, device);

                    ALTER TABLE accepted RENAME COLUMN registration TO device;
                    ALTER TABLE accepted ADD COLUMN protocol INTEGER;
                    UPDATE accepted SET protocol = 1 WHERE device IS NOT NULL;

                    ALTER TABLE doubt RENAME TO doubt_of_status;
                    CREATE TABLE doubt (
                        id INTEGER PRIMARY KEY, protocol INTEGER NOT NULL, device INTEGER NOT NULL, version INTEGER NOT NULL,
                        failures INTEGER NOT NULL, first_failure INTEGER NOT NULL, last_failure INTEGER NOT NULL, unfailed_since INTEGER,
                        UNIQUE (protocol, device)
                    );
                    INSERT INTO doubt (protocol, device, version, failures, first_failure, last_failure, unfailed_since)
                        SELECT 1, registration, version, failures, first_failure, last_failure, unfailed_since FROM doubt_of_status;
                    DROP TABLE doubt_of_status;
                    """)
            for identifier in parts {
                try db.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES (?)", arguments: [identifier])
            }
        }
        return migrator
    }()
}
