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

        """

    /// - Parameters:
    ///   - engine: what makes it.
    ///   - sql: after the tables were made.
    package init(_ engine: Engine, _ sql: String) async throws {
        folder = try TemporaryFolder()
        try await Self.write(engine, sql, to: path)
    }

    /// Makes a new database at a path.
    package static func write(_ engine: Engine, _ sql: String, to path: String) async throws {
        try? FileManager.default.removeItem(atPath: path)
        let script = "BEGIN;\n" + tables + sql + "COMMIT;\n"
        switch engine {
        case .python:
            let program = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.executescript(sys.stdin.read()); d.close()"
            try await run("python3", ["-c", program, path], script)
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
            try await run("sqlcipher", [path], settings + script)
        }
    }

    private struct Failed: Error {
        let errors: String
    }

    private static func run(_ name: String, _ arguments: [String], _ input: String) async throws {
        let ended = try await ExternalTool.run(name, arguments, input: input)
        guard ended.status == 0, ended.errors.isEmpty else { throw Failed(errors: ended.errors) }
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

    /// The rows after a recorded flow.
    package static func rows(after name: String) -> [StatusGoVectors.ServerRow] {
        StatusGoVectors.recorded.flows.first { $0.name == name }?.serverRowsAfter ?? []
    }
}
