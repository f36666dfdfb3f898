import Foundation
import TestSupport
import Testing
import WakuCrypto

@testable import StatusGoImport

/// Databases that were made to harm the machine that reads them.
@Suite(.timeLimit(.minutes(5)))
struct HostileDatabaseTests {
    private func failure(_ sql: String) async throws -> String {
        let folder = try TemporaryFolder()
        let path = folder.path + "/database"
        let program = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.executescript(sys.stdin.read()); d.close()"
        let ended = try await ExternalTool.run("python3", ["-c", program, path], input: sql)
        try #require(ended.status == 0, "\(ended.errors)")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        do {
            let image = try SecretBytes(count: bytes.count) { image in
                image.copyBytes(from: bytes)
                _ = try DatabaseFile.makePlain(image, "file", password: nil, iterations: 1)
            }
            let database = try StatusGoDatabase(image, path: "file")
            var last: Int64?
            while let page = try database.rows(after: last, limit: 500) { last = page.last }
            return "no error"
        } catch {
            return (error as? StatusGoImportError)?.message ?? "\(error)"
        }
    }

    @Test(arguments: [
        "CREATE TABLE t (public_key, installation_id, version, registration AS (zeroblob(1000000000)));",
        "CREATE TABLE t (public_key, installation_id, version, registration AS (zeroblob(1000000000)) VIRTUAL);",
        "CREATE VIEW t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 1 public_key, 2 installation_id, 3 version, zeroblob(9) registration FROM n;",
        "CREATE VIRTUAL TABLE t USING fts5(public_key, installation_id, version, registration);",
        "CREATE TABLE t (public_key PRIMARY KEY, installation_id, version, registration) WITHOUT ROWID;",
    ])
    func tablesThatAreComputedAreRefused(_ sql: String) async throws {
        let sql = sql.replacing(" t ", with: " push_notification_server_registrations ")
        #expect(
            try await failure(sql)
                == "file: push_notification_server_registrations is not a table of status-go: it is a view, virtual or computed")
    }

    @Test func valuesBeyondTheLimitAreRefused() async throws {
        let table = "CREATE TABLE push_notification_server_registrations (public_key, installation_id, version, registration);"
        let insert = "INSERT INTO push_notification_server_registrations VALUES (X'00', 'i', 1, zeroblob"
        #expect(try await failure("\(table)\(insert)(\(3 << 20)));") == "no error")
        #expect(try await failure("\(table)\(insert)(\(5 << 20)));") == "file is damaged: import a backup of the database")
    }

    /// Pages that contain each other have endless rows: here there are just more than the budget allows.
    @Test func readingEndsWithTheBudget() async throws {
        let fixture = try await StatusGoFixture(
            .python,
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
            INSERT INTO push_notification_server_registrations SELECT i, 'i', 1, 'r' FROM n;
            """)
        let image = try DatabaseFile(fixture.path, password: nil, iterations: 1).image
        let failure = StatusGoImportError("file takes too much work to read: it is damaged")
        #expect(throws: failure) { try StatusGoDatabase(image, path: "file", budget: ReadingBudget(operations: 20_000)) }
        let counted = try StatusGoDatabase(image, path: "file", budget: ReadingBudget(operations: 150_000))
        #expect(throws: failure) { while try counted.rows(after: nil, limit: 500) != nil {} }
        // The default is far more than is needed.
        let whole = try StatusGoDatabase(image, path: "file")
        for _ in 0..<20 {
            var last: Int64?
            while let page = try whole.rows(after: last, limit: 500) { last = page.last }
        }
    }
}
