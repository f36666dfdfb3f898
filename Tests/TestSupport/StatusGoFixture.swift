import Foundation
package import WakuCrypto

/// A database as status-go's push server writes it, made by Python's sqlite3 or by sqlcipher.
package struct StatusGoFixture {
    package static let password = "it's a password"

    package enum Engine: Sendable {
        case python
        /// With the settings of SQLCipher 3 that status-go has.
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

    /// What every database of a Status account has.
    package static let emptyConfiguration = "INSERT INTO push_notifications_server_config (identity) VALUES ('');\n"

    /// - Parameters:
    ///   - engine: what makes it.
    ///   - sql: after the tables were made.
    package init(_ engine: Engine, _ sql: String) async throws {
        folder = try TemporaryFolder()
        try await Self.write(engine, sql, to: path)
    }

    /// - Parameters:
    ///   - engine: what makes it.
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

    /// Makes a new database with a write-ahead log as a server of status-go does, which never closes it and is ended by a signal: the log and
    /// its index are left behind.
    ///
    /// - Parameter statements: each a transaction after the tables were made, or a pragma.
    package static func kill(_ engine: Engine, _ statements: [String], at path: String) async throws {
        removeFiles(at: path)
        let transactions = statements.map { $0.hasPrefix("PRAGMA") || $0.hasPrefix("BEGIN") ? $0 : "BEGIN;\n\($0)COMMIT;\n" }.joined()
        try await execute(engine, "PRAGMA journal_mode = WAL;\nBEGIN;\n\(tables)COMMIT;\n\(transactions)", at: path, isKilled: true)
        guard FileManager.default.fileExists(atPath: path + "-wal") else { throw Failed(errors: "no log was left behind") }
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
            // Version 4 would use SHA-512 unless it is told; version 3 does not know the last two.
            let settings = """
                PRAGMA key = '\(quoted)';
                PRAGMA cipher_page_size = \(pageByteCount);
                PRAGMA kdf_iter = \(iterations);
                PRAGMA cipher_hmac_algorithm = HMAC_SHA1;
                PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1;

                """
            // The parent of the shell that it starts.
            let end = isKilled ? ".system kill -9 $PPID\n" : ""
            try await run("sqlcipher", [path], settings + script + end, isKilled: isKilled)
        }
    }

    private struct Failed: Error {
        let errors: String
    }

    private static func run(_ name: String, _ arguments: [String], _ input: String, isKilled: Bool) async throws {
        let ended = try await ExternalTool.run(name, arguments, input: input)
        guard isKilled != (ended.status == 0), ended.errors.isEmpty else { throw Failed(errors: ended.errors) }
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
    /// - Parameter id: of its envelope.
    package static func handled(_ id: [UInt8]) -> String {
        "INSERT INTO push_notification_server_notifications VALUES (X'\(hexString(id))');\n"
    }

    /// - Parameter milliseconds: when the server handled a message.
    package static func message(at milliseconds: Int64) -> String {
        "INSERT INTO transport_message_cache VALUES (hex(randomblob(32)), \(milliseconds));\n"
    }

    /// The rows after a recorded flow.
    package static func rows(after name: String) -> [StatusGoVectors.ServerRow] {
        StatusGoVectors.recorded.flows.first { $0.name == name }?.serverRowsAfter ?? []
    }
}
