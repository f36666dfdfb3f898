import Foundation
import NodeAssembly
import Storage
import StoreContract
import StoreSQLite
import StatusProtocol
import TestSupport
import Testing
import Core
import WakuCrypto

@testable import StatusServer

/// Backup, restore, import and key rotation, beside a running daemon or killed.
@Suite(.timeLimit(.minutes(5)))
struct AdminRecoveryTests {
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

    @Test(
        "A signal that ends a backup or an export leaves no file",
        arguments: [["backup"], ["registrations", "export"]], [SIGTERM, SIGINT, SIGHUP])
    func interruptedFile(command: [String], signal: Int32) async throws {
        let node = try OperatedNode()
        defer { node.gorush.stop() }
        node.record(await (try await node.start()).stop())
        let folder = try TemporaryFolder()
        let arguments = ["admin"] + command + [folder.path + "/file", "--data", node.data, "--identity", node.server.path]
        // It is suspended as soon as it begins to write, unless it was faster.
        for _ in 0..<20 {
            // Tests that a script starts in the background inherit ignored signals, and the command leaves those ignored.
            let child = try ChildProcess(arguments, shell: #"exec env --default-signal=INT,HUP "$0" "$@""#)
            while access(folder.path + "/file.partial", F_OK) != 0, child.isRunning {}
            child.send(SIGSTOP)
            child.send(signal)
            child.send(SIGCONT)
            let status = await child.status
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect([0, -signal].contains(status) && left.allSatisfy { $0 == "file" })
            if left.isEmpty, status == -signal { return }
            unlink(folder.path + "/file")
        }
        Issue.record("the command was never interrupted")
    }

    @Test(
        "A signal ends the first process of a container, too, and leaves no file",
        .enabled(if: FirstProcess.isAllowed, "user namespaces are not allowed here"))
    func interruptedFirstProcess() async throws {
        let node = try OperatedNode()
        defer { node.gorush.stop() }
        node.record(await (try await node.start()).stop())
        let folder = try TemporaryFolder()
        let file = folder.path + "/file"
        for _ in 0..<20 {
            let child = try FirstProcess.start(
                ["admin", "backup", file, "--data", node.data, "--identity", node.server.path], endingAt: file + ".partial")
            let status = await child.status
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect([0, 128 + SIGTERM].contains(status) && left.allSatisfy { $0 == "file" }, "\(child.errors)")
            if left.isEmpty { return }
            unlink(file)
        }
        Issue.record("the command was never interrupted")
    }

    /// After a backup under load, loss of all data and a restore, the client still gets its answers.
    @Test func backupAndRestore() async throws {
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
        try await eventually { try await node.admin("registrations", "stats").field("installations, APN") != "1" }
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
        #expect(restored.field("registrations") == "\(count), all decrypted")
        let again = try await node.start()
        #expect(try await node.query(again).rows.dropFirst().contains(["bobs-phone", "1", "yes"]))
        #expect(try await node.client(again, "notify", "--registrant", node.bob.publicKey).status == 0)
        #expect(try await node.register(again).failure == "the server refused: VERSION_MISMATCH")
        node.record(await again.stop())
        #expect(node.leaks == [])
    }

    /// After a kill at any moment every row can be decrypted, and the next run completes the rotation.
    @Test func killedRotationsLeaveADatabaseThatOpens() async throws {
        let folder = try TemporaryFolder()
        let server = try KeyFile(in: folder, "id.key")
        let data = folder.path + "/data"
        let client = TestClient(of: server.key.publicKey)
        let count = LongTests.areEnabled ? 4000 : 1000
        let killLimit = LongTests.areEnabled ? 4 : 2
        let lock = try DataFolder(locking: data)
        let store = try NodeAssembly.store(in: data, of: server.key)
        let registrations = Registrations(store.sealer)
        let results = await store.commitEach(
            (0..<count).map { number in
                let key = RegistrationKey(keyHash: client.keyHash, installationID: InstallationID("phone-\(number)"))
                let registration = client.registration { $0.installationID = key.installationID }
                return registrations.store(registration, bytes: registration.encoded(), as: key, at: .now())
            })
        for result in results { try result.get() }
        try await NodeRows.write(to: store)
        try store.close()
        lock.unlock()

        let path = DataFolder.databasePath(in: data)
        func inspect() throws -> StoreInspection {
            try StoreInspection(of: path, storageKey: Sealer.storageKey(of: server.key), parts: NodeAssembly.parts)
        }
        // A rotation deletes the topic keys, which are derived again.
        func kept(_ found: StoreInspection) -> [String: StoreInspection.Rows]? { found.rows?.filter { $0.key != "topic keys" } }
        let whole = try #require(kept(try inspect()))
        #expect(whole.values.allSatisfy { $0.count > 0 && $0.unreadable == 0 }, "\(whole)")
        var (kills, rotations) = (0, 0)
        var delay = Duration.milliseconds(20)
        while true {
            let child = try ChildProcess(["admin", "rotate-storage-key", "--data", data, "--identity", server.path])
            try await Task.sleep(for: delay)
            child.send(SIGKILL)
            let status = await child.status
            let found = try inspect()
            #expect(kept(found) == whole)
            #expect(found.problems == [])
            if status == 0 {
                #expect(!found.isRotationUnfinished)
                // On a busy machine a kill may come too late: then the next rotation is killed.
                rotations += 1
                if kills >= killLimit || rotations == 20 { break }
                delay = .milliseconds(20)
            } else {
                kills += 1
                delay += max(.milliseconds(15), delay / 8)
            }
        }
        #expect(kills >= killLimit)
    }

    /// SQLite would write a copy of the database to TMPDIR, /var/tmp or /tmp.
    @Test func aRotationNeedsSpaceInTheDataFolderOnly() async throws {
        let (folder, temporary) = (try TemporaryFolder(), try TemporaryFolder())
        let server = try KeyFile(in: folder, "id.key")
        let data = folder.path + "/data"
        let lock = try DataFolder(locking: data)
        let store = try NodeAssembly.store(in: data, of: server.key)
        // More than SQLite holds in memory.
        for number in 0..<16 {
            try await store.commit(StoreCommand.change([Properties.set("filler \(number)", to: [UInt8](repeating: 1, count: 1 << 20))]))
        }
        try store.close()
        lock.unlock()
        // A file that was created and removed changes the time of its folder.
        let former = Date(timeIntervalSince1970: 1_000_000_000)
        try FileManager.default.setAttributes([.modificationDate: former], ofItemAtPath: temporary.path)
        // A command that ran in the process of the tests has set SQLITE_TMPDIR for its own folder.
        let rotated = try ChildProcess(
            ["admin", "rotate-storage-key", "--data", data, "--identity", server.path], environment: ["TMPDIR": temporary.path],
            shell: #"unset SQLITE_TMPDIR; exec "$0" "$@""#)
        #expect(await rotated.status == 0, "\(rotated.errors)")
        #expect(try FileManager.default.attributesOfItem(atPath: temporary.path)[.modificationDate] as? Date == former)
    }

    /// The daemon has stopped, while an import beside it waits for the rest of its file.
    @Test func nothingReplacesTheDatabaseDuringAnImport() async throws {
        let node = try OperatedNode()
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.register(daemon).status == 0)
        let (file, pipe, backup) = (node.folder.path + "/registrations", node.folder.path + "/pipe", node.folder.path + "/backup")
        #expect(try await node.admin("registrations", "export", file, identified: true).status == 0)
        #expect(try await node.admin("backup", backup, identified: true).status == 0)
        #expect(mkfifo(pipe, 0o600) == 0)
        let importing = try ChildProcess(
            ["admin", "registrations", "import", pipe, "--data", node.data, "--identity", node.server.path])
        var descriptor: Int32 = -1
        try await eventually {
            descriptor = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            return descriptor >= 0
        }
        node.record(await daemon.stop())
        for command in [["restore", backup], ["rotate-storage-key"], ["migrate", "--to", "postgresql://push@127.0.0.1:1/push"]] {
            let refused = try await node.recorded(["admin"] + command + ["--data", node.data, "--identity", node.server.path])
            #expect(refused.status == 69 && refused.failure?.contains("is in use by another command") == true, "\(refused.errors)")
        }
        // A daemon may start.
        node.record(await (try await node.start()).stop())
        try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: Data(contentsOf: URL(fileURLWithPath: file)))
        close(descriptor)
        #expect(await importing.status == 0, "\(importing.errors)")
        #expect(importing.output.hasPrefix("0 imported, 1 kept"))
        #expect(try await node.admin("restore", backup, identified: true).status == 0)
        #expect(node.leaks == [])
    }

    /// A running daemon answers queries about imported registrations at once.
    @Test func importBesideADaemon() async throws {
        let node = try OperatedNode()
        defer { node.gorush.stop() }
        let first = try await node.start()
        #expect(try await node.register(first).status == 0)
        let file = node.folder.path + "/registrations"
        #expect(try await node.admin("registrations", "export", file, identified: true).status == 0)
        #expect(await first.stop().status == 0)
        try FileManager.default.removeItem(atPath: node.data)

        let second = try await node.start()
        #expect(try await node.admin("registrations", "import", file, identified: true).output.hasPrefix("1 imported, 0 "))
        #expect(try await node.query(second).rows.last == ["bobs-phone", "1", "yes"])
        node.record(await second.stop())
        #expect(node.leaks == [])
    }
}
