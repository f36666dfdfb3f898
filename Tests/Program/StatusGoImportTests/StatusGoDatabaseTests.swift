import Foundation
import TestSupport
import Testing
import Core
import WakuCrypto

@testable import StatusGoImport

@Suite(.timeLimit(.minutes(5)))
struct StatusGoDatabaseTests {
    private static let recorded = StatusGoFixture.rows(after: "unregister")

    private func open(_ fixture: StatusGoFixture, password: String? = nil, iterations: Int = 3_200) throws -> StatusGoDatabase {
        let password = password.map { SecretBytes(Array($0.utf8)) }
        let file = try DatabaseFile(fixture.path, password: password, iterations: iterations)
        return try StatusGoDatabase(file.image, path: fixture.path)
    }

    /// Bytes that a test made. As a file they could be in use: a process that another test starts has what this one has open, until it runs its own program.
    private func open(_ bytes: Data, password: String? = nil) throws -> StatusGoDatabase {
        let password = password.map { SecretBytes(Array($0.utf8)) }
        let image = try SecretBytes(count: bytes.count) { image in
            image.copyBytes(from: bytes)
            _ = try DatabaseFile.makePlain(image, "file", password: password, iterations: 3_200)
        }
        return try StatusGoDatabase(image, path: "file")
    }

    private func failure(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "no error"
        } catch {
            return (error as? StatusGoImportError)?.message ?? "\(error)"
        }
    }

    private func expectRecorded(_ database: StatusGoDatabase) throws {
        let rows = try #require(try database.rows(after: nil, limit: 100))
        #expect(rows.rows.count == Self.recorded.count && !rows.rows.isEmpty)
        for (row, recorded) in zip(rows.rows, Self.recorded) {
            #expect(row.keyHash == recorded.publicKey.bytes)
            #expect(row.installationID == Array(recorded.installationId.utf8))
            #expect(row.version == recorded.version)
            #expect(row.registration == (recorded.registrationIsNull ? nil : recorded.registration?.bytes))
        }
        #expect(try database.rows(after: rows.last, limit: 100) == nil)
    }

    @Test func plainDatabasesAreRead() async throws {
        let fixture = try await StatusGoFixture(.python, Self.recorded.map(StatusGoFixture.row).joined())
        try expectRecorded(open(fixture))
    }

    @Test(arguments: [(3_200, 8_192), (3_200, 1_024), (64_000, 4_096)])
    func encryptedDatabasesAreRead(iterations: Int, pageByteCount: Int) async throws {
        let fixture = try await StatusGoFixture(
            .sqlcipher(iterations: iterations, pageByteCount: pageByteCount), Self.recorded.map(StatusGoFixture.row).joined())
        try expectRecorded(open(fixture, password: StatusGoFixture.password, iterations: iterations))
    }

    @Test func encryptedDatabasesNeedTheRightPasswordAndIterations() async throws {
        let fixture = try await StatusGoFixture(.statusGo, "")
        #expect(failure { _ = try open(fixture) }.contains("give the server's password with --password-file"))
        #expect(failure { _ = try open(fixture, password: "another") }.contains("the password or --kdf-iterations is wrong"))
        #expect(
            failure { _ = try open(fixture, password: StatusGoFixture.password, iterations: 64_000) }
                .contains("the password or --kdf-iterations is wrong"))
    }

    @Test func pageOfTheLocksIsLeftAsItIs() async throws {
        let pageByteCount = 1_024
        let fixture = try await StatusGoFixture(
            .sqlcipher(iterations: 3_200, pageByteCount: pageByteCount), Self.recorded.map(StatusGoFixture.row).joined())
        var file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: fixture.path)))
        let page = 2 * pageByteCount..<3 * pageByteCount
        file.replaceSubrange(page, with: repeatElement(0, count: pageByteCount))
        let password = SecretBytes(Array(StatusGoFixture.password.utf8))
        var cipher = try #require(file.withUnsafeBytes { SQLCipher($0, password: password, iterations: 3_200) })
        #expect(cipher.lockByte == 1 << 30)
        var output = file
        #expect(output.withUnsafeMutableBytes { cipher.decrypt($0) } == 3)
        // As if it were this page's.
        cipher.lockByte = page.lowerBound + 512
        output = file
        #expect(output.withUnsafeMutableBytes { cipher.decrypt($0) } == nil)
        #expect(output[page].allSatisfy { $0 == 0 } && output[page.upperBound...].contains { $0 != 0 })
    }

    /// A bit of every page is flipped in turn.
    @Test func damagedPagesOfEncryptedDatabasesAreFound() async throws {
        let fixture = try await StatusGoFixture(.statusGo, Self.recorded.map(StatusGoFixture.row).joined())
        let whole = try Data(contentsOf: URL(fileURLWithPath: fixture.path))
        for page in 1..<whole.count / 8_192 {
            var damaged = whole
            damaged[page * 8_192 + page] ^= 1
            let message = failure { _ = try open(damaged, password: StatusGoFixture.password) }
            #expect(message.hasPrefix("page \(page + 1) of file is damaged"))
        }
    }

    @Test func damagedPlainDatabasesAreRefused() async throws {
        let fixture = try await StatusGoFixture(.python, Self.recorded.map(StatusGoFixture.row).joined())
        let whole = try Data(contentsOf: URL(fileURLWithPath: fixture.path))
        var random = SeededGenerator(seed: 1)
        for _ in 0..<50 {
            var damaged = whole
            for _ in 0..<20 { damaged[Int.random(in: 100..<whole.count, using: &random)] = UInt8.random(in: 0...255, using: &random) }
            // Damage that SQLite does not notice makes other rows; none of them traps.
            let message = failure {
                let database = try open(damaged)
                var last: Int64?
                while let page = try database.rows(after: last, limit: 2) {
                    for row in page.rows { _ = try? row.record(defaultTopic: "", at: Timestamp(rawValue: 1)) }
                    last = page.last
                }
            }
            #expect(
                ["no error", "file is damaged: import a backup of the database"].contains(message) || message.contains("no table"),
                "\(message)")
        }
    }

    @Test func otherFilesAreRefused() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/file"
        func message() -> String {
            failure { _ = try StatusGoDatabase(DatabaseFile(path, password: nil, iterations: 1).image, path: path) }
        }
        #expect(message().contains("can't be read"))
        #expect(failure { _ = try open(Data("short".utf8)) }.contains("is not a SQLite database"))
        #expect(failure { _ = try open(Data(repeating: 0x78, count: 4_096)) }.contains("is encrypted, or is not a SQLite database"))
        let ended = try await ExternalTool.run(
            "python3", ["-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE t (c)')", folder.path + "/other"])
        #expect(ended.status == 0)
        try FileManager.default.moveItem(atPath: folder.path + "/other", toPath: path)
        #expect(message().contains("is not a push server's database"))
    }

    @Test func databasesWithAHotRollbackJournalAreRefused() async throws {
        let fixture = try await StatusGoFixture(.python, "")
        let journal = fixture.path + "-journal"
        try write("changes of a transaction", to: journal)
        #expect(failure { _ = try open(fixture) }.hasPrefix(journal + " is left over from a transaction that did not end"))
        // As SQLite leaves it with journal_mode TRUNCATE and PERSIST.
        for text in ["", String(repeating: "\0", count: 512)] {
            try write(text, to: journal)
            #expect(failure { _ = try open(fixture) } == "no error")
        }
    }

    @Test func databasesInUseAreRefused() async throws {
        let fixture = try await StatusGoFixture(.python, "")
        let program = """
            import sqlite3, sys, time
            d = sqlite3.connect(sys.argv[1])
            d.execute('SELECT COUNT(*) FROM push_notification_server_identity').fetchall()
            print('open', flush=True)
            time.sleep(120)
            """
        let server = try ChildProcess(
            ["-c", program, fixture.path], program: URL(fileURLWithPath: ExternalTool.path(of: "python3")), limit: .seconds(120))
        try await eventually { server.lines.contains("open") }
        #expect(failure { _ = try open(fixture) }.hasSuffix("is in use by a running server: stop it first"))
        server.send(SIGKILL)
        _ = await server.status
        #expect(failure { _ = try open(fixture) } == "no error")
    }

    @Test func writeAheadLoggingDatabasesAreReadWithoutTouchingTheirFolder() async throws {
        let fixture = try await StatusGoFixture(.python, Self.recorded.map(StatusGoFixture.row).joined())
        let ended = try await ExternalTool.run(
            "python3",
            [
                "-c", "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('PRAGMA journal_mode = WAL'); d.close()",
                fixture.path,
            ])
        #expect(ended.status == 0)
        let before = try Data(contentsOf: URL(fileURLWithPath: fixture.path))
        #expect(before[18] == 2)
        try expectRecorded(open(fixture))
        #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path)) == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path) == ["pushserver.db"])
    }

    @Test func theServersKeyIsFoundInEitherTable() async throws {
        let key = PrivateKey.generate()
        let digits = key.withBytes { hexString($0) }
        let config = "INSERT INTO push_notifications_server_config (identity) VALUES ('0x\(digits)');\n"
        #expect(try await open(StatusGoFixture(.python, "")).identities().isEmpty)
        for sql in [StatusGoFixture.identity(key), config, config + StatusGoFixture.identity(key)] {
            #expect(try await open(StatusGoFixture(.python, sql)).identities().map(\.publicKey) == [key.publicKey])
        }
        #expect(try await open(StatusGoFixture(.python, config + StatusGoFixture.identity(.generate()))).identities().count == 2)
        // Every database of a Status account has such a row.
        let empty = try await open(StatusGoFixture(.python, StatusGoFixture.emptyConfiguration))
        #expect(try empty.identities().isEmpty)
        let besides = try await open(StatusGoFixture(.python, StatusGoFixture.emptyConfiguration + StatusGoFixture.identity(key)))
        #expect(try besides.identities().map(\.publicKey) == [key.publicKey])
        let fixture = try await StatusGoFixture(.python, "INSERT INTO push_notification_server_identity (private_key) VALUES (X'00');\n")
        #expect(failure { _ = try open(fixture).identities() }.contains("does not contain a secp256k1 key"))
    }
}
