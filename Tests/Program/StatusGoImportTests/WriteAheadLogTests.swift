import Foundation
import TestSupport
import Testing
import WakuCrypto

@testable import StatusGoImport

/// Databases as a server that was ended by a signal leaves them.
@Suite(.timeLimit(.minutes(5)))
struct WriteAheadLogTests {
    private static let engines: [StatusGoFixture.Engine] = [.python, .statusGo]

    private func rowCount(_ path: String, isEncrypted: Bool = false) throws -> (rows: Int, frames: Int?) {
        let password = isEncrypted ? SecretBytes(Array(StatusGoFixture.password.utf8)) : nil
        let file = try closed(path, password: password)
        let database = try StatusGoDatabase(file.image, path: path)
        var (last, count) = (Int64?.none, 0)
        while let page = try database.rows(after: last, limit: 100) {
            count += page.rows.count
            last = page.last
        }
        #expect(count == database.tables["push_notification_server_registrations"])
        return (count, file.logFrameCount)
    }

    /// A process that another test is starting has this one's files open until it runs its program.
    private func closed(_ path: String, password: SecretBytes?) throws -> DatabaseFile {
        let isOpen = StatusGoImportError("\(path) is in use by a running server: stop it first")
        while true {
            do throws(StatusGoImportError) {
                return try DatabaseFile(path, password: password, iterations: 3_200)
            } catch {
                guard error == isOpen else { throw error }
            }
        }
    }

    private func rows(_ numbers: ClosedRange<Int>) -> String {
        numbers.map { StatusGoFixture.row(Array(repeating: UInt8($0), count: 64), "i", 1, Array(repeating: 7, count: 300)) }.joined()
    }

    private func contents(_ fixture: StatusGoFixture) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path)
        return try Dictionary(
            uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(fileURLWithPath: fixture.folder.path + "/" + $0))) })
    }

    @Test(arguments: engines) func committedChangesInTheLogAreRead(engine: StatusGoFixture.Engine) async throws {
        let fixture = try await StatusGoFixture(killed: engine, [rows(1...20), "PRAGMA wal_checkpoint;\n", rows(21...60)])
        let before = try contents(fixture)
        #expect(Set(before.keys).isSuperset(of: ["pushserver.db", "pushserver.db-wal"]))
        let (count, frames) = try rowCount(fixture.path, isEncrypted: engine.isEncrypted)
        #expect(count == 60 && frames ?? 0 > 0)
        #expect(try contents(fixture) == before)
        // The file alone is older.
        try FileManager.default.removeItem(atPath: fixture.path + "-wal")
        #expect(try rowCount(fixture.path, isEncrypted: engine.isEncrypted).rows == 20)
    }

    @Test(arguments: engines) func aCheckpointedLogIsNoObstacle(engine: StatusGoFixture.Engine) async throws {
        let complete = try await StatusGoFixture(killed: engine, [rows(1...20), "PRAGMA wal_checkpoint;\n"])
        #expect(try rowCount(complete.path, isEncrypted: engine.isEncrypted).rows == 20)
        let truncated = try await StatusGoFixture(killed: engine, [rows(1...20), "PRAGMA wal_checkpoint(TRUNCATE);\n"])
        let (count, frames) = try rowCount(truncated.path, isEncrypted: engine.isEncrypted)
        #expect(count == 20 && frames == 0)
        // The log begins anew, with frames of before behind its end.
        let reset = try await StatusGoFixture(
            killed: engine, [rows(1...60), "PRAGMA wal_checkpoint(RESTART);\n", rows(61...61)])
        #expect(try rowCount(reset.path, isEncrypted: engine.isEncrypted).rows == 61)
    }

    /// SQLite writes pages of a large transaction to the log before it ends.
    @Test(arguments: engines) func anInterruptedTransactionIsNotRead(engine: StatusGoFixture.Engine) async throws {
        let fixture = try await StatusGoFixture(
            killed: engine, [rows(1...20), "PRAGMA cache_size = 2;\n", "BEGIN;\n" + rows(21...200)])
        let (count, frames) = try rowCount(fixture.path, isEncrypted: engine.isEncrypted)
        let size = try Data(contentsOf: URL(fileURLWithPath: fixture.path + "-wal")).count
        let pageByteCount = engine.isEncrypted ? 8_192 : 4_096
        #expect(count == 20)
        #expect((frames ?? 0) * (pageByteCount + 24) + 32 < size, "no frame was written before the commit")
    }

    /// Cut or damaged at any place, the log is read as far as SQLite reads it.
    @Test func damagedLogsAreReadAsSQLiteReadsThem() async throws {
        let fixture = try await StatusGoFixture(killed: .python, (1...12).map { rows($0 * 10...$0 * 10 + 9) })
        let (main, log) = try (contents(fixture)["pushserver.db"]!, contents(fixture)["pushserver.db-wal"]!)
        let folder = try TemporaryFolder()
        var random = SeededGenerator(seed: 1)
        var paths: [String] = []
        for number in 0..<60 {
            var damaged = log
            if number.isMultiple(of: 2) {
                damaged = damaged.prefix(Int.random(in: 0...log.count, using: &random))
            } else {
                damaged[Int.random(in: 0..<(number < 20 ? 32 : log.count), using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            }
            let path = "\(folder.path)/\(number)"
            try main.write(to: URL(fileURLWithPath: path))
            try damaged.write(to: URL(fileURLWithPath: path + "-wal"))
            paths.append(path)
        }
        let ours = paths.map { path in (try? rowCount(path).rows).map(String.init) ?? "refused" }
        let program = """
            import sqlite3, sys
            for path in sys.argv[1:]:
                try: print(sqlite3.connect(path).execute('SELECT COUNT(*) FROM push_notification_server_registrations').fetchone()[0])
                except sqlite3.Error: print('refused')
            """
        let ended = try await ExternalTool.run("python3", ["-c", program] + paths)
        #expect(ended.output.split(separator: "\n").map(String.init) == ours)
        #expect(Set(ours).count > 5, "\(ours)")
    }

    @Test func aLogOfAnotherDatabaseIsRefused() async throws {
        let fixture = try await StatusGoFixture(killed: .python, [rows(1...200), "PRAGMA wal_checkpoint(RESTART);\n", rows(201...201)])
        #expect(try rowCount(fixture.path).rows == 201)
        let other = try await StatusGoFixture(.python, "")
        try FileManager.default.copyItem(atPath: fixture.path + "-wal", toPath: other.path + "-wal")
        let failure = StatusGoImportError("\(other.path)-wal continues a larger database than \(other.path): it belongs to another one")
        #expect(throws: failure) { try rowCount(other.path) }
    }

    @Test func hostileFilesAreRefusedAtOnce() async throws {
        let fixture = try await StatusGoFixture(.python, "")
        for suffix in ["-wal", "-journal"] {
            let pipe = fixture.path + suffix
            #expect(mkfifo(pipe, 0o600) == 0)
            #expect(throws: StatusGoImportError("\(pipe) is not a regular file")) { try rowCount(fixture.path) }
            try FileManager.default.removeItem(atPath: pipe)
        }
        let pipe = fixture.folder.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(throws: StatusGoImportError("\(pipe) is not a regular file")) { try rowCount(pipe) }
        #expect(throws: StatusGoImportError("\(fixture.folder.path) is not a regular file")) { try rowCount(fixture.folder.path) }
        // A terabyte that takes no space.
        let sparse = fixture.folder.path + "/sparse"
        try write("SQLite format 3\0", to: sparse)
        #expect(truncate(sparse, 1 << 40) == 0)
        #expect(throws: StatusGoImportError.self) { try rowCount(sparse) }
    }
}

extension StatusGoFixture.Engine {
    fileprivate var isEncrypted: Bool { if case .sqlcipher = self { true } else { false } }
}
