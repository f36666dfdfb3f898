import Foundation
import GRDB
import NodeAssembly
import StatusProtocol
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@Suite(.timeLimit(.minutes(5)))
struct AdminBackupTests {
    private struct Inspection: Decodable {
        struct Rows: Decodable {
            let count, unreadable: Int
        }
        let problems: [String]
        let registrations: Rows?
        let isRotationUnfinished: Bool
    }

    @Test func existingFilesAreNotReplaced() async throws {
        let fixture = try await AdminFixture()
        let backup = fixture.folder.path + "/backup"
        #expect(try await fixture.admin("backup", backup).status == 0)
        let twice = try await fixture.admin("backup", backup)
        #expect(twice.status == 73)
        #expect(twice.failure == "backup \(backup) exists already: choose another name")
        #expect(try await fixture.admin("backup", fixture.folder.path + "/missing/backup").status == 73)

        let before = try await fixture.admin("registrations", "list").output
        let other = try KeyFile(in: fixture.folder, "other.key")
        let wrong = try await fixture.admin("restore", backup, "--identity", other.path)
        #expect(wrong.status == 65)
        #expect(wrong.failure?.contains("belongs to another identity") == true)
        #expect(try await fixture.admin("restore", backup).status == 64)
        #expect(try await fixture.admin("restore", fixture.folder.path + "/missing", identified: true).status == 65)
        #expect(try await fixture.admin("restore", fixture.server.path, identified: true).status == 65)

        var bytes = try Data(contentsOf: URL(fileURLWithPath: backup))
        let middle = bytes.count / 4096 / 2 * 4096
        bytes.replaceSubrange(middle..<middle + 4096, with: Data(repeating: 0xa5, count: 4096))
        try bytes.write(to: URL(fileURLWithPath: backup + "-damaged"))
        let damaged = try await fixture.admin("restore", backup + "-damaged", identified: true)
        #expect(damaged.status == 65)
        #expect(damaged.failure != nil, "\(damaged.errors)")
        #expect(try await fixture.admin("registrations", "list").output == before)
        let left = try FileManager.default.contentsOfDirectory(atPath: fixture.data).filter { $0.contains("restoring") }
        #expect(left == [])
    }

    /// The previous database is kept, complete.
    @Test func thePreviousDatabaseIsKept() async throws {
        let fixture = try await AdminFixture()
        let backup = fixture.folder.path + "/backup"
        #expect(try await fixture.admin("backup", backup).status == 0)
        #expect(try await fixture.admin("registrations", "remove", fixture.bob.keyHash.hex, "--yes").status == 0)
        #expect(try await fixture.admin("restore", backup, identified: true).status == 0)
        #expect(try await fixture.admin("registrations", "stats").field("tombstones") == "1")
        let kept = try await fixture.admin(
            "check", "--file", fixture.data + "/waku-push.sqlite.replaced", "--json", identified: true
        ).json(Inspection.self)
        #expect(kept.registrations?.count == 1)
    }

    @Test func check() async throws {
        let fixture = try await AdminFixture()
        let sound = try await fixture.admin("check", identified: true)
        #expect(sound.status == 0, "\(sound.errors)")
        #expect(sound.field("integrity") == "ok")
        #expect(sound.field("registrations") == "3, all decrypted")
        #expect(sound.field("notifications") == "1, all decrypted")
        #expect(try await fixture.admin("check").field("sealed rows") == "not decrypted: --identity is missing")

        // The daemon's options, repeated: its database belongs to the first identity.
        let other = try KeyFile(in: fixture.folder, "other.key")
        let several = try await fixture.admin("check", "--identity", fixture.server.path, "--identity", other.path)
        #expect(several.field("registrations") == "3, all decrypted", "\(several.errors)")
        let reversed = try await fixture.admin("check", "--identity", other.path, "--identity", fixture.server.path)
        #expect(reversed.failure?.contains("belongs to another identity") == true, "\(reversed.errors)")

        // A row is altered by somebody without the key.
        let path = fixture.data + "/waku-push.sqlite"
        let database = try DatabaseQueue(path: path)
        try await database.write { try $0.execute(sql: "UPDATE registration SET version = version + 1 WHERE id = 1") }
        try database.close()
        let damaged = try await fixture.admin("check", identified: true)
        #expect(damaged.status == 65)
        #expect(damaged.failure?.contains("is damaged: restore a backup") == true)
        #expect(damaged.field("registrations") == "1 of 3 can't be decrypted")
        let backup = try await fixture.admin("backup", fixture.folder.path + "/backup", identified: true)
        #expect(backup.status == 65)
        #expect(backup.failure?.hasPrefix("the database at \(path) is damaged") == true, "\(backup.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path).filter { $0.hasPrefix("backup") } == [])
    }

    @Test func failedBackupsLeaveNoFile() async throws {
        let fixture = try await AdminFixture()
        let path = fixture.data + "/waku-push.sqlite"
        let database = try DatabaseQueue(path: path)
        try await database.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('session 999')") }
        try database.close()
        let refused = try await fixture.admin("backup", fixture.folder.path + "/backup")
        #expect(refused.status == 65)
        #expect(refused.failure == "the database in \(fixture.data) was made by a newer waku-push: run that version")
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path).filter { $0.hasPrefix("backup") } == [])
    }

    /// The backup that an upgrade begins with, made by the program that is installed already.
    @Test func aDatabaseOfAnOlderReleaseIsBackedUpAsItIs() async throws {
        let folder = try TemporaryFolder()
        let key = try KeyFile(in: folder, "id.key")
        let (data, backup) = (folder.path + "/data", folder.path + "/backup")
        let older = NodeAssembly.parts.map { part in
            StorePart(part.name, tables: part.tables, migrations: Array(part.migrations.prefix(max(part.migrations.count - 1, 1))))
        }
        let lock = try DataFolder(locking: data)
        try SQLiteStore(folder: data, storageKey: Sealer.storageKey(of: key.key), parts: older).close()
        lock.unlock()
        func migrations(_ path: String) throws -> [String] {
            try DatabaseQueue(path: path).read { try String.fetchAll($0, sql: "SELECT identifier FROM grdb_migrations ORDER BY 1") }
        }
        let before = try migrations(DataFolder.databasePath(in: data))
        let listed = try await run("admin", "registrations", "list", "--data", data)
        #expect(listed.status == 65 && listed.failure?.contains("make a backup (waku-push admin backup), then start") == true)
        let made = try await run("admin", "backup", backup, "--data", data, "--identity", key.path)
        #expect(made.status == 0 && made.field("integrity") == "ok", "\(made.errors)")
        #expect(try migrations(backup) == before && migrations(DataFolder.databasePath(in: data)) == before)
        #expect(before != NodeAssembly.parts.flatMap { part in part.migrations.indices.map { "\(part.name) \($0 + 1)" } }.sorted())
        #expect(try await run("admin", "restore", backup, "--data", folder.path + "/other", "--identity", key.path).status == 0)
    }

    @Test func rotate() async throws {
        let fixture = try await AdminFixture()
        let shown = try await fixture.admin("registrations", "show", fixture.bob.keyHash.hex, "--reveal", identified: true).output
        #expect(shown.contains(AdminFixture.deviceToken))
        for _ in 0..<2 {
            let rotated = try await fixture.admin("rotate-storage-key", identified: true)
            #expect(rotated.status == 0, "\(rotated.errors)")
            #expect(rotated.output.hasPrefix("4 rows are encrypted with a new storage key."))
            #expect(try await fixture.admin("check", "--json", identified: true).json(Inspection.self).registrations?.unreadable == 0)
            #expect(
                try await fixture.admin("registrations", "show", fixture.bob.keyHash.hex, "--reveal", identified: true).output == shown)
        }
        let other = try KeyFile(in: fixture.folder, "other.key")
        #expect(try await fixture.admin("rotate-storage-key", "--identity", other.path).status == 65)
        #expect(try await fixture.admin("rotate-storage-key").status == 64)
    }
}
