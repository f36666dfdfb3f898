import Foundation
package import WakuCrypto

/// A database in the format of status-go's push server, made by Python's sqlite3 or by sqlcipher.
package struct StatusGoFixture {
    package static let password = "it's a password"

    package enum Engine: Sendable {
        case python
        /// With status-go's settings of SQLCipher 3.
        case sqlcipher(iterations: Int, pageByteCount: Int)

        package static let statusGo = Engine.sqlcipher(iterations: 3_200, pageByteCount: 8_192)
    }

    package let folder: TemporaryFolder
    package var path: String { folder.path + "/pushserver.db" }

    private static let tables = """
        CREATE TABLE push_notification_server_registrations (
          public_key BLOB NOT NULL, installation_id VARCHAR NOT NULL, version INT NOT NULL, registration BLOB,
          UNIQUE(public_key, installation_id) ON CONFLICT REPLACE);
        CREATE TABLE push_notification_server_identity (
          private_key BLOB NOT NULL, synthetic_id INT NOT NULL DEFAULT 0, UNIQUE(synthetic_id));
        CREATE TABLE push_notifications_server_config (
          enabled BOOLEAN DEFAULT FALSE, identity VARCHAR, gorush_url VARCHAR, synthetic_id VARCHAR DEFAULT 'id' PRIMARY KEY);
        CREATE TABLE push_notification_server_notifications (id BLOB NOT NULL, UNIQUE(id));
        CREATE TABLE transport_message_cache (id VARCHAR NOT NULL PRIMARY KEY ON CONFLICT REPLACE, timestamp INT NOT NULL);

        """

    /// A row in every database of a Status account.
    package static let emptyConfiguration = "INSERT INTO push_notifications_server_config (identity) VALUES ('');\n"

    /// - Parameters:
    ///   - engine: the program that creates the database.
    ///   - sql: statements to run after the tables were created.
    package init(_ engine: Engine, _ sql: String) async throws {
        folder = try TemporaryFolder()
        try await Self.write(engine, sql, to: path)
    }

    /// - Parameters:
    ///   - engine: the program that creates the database.
    ///   - statements: see ``kill(_:_:at:)``.
    package init(killed engine: Engine, _ statements: [String]) async throws {
        folder = try TemporaryFolder()
        try await Self.kill(engine, statements, at: path)
    }

    /// Makes a new database at a path.
    package static func write(_ engine: Engine, _ sql: String, to path: String) async throws {
        removeFiles(at: path)
        try await execute(engine, "BEGIN;\n" + tables + sql + "COMMIT;\n", at: path)
    }

    /// Creates a database with a write-ahead log, left behind as by a status-go server, which never closes its database and is ended by a signal: the
    /// log and its index remain.
    ///
    /// - Parameter statements: pragmas, or single transactions, after the tables were created.
    package static func kill(_ engine: Engine, _ statements: [String], at path: String) async throws {
        removeFiles(at: path)
        let transactions = statements.map { $0.hasPrefix("PRAGMA") || $0.hasPrefix("BEGIN") ? $0 : "BEGIN;\n\($0)COMMIT;\n" }.joined()
        try await execute(engine, "PRAGMA journal_mode = WAL;\nBEGIN;\n\(tables)COMMIT;\n\(transactions)", at: path, isKilled: true)
        guard FileManager.default.fileExists(atPath: path + "-wal") else { throw TestFailure("no log was left behind") }
    }

    private static func removeFiles(at path: String) {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
    }

    private static func execute(_ engine: Engine, _ script: String, at path: String, isKilled: Bool = false) async throws {
        switch engine {
        case .python:
            let end = isKilled ? "os.kill(os.getpid(), signal.SIGKILL)" : "d.close()"
            let program =
                "import os, signal, sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.executescript(sys.stdin.read()); \(end)"
            try await run("python3", ["-c", program, path], script, isKilled: isKilled)
        case .sqlcipher(let iterations, let pageByteCount):
            let quoted = password.replacingOccurrences(of: "'", with: "''")
            // Version 4 defaults to SHA-512; version 3 does not know the last two settings.
            let settings = """
                PRAGMA key = '\(quoted)';
                PRAGMA cipher_page_size = \(pageByteCount);
                PRAGMA kdf_iter = \(iterations);
                PRAGMA cipher_hmac_algorithm = HMAC_SHA1;
                PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1;

                """
            // The parent of the shell started by it.
            let end = isKilled ? ".system kill -9 $PPID\n" : ""
            try await run("sqlcipher", [path], settings + script + end, isKilled: isKilled)
        }
    }

    private static func run(_ name: String, _ arguments: [String], _ input: String, isKilled: Bool) async throws {
        let ended = try await ExternalTool.run(name, arguments, input: input)
        guard isKilled != (ended.status == 0), ended.errors.isEmpty else { throw TestFailure(ended.errors) }
    }

    package static func row(_ row: StatusGoVectors.ServerRow) -> String {
        let registration = row.registrationIsNull ? nil : row.registration?.bytes
        return Self.row(row.publicKey.bytes, row.installationId, row.version, registration)
    }

    package static func row(_ keyHash: [UInt8], _ installation: String, _ version: Int64, _ registration: [UInt8]?) -> String {
        """
        INSERT INTO push_notification_server_registrations VALUES (
          X'\(hexString(keyHash))', '\(installation)', \(version), \(registration.map { "X'\(hexString($0))'" } ?? "NULL"));

        """
    }

    package static func identity(_ key: PrivateKey) -> String {
        "INSERT INTO push_notification_server_identity (private_key) VALUES (X'\(key.withBytes { hexString($0) })');\n"
    }

    /// A request that the server handled.
    ///
    /// - Parameter id: the id of its envelope.
    package static func handled(_ id: [UInt8]) -> String {
        "INSERT INTO push_notification_server_notifications VALUES (X'\(hexString(id))');\n"
    }

    /// - Parameter milliseconds: the time at which the server handled a message.
    package static func message(at milliseconds: Int64) -> String {
        "INSERT INTO transport_message_cache VALUES (hex(randomblob(32)), \(milliseconds));\n"
    }

    /// The rows after a recorded flow.
    package static func rows(after name: String) -> [StatusGoVectors.ServerRow] {
        StatusGoVectors.recorded.flows.first { $0.name == name }?.serverRowsAfter ?? []
    }
}
