import Foundation
import NodeAssembly
import StatusProtocol
import Storage
import StorePostgreSQL
import StoreSQLite
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode
@testable import StatusServer
@testable import WakuPushCommands

/// `admin import status-go`, with the rows that a recorded server of status-go had.
@Suite(.timeLimit(.minutes(10)))
struct AdminImportTests {
    private struct Report: Decodable, Equatable {
        var registrations, tombstones, imported, kept, derivedKeys: Int
        var refused: [String: Int]
        var identity: String
        var isDryRun: Bool
        var tables: [String: Int]
        var newestRow: String?
        var catchUpFrom: String
        var logFrames: Int?
        var isLogMissing: Bool
        var handledRequests: Int
    }

    private let folder: TemporaryFolder
    private let server: PrivateKey
    private var database: String { folder.path + "/pushserver.db" }
    private var data: String { folder.path + "/data" }
    private var identity: String { folder.path + "/id.key" }

    init() throws {
        folder = try TemporaryFolder()
        server = try StatusGoVectors.recorded.pair("server")
    }

    /// - Parameter rows: SQL of further rows.
    private func makeDatabase(
        _ engine: StatusGoFixture.Engine = .python, after flow: String = "unregister", key: PrivateKey? = nil, rows: String = ""
    ) async throws {
        let recorded = StatusGoFixture.rows(after: flow).map(StatusGoFixture.row).joined()
        try await StatusGoFixture.write(engine, recorded + (key.map(StatusGoFixture.identity) ?? "") + rows, to: database)
    }

    private func importing(_ arguments: String...) async throws -> Ended {
        try await run(["admin", "import", "status-go", database, "--data", data, "--identity", identity] + arguments)
    }

    private func list() async throws -> [TestSupport.RegistrationRow] {
        try await run("admin", "registrations", "list", "--json", "--data", data).json()
    }

    @Test func identityAndRegistrationsAreImportedAndTheImportCanBeRepeated() async throws {
        try await makeDatabase(key: server)
        let first = try await importing("--json")
        #expect(first.status == 0, "\(first.errors)")
        let report = try first.json(Report.self)
        #expect(report.imported == report.registrations + report.tombstones && report.kept == 0 && report.refused.isEmpty)
        #expect(report.tombstones == 1 && report.registrations == 4)
        #expect(report.identity == KeyHash(of: server.publicKey).hex)
        #expect(try IdentityFile.read(identity).publicKey == server.publicKey)
        let rows = try await list()
        #expect(rows.count == 5)

        let second = try await importing("--json").json(Report.self)
        #expect(second.imported == 0 && second.kept == 5)
        #expect(try await list() == rows)
    }

    @Test func intoPostgreSQL() async throws {
        try await makeDatabase(key: server)
        let store = try await PostgreSQLServer.shared().makeDatabase()
        for (imported, kept) in [(5, 0), (0, 5)] {
            let ended = try await importing("--json", "--store", store, "--derive-keys")
            #expect(ended.status == 0, "\(ended.errors)")
            let report = try ended.json(Report.self)
            #expect(report.imported == imported && report.kept == kept && report.refused.isEmpty)
        }
        let inDatabase: [TestSupport.RegistrationRow] =
            try await run("admin", "registrations", "list", "--json", "--data", data, "--store", store).json()
        #expect(!FileManager.default.fileExists(atPath: data + "/waku-push.sqlite"))
        // The same rows as without.
        #expect(try await importing().status == 0)
        #expect(try await list() == inDatabase && inDatabase.count == 5)
    }

    private func cursor(_ store: any Store) throws -> Timestamp? {
        try store.read(RelayCursors.read(of: [.statusDefault]))[.statusDefault]
    }

    private func cursor() throws -> Timestamp? {
        let store = try NodeAssembly.existingStore(in: data, of: server)
        defer { try? store.close() }
        return try cursor(store)
    }

    /// A checkpoint by hand changes the file's time, long after the server stopped.
    @Test func theFirstRunCatchesUpFromTheLastHandledMessage() async throws {
        let last: Int64 = 1_700_000_000_123
        // A time in the future is not when a message was handled.
        let messages = [last - 5_000, last, 99_999_999_999_999].map(StatusGoFixture.message).joined()
        try await makeDatabase(key: server, rows: messages)
        let report = try await importing("--json").json(Report.self)
        #expect(report.newestRow == "2023-11-14T22:13:20Z" && report.catchUpFrom == "2023-11-14T22:13:20Z")
        #expect(try cursor() == Timestamp(rawValue: last * 1_000_000))
        // The earlier of two imports counts, unless the operator says when.
        try await makeDatabase(key: server, rows: messages + StatusGoFixture.message(at: last + 60_000))
        #expect(try await importing().status == 0)
        #expect(try cursor() == Timestamp(rawValue: last * 1_000_000))
        #expect(try await importing("--since", "2023-11-14T22:00:00Z").status == 0)
        #expect(try cursor() == Timestamp(rawValue: 1_699_999_200_000_000_000))
        #expect(try await importing("--since", "yesterday").status == 64)
    }

    /// The time of a file says little, but requests are known to have been handled.
    @Test func withoutAnyMessageTheFirstRunCatchesUpFromADayBeforeTheFilesTime() async throws {
        try await makeDatabase(key: server)
        let stopped = Date(timeIntervalSince1970: 1_700_000_000)
        try FileManager.default.setAttributes([.modificationDate: stopped], ofItemAtPath: database)
        let report = try await importing("--json").json(Report.self)
        #expect(report.newestRow == nil && report.catchUpFrom == "2023-11-13T22:13:20Z")
        #expect(try cursor() == Timestamp(rawValue: 1_699_913_600_000_000_000))
    }

    @Test func handledRequestsAreImportedIntoBothStores() async throws {
        let ids = (1...700).map { Array(repeating: UInt8($0 & 0xFF), count: 31) + [UInt8($0 >> 8)] }
        // An id of another length is none of a request.
        let rows = (ids + [[1, 2, 3]]).map(StatusGoFixture.handled).joined() + StatusGoFixture.message(at: 1_700_000_000_000)
        try await makeDatabase(key: server, rows: rows)
        let location = try await PostgreSQLServer.shared().makeDatabase()
        for arguments in [[], ["--store", location]] {
            for _ in 1...2 {
                let ended = try await run(
                    ["admin", "import", "status-go", database, "--data", data, "--identity", identity, "--json"] + arguments)
                #expect(try ended.json(Report.self).handledRequests == 700, "\(ended.errors)")
            }
        }
        let stores: [any Store] = [
            try NodeAssembly.existingStore(in: data, of: server),
            try NodeAssembly.existingStore(at: .postgreSQL(PostgreSQLAddress(location)), in: data, of: server),
        ]
        for store in stores {
            for id in [ids[0], ids[699]] { #expect(try store.read(AnswerStorage.answer(to: id)) == AnswerStorage.handledElsewhere) }
            #expect(try store.read(AnswerStorage.answer(to: [1, 2, 3])) == nil)
            #expect(try cursor(store) == Timestamp(rawValue: 1_700_000_000_000_000_000))
            try store.close()
        }
    }

    @Test func aDatabaseWithoutRegistrationsNeedsAllowEmpty() async throws {
        // The file alone, copied from beside a running server.
        let recorded = StatusGoFixture.rows(after: "unregister").map(StatusGoFixture.row).joined()
        try await StatusGoFixture.kill(.python, ["PRAGMA wal_checkpoint;\n", recorded + StatusGoFixture.identity(server)], at: database)
        let whole = try await importing("--dry-run", "--json").json(Report.self)
        #expect(whole.registrations == 4 && whole.tables["push_notification_server_registrations"] == 5)
        #expect(whole.logFrames ?? 0 > 0 && !whole.isLogMissing)
        try FileManager.default.removeItem(atPath: database + "-wal")
        for arguments in [[], ["--dry-run"]] {
            let ended = try await run(["admin", "import", "status-go", database, "--data", data, "--identity", identity] + arguments)
            #expect(ended.status == 65)
            #expect(
                ended.failure
                    == "\(database) has no registrations: its write-ahead log \(database)-wal is missing (--allow-empty accepts that)")
            #expect(ended.output.contains("missing: copy the -wal file too"))
        }
        #expect(!FileManager.default.fileExists(atPath: data) && !FileManager.default.fileExists(atPath: identity))
        try await makeDatabase(after: "none", key: server)
        #expect(try await importing().status == 65)
        #expect(try await importing("--allow-empty").status == 0)
    }

    @Test func encryptedDatabasesNeedThePasswordFile() async throws {
        try await makeDatabase(.statusGo, key: server)
        let without = try await importing()
        #expect(without.status == 65)
        #expect(without.failure?.contains("give the server's password with --password-file") == true)
        try write(StatusGoFixture.password + "\n", to: folder.path + "/password")
        let ended = try await importing("--password-file", folder.path + "/password", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try ended.json(Report.self).imported == 5)
        #expect(!(without.errors + ended.output + ended.errors).contains(StatusGoFixture.password))
        #expect(try await importing("--kdf-iterations", "0").status == 64)
    }

    @Test func dryRunWritesNothing() async throws {
        try await makeDatabase(key: server)
        let ended = try await importing("--dry-run")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains("registrations"))
        #expect(!FileManager.default.fileExists(atPath: data) && !FileManager.default.fileExists(atPath: identity))
        try await makeDatabase()
        let report = try await run("admin", "import", "status-go", database, "--dry-run", "--json").json(Report.self)
        #expect(report.identity == "" && report.registrations == 4)
    }

    @Test func nothingIsImportedIfARowCantBeUnlessItIsSkipped() async throws {
        let bad = StatusGoFixture.row([0], "i", 1, nil) + StatusGoFixture.row([0], "j", 1, nil)
        try await makeDatabase(key: server, rows: bad)
        let refused = try await importing("--json")
        #expect(refused.status == 65)
        #expect(refused.failure?.hasPrefix("2 rows can't be imported, so nothing was") == true)
        #expect(try refused.json(Report.self).refused == ["public_key is not a hash of 64 bytes": 2])
        #expect(!FileManager.default.fileExists(atPath: data) && !FileManager.default.fileExists(atPath: identity))
        #expect(try await importing("--skip", "--json").json(Report.self).imported == 5)
    }

    /// Rows without a mark belong to the first identity that the database has served.
    @Test func inADatabaseOfAFormerIdentityRegistrationsHaveTheServers() async throws {
        struct Row: Decodable { let identity: String? }
        let former = try KeyFile(in: folder, "former.key")
        let lock = try DataFolder(locking: data)
        try NodeAssembly.store(in: data, of: former.key).close()
        lock.unlock()
        try await makeDatabase(key: server)
        try IdentityFile.write(server, to: identity)
        let moved = try await run("admin", "rotate-storage-key", "--data", data, "--identity", identity, "--from", former.path)
        #expect(moved.status == 0, "\(moved.errors)")
        for counts in [(5, 0), (0, 5)] {
            let report = try await importing("--json").json(Report.self)
            #expect((report.imported, report.kept) == counts)
        }
        let rows = try await run("admin", "registrations", "list", "--json", "--data", data).json([Row].self)
        #expect(rows.count == 5 && rows.allSatisfy { $0.identity != nil })
    }

    @Test func aDefaultTopicCompletesRegistrations() async throws {
        try await makeDatabase(after: "reg_ok_apn_topic_missing", key: server)
        #expect(try await importing("--json").json(Report.self).refused.count == 1)
        let report = try await importing("--default-apn-topic", "im.status.ethereum", "--json").json(Report.self)
        #expect(report.refused.isEmpty && report.imported == report.registrations)
    }

    @Test func theIdentityMustBeTheServers() async throws {
        try await makeDatabase()
        #expect(try await importing().failure?.contains("does not contain the server's key: see waku-push identity import") == true)
        let other = try KeyFile(in: folder, "id.key")
        #expect(try await importing("--json").json(Report.self).identity == KeyHash(of: other.key.publicKey).hex)
        try await makeDatabase(key: server)
        let ended = try await importing()
        #expect(ended.status == 65 && ended.failure?.contains("is not the key in") == true)
        #expect(!ended.errors.contains(other.digits))
    }

    @Test func newerRegistrationsAreKept() async throws {
        try await makeDatabase(after: "register_apn", key: server)
        #expect(try await importing().status == 0)
        let before = try await list()
        try await makeDatabase(after: "register_update_lists", key: server)
        #expect(try await importing("--json").json(Report.self).imported == 2)
        let after = try await list()
        #expect(after != before)
        try await makeDatabase(after: "register_apn", key: server)
        #expect(try await importing("--json").json(Report.self).kept == 1)
        #expect(try await list() == after)
    }

    @Test func keysOfQueryTopicsAreDerivedOnRequest() async throws {
        try await makeDatabase(key: server)
        let report = try await importing("--derive-keys", "--json").json(Report.self)
        #expect(report.derivedKeys > 0)
        #expect(try await importing("--derive-keys", "--json").json(Report.self).derivedKeys == 0)
    }

    /// 1,000,000 rows with `Deploy/test --all`.
    @Test(.timeLimit(.minutes(30))) func manyRowsAreImported() async throws {
        let count = LongTests.areEnabled ? 1_000_000 : 50_000
        let row = try #require(StatusGoVectors.recorded.flows.first { $0.name == "register_apn" }?.serverRowsAfter?.first)
        let copies = """
            INSERT INTO push_notification_server_registrations
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            SELECT randomblob(64), '\(row.installationId)', \(row.version), X'\(hexString(row.registration?.bytes ?? []))' FROM n;

            """
        try await makeDatabase(after: "none", key: server, rows: copies)
        let start = ContinuousClock.now
        #expect(try await importing("--json").json(Report.self).imported == count)
        print("imported \(count) rows in \(ContinuousClock.now - start)")
    }

    @Test func keysAreImportedFromHexFiles() async throws {
        let digits = server.withBytes { hexString($0) }
        for text in [digits, "0x" + digits, digits.uppercased() + "\r\n"] {
            try? FileManager.default.removeItem(atPath: identity)
            try write(text, to: folder.path + "/nodekey", mode: 0o644)
            let ended = try await run("identity", "import", folder.path + "/nodekey", "--out", identity)
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(try IdentityFile.read(identity).publicKey == server.publicKey)
        }
        #expect(try await run("identity", "import", folder.path + "/nodekey", "--out", identity).status == 73)
        try write("not a key", to: folder.path + "/nodekey")
        let ended = try await run("identity", "import", folder.path + "/nodekey", "--out", identity + "2")
        #expect(ended.status == 65 && ended.failure?.contains("not a key") == false)
        #expect(try await run("identity", "import", folder.path + "/none", "--out", identity + "2").status == 65)
    }
}
