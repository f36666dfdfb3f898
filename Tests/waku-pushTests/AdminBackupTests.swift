import Foundation
import GRDB
import PushStore
import StatusProtocol
import TestSupport
import Testing
import Waku
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

    private struct Made: Decodable {
        let inspection: Inspection
    }

    /// Back up under load, lose everything, restore: the client still gets its answers.
    @Test func thereAndBack() async throws {
        let node = try OperatedNode()
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        let load = Task {
            var count = 0
            while !Task.isCancelled {
                guard try await node.register(daemon, installation: "phone-\(count)").status == 0 else { continue }
                count += 1
            }
            return count
        }
        try await wait { try await node.admin("registrations", "stats").field("installations, APN") != "1" }
        let backup = node.folder.path + "/backup"
        let made = try await node.admin("backup", backup, "--json", identified: true)
        #expect(made.status == 0, "\(made.errors)")
        let count = try #require(try made.json(Made.self).inspection.registrations?.count)
        #expect(count >= 2)
        #expect(try FileManager.default.attributesOfItem(atPath: backup)[.posixPermissions] as? Int == 0o600)
        load.cancel()
        _ = await load.result

        let refused = try await node.admin("restore", backup, identified: true)
        #expect(refused.status == 69)
        #expect(refused.failure?.contains("is in use by another waku-push") == true)
        node.record(await daemon.stop())
        try FileManager.default.removeItem(atPath: node.data)

        let restored = try await node.admin("restore", backup, identified: true)
        #expect(restored.status == 0, "\(restored.errors)")
        #expect(restored.field("registrations") == "\(count), all open")
        let again = try await node.start()
        #expect(try await node.query(again).rows.dropFirst().contains(["bobs-phone", "1", "yes"]))
        #expect(try await node.client(again, "notify", "--registrant", node.bob.publicKey).status == 0)
        #expect(try await node.register(again).failure == "the server refused: VERSION_MISMATCH")
        node.record(await again.stop())
        #expect(node.leaks == [])
    }

    @Test func whatIsNotReplaced() async throws {
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

    /// What was there stays beside it, whole.
    @Test func whatWasThereIsKept() async throws {
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
        #expect(sound.field("integrity") == "sound")
        #expect(sound.field("registrations") == "3, all open")
        #expect(sound.field("notifications") == "1, all open")
        #expect(try await fixture.admin("check").field("sealed rows") == "not opened: --identity is missing")

        // A row is altered by somebody who can't seal.
        let path = fixture.data + "/waku-push.sqlite"
        let database = try DatabaseQueue(path: path)
        try await database.write { try $0.execute(sql: "UPDATE registration SET version = version + 1 WHERE id = 1") }
        try database.close()
        let damaged = try await fixture.admin("check", identified: true)
        #expect(damaged.status == 65)
        #expect(damaged.failure?.contains("is damaged: restore a backup") == true)
        #expect(damaged.field("registrations") == "1 of 3 can't be opened")
        let backup = try await fixture.admin("backup", fixture.folder.path + "/backup", identified: true)
        #expect(backup.status == 65)
    }

    /// Killed at any moment, every row can be opened, and the next run makes an end of it.
    @Test func rotationsThatAreKilled() async throws {
        let folder = try TemporaryFolder()
        let server = try KeyFile(in: folder, "id.key")
        let data = folder.path + "/data"
        let client = TestClient(of: server.key.publicKey)
        let count = 4000
        let lock = try DataFolder(locking: data)
        let store = try Store(folder: data, storageKey: Store.storageKey(of: server.key))
        let results = await store.commitEach(Array(0..<count)) { transaction, number in
            let key = RegistrationKey(keyHash: client.keyHash, installationID: InstallationID("phone-\(number)"))
            let registration = client.registration { $0.installationID = key.installationID }
            try transaction.store(registration, bytes: registration.encoded(), as: key, at: .now())
        }
        for result in results { try result.get() }
        try store.close()
        lock.unlock()

        let path = DataFolder.databasePath(in: data)
        var (kills, rotations) = (0, 0)
        var delay = Duration.milliseconds(20)
        while true {
            let child = try ChildProcess(["admin", "rotate-storage-key", "--data", data, "--identity", server.path])
            try await Task.sleep(for: delay)
            child.send(SIGKILL)
            let status = await child.status
            let found = try StoreInspection(of: path, storageKey: Store.storageKey(of: server.key))
            #expect(found.registrations == StoreInspection.Rows(count: count, unreadable: 0))
            #expect(found.problems == [])
            if status == 0 {
                #expect(!found.isRotationUnfinished)
                // On a busy machine a kill may come too late: then the next rotation is killed.
                rotations += 1
                if kills > 3 || rotations == 20 { break }
                delay = .milliseconds(20)
            } else {
                kills += 1
                delay += max(.milliseconds(15), delay / 8)
            }
        }
        #expect(kills > 3)
    }

    @Test func rotate() async throws {
        let fixture = try await AdminFixture()
        let shown = try await fixture.admin("registrations", "show", fixture.bob.keyHash.hex, "--reveal", identified: true).output
        #expect(shown.contains(AdminFixture.deviceToken))
        for _ in 0..<2 {
            let rotated = try await fixture.admin("rotate-storage-key", identified: true)
            #expect(rotated.status == 0, "\(rotated.errors)")
            #expect(rotated.output.hasPrefix("4 rows are sealed under a new key."))
            #expect(try await fixture.admin("check", "--json", identified: true).json(Inspection.self).registrations?.unreadable == 0)
            #expect(
                try await fixture.admin("registrations", "show", fixture.bob.keyHash.hex, "--reveal", identified: true).output == shown)
        }
        let other = try KeyFile(in: fixture.folder, "other.key")
        #expect(try await fixture.admin("rotate-storage-key", "--identity", other.path).status == 65)
        #expect(try await fixture.admin("rotate-storage-key").status == 64)
    }
}
