import CurlClient
import Foundation
import TestSupport
import Testing
import WakuCrypto

/// Full and read-only file systems.
@Suite(.timeLimit(.minutes(5)))
struct DiskFaultTests {
    private let folder: TemporaryFolder
    private let server: KeyFile
    private var data: String { folder.path + "/data" }
    private var standard: [String] { ["--identity", server.path, "--data", data] }

    init() throws {
        folder = try TemporaryFolder()
        server = try KeyFile(in: folder, "id.key")
    }

    private func register(_ daemon: Daemon, _ client: KeyFile) async throws -> Ended {
        try await run(
            "client", "register", "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "60s", "--identity", client.path,
            "--device-token", "5ec2e7de71ce70ce", "--apn-topic", "app")
    }

    /// Registers one client after the other until the daemon can't keep it. Returns those that it kept.
    private func registerUntilRefused(_ daemon: Daemon) async throws -> [KeyFile] {
        var kept: [KeyFile] = []
        for number in 0..<200 {
            let client = try KeyFile(in: folder, "client \(number).key")
            let registered = try await register(daemon, client)
            guard registered.status == 0 else {
                #expect(registered.failure == "the server refused: INTERNAL_ERROR")
                return kept
            }
            kept.append(client)
        }
        Issue.record("the disk took everything")
        return kept
    }

    private func readiness(_ daemon: Daemon) async throws -> String {
        String(decoding: try await daemon.get("/readyz").body, as: UTF8.self)
    }

    private func expectQueriesFind(_ clients: [KeyFile], _ daemon: Daemon) async throws {
        for client in clients {
            let found = try await run(
                "client", "query", "--relay", daemon.relayURL, "--server", server.publicKey, "--timeout", "60s", "--registrant",
                client.publicKey)
            #expect(found.status == 0, "\(found.errors)")
        }
    }

    @Test("A daemon whose database is deleted copies its rows and stops on SIGTERM; the next one starts once they are restored")
    func deletedDatabase() async throws {
        let daemon = try await Daemon.start(standard)
        let client = try KeyFile(in: folder, "client.key")
        #expect(try await register(daemon, client).status == 0)
        try FileManager.default.removeItem(atPath: data + "/waku-push.sqlite")
        let copy = data + "/waku-push.sqlite.rescued"
        try await eventually { try await readiness(daemon).contains("waku-push admin restore \(copy)") }
        #expect(await daemon.stop().status == 0)
        let refused = try await run(["serve", "--relay", "loopback"] + standard)
        #expect(refused.status == 65)
        #expect(refused.failure?.contains("waku-push admin restore \(copy)") == true, "\(refused.errors)")
        #expect(try await run(["admin", "restore", copy] + ["--data", data, "--identity", server.path]).status == 0)
        let next = try await Daemon.start(standard)
        try await expectQueriesFind([client], next)
        _ = await next.stop()
    }

    @Test("A command whose output can't be written fails", arguments: [">/dev/full", ">&-"])
    func fullOutput(redirection: String) async throws {
        let command = ["identity", "new", "--out", folder.path + "/new.key"]
        let ended = try ChildProcess(command, shell: #"exec "$0" "$@" \#(redirection)"#)
        #expect(await ended.status == 74)
        #expect(ended.errors == "waku-push: can't write to standard output\n")
    }

    @Test("A log that can't be written does not stop the daemon", arguments: ["2>/dev/full", "2>&-", "2>&1 | true"])
    func fullLog(redirection: String) async throws {
        // The pipe's reader has exited before the first line is written.
        let shell =
            redirection.hasSuffix("true")
            ? #"mkfifo "$PWD/log"; (true <"$PWD/log") & exec "$0" "$@" 2>"$PWD/log""# : #"exec "$0" "$@" \#(redirection)"#
        let daemon = try await Daemon.start(standard + ["--log-level", "trace"], shell: shell)
        let client = try KeyFile(in: folder, "client.key")
        #expect(try await register(daemon, client).status == 0)
        #expect(await daemon.stop().status == 0)
    }

    @Test("No file or connection takes the number of a closed standard stream")
    func closedStreams() async throws {
        let daemon = try await Daemon.start(standard, shell: #"exec "$0" "$@" <&- >&- 2>&-"#)
        for number in 0...2 {
            let path = "/proc/\(daemon.process.processID)/fd/\(number)"
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path) == "/dev/null")
        }
        #expect(await daemon.stop().status == 0)
    }

    @Test("File size limit (RLIMIT_FSIZE) reached, then raised")
    func fileSizeLimit() async throws {
        let daemon = try await Daemon.start(standard)
        let first = try KeyFile(in: folder, "first.key")
        #expect(try await register(daemon, first).status == 0)
        // The soft limit, which may be raised again: as large as the larger of the files is.
        let files = try FileManager.default.contentsOfDirectory(atPath: data)
        let sizes = try files.map { try FileManager.default.attributesOfItem(atPath: data + "/" + $0)[.size] as? Int ?? 0 }
        #expect(try await command("/usr/bin/prlimit", "--pid", "\(daemon.process.processID)", "--fsize=\(sizes.max() ?? 0):"))
        let kept = [first] + (try await registerUntilRefused(daemon))
        try await eventually { try await readiness(daemon).hasPrefix("store: the disk fails under the database") }
        #expect(try await daemon.get("/healthz").status == 200)
        try await expectQueriesFind(Array(kept.suffix(2)), daemon)

        #expect(try await command("/usr/bin/prlimit", "--pid", "\(daemon.process.processID)", "--fsize=unlimited:"))
        try await eventually { try await readiness(daemon) == "ready\n" }
        let late = try KeyFile(in: folder, "late.key")
        #expect(try await register(daemon, late).status == 0)
        #expect(await daemon.stop().status == 0)

        let again = try await Daemon.start(standard)
        try await expectQueriesFind(kept + [late], again)
        #expect(await again.stop().status == 0)
    }

    /// A file system of its own, in memory, that the process alone sees: it needs user namespaces, which some machines forbid.
    @Test("A full disk, then free space", .enabled(if: DiskFaultTests.mayMount, "user namespaces are not allowed here"))
    func fullDisk() async throws {
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        let mount = #"mount -t tmpfs -o size=1536k,mode=0700 tmpfs "$DISK" && exec "$0" "$@""#
        let daemon = try await Daemon.start(
            standard, environment: ["DISK": data], shell: #"exec unshare --user --map-root-user --mount sh -c '\#(mount)' "$0" "$@""#)
        let first = try KeyFile(in: folder, "first.key")
        #expect(try await register(daemon, first).status == 0)

        // Its folder, seen from here.
        let filler = "/proc/\(daemon.process.processID)/root\(data)/filler"
        #expect(FileManager.default.createFile(atPath: filler, contents: nil))
        let file = try #require(FileHandle(forWritingAtPath: filler))
        while (try? file.write(contentsOf: Data(repeating: 1, count: 1024))) != nil {}
        try file.close()

        let kept = try await registerUntilRefused(daemon)
        try await eventually {
            try await readiness(daemon).hasPrefix("store: no disk space for the database in the data folder: free some")
        }
        #expect(try await daemon.get("/healthz").status == 200)
        try await expectQueriesFind([first] + kept.suffix(2), daemon)

        try FileManager.default.removeItem(atPath: filler)
        try await eventually { try await readiness(daemon) == "ready\n" }
        let late = try KeyFile(in: folder, "late.key")
        #expect(try await register(daemon, late).status == 0)
        try await expectQueriesFind([first] + kept + [late], daemon)
        #expect(await daemon.stop().status == 0)
    }

    /// The data folder is mounted read-only for the process alone.
    @Test(
        "A read-only file system is named, and its database can be saved",
        .enabled(if: DiskFaultTests.mayMount, "user namespaces are not allowed here"))
    func readOnlyFileSystem() async throws {
        #expect(await (try Daemon.start(standard)).stop().status == 0)
        let mount = #"mount --bind "$DISK" "$DISK" && mount -o remount,bind,ro "$DISK" && exec "$0" "$@""#
        let shell = #"exec unshare --user --map-root-user --mount sh -c '\#(mount)' "$0" "$@""#
        func ended(_ arguments: [String]) async throws -> (status: Int32, errors: String) {
            let child = try ChildProcess(arguments, environment: ["DISK": data], shell: shell)
            return (await child.status, child.errors)
        }
        for command in [["serve", "--http", "127.0.0.1:\(try freePort())"], ["config", "check"]] {
            let (status, errors) = try await ended(command + standard)
            #expect(status == 77, "\(command): \(errors)")
            #expect(errors.contains("is on a read-only file system: mount it for writing"), "\(command): \(errors)")
        }
        let (backup, export) = (
            ["admin", "backup", folder.path + "/backup"], ["admin", "registrations", "export", folder.path + "/export"]
        )
        for (number, command) in [backup, export, ["admin", "registrations", "list"]].enumerated() {
            let (status, errors) = try await ended(command + standard)
            #expect(status == 0, "\(command): \(errors)")
            #expect(errors.contains("is not recorded") == (number < 2), "\(command): \(errors)")
        }
        // As after a clean stop: no log, and no index of one.
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: data + "/waku-push.sqlite" + suffix) }
        #expect(try await ended(["admin", "backup", folder.path + "/backup 2"] + standard).status == 0)
        #expect(try await ended(["admin", "check"] + standard).status == 0)
        // A log without an index can't be read.
        #expect(FileManager.default.createFile(atPath: data + "/waku-push.sqlite-wal", contents: Data(repeating: 1, count: 4096)))
        let (status, errors) = try await ended(["admin", "backup", folder.path + "/backup 3"] + standard)
        #expect(status == 77 && errors.contains("copy the folder and give the copy by --data"), "\(errors)")
        let copy = folder.path + "/copy"
        try FileManager.default.copyItem(atPath: data, toPath: copy)
        let saved = try await run("admin", "backup", folder.path + "/backup 3", "--data", copy, "--identity", server.path)
        #expect(saved.status == 0, "\(saved.errors)")
    }

    @Test("An export to a full disk leaves no file", .enabled(if: DiskFaultTests.mayMount, "user namespaces are not allowed here"))
    func exportToFullDisk() async throws {
        #expect(await (try Daemon.start(standard)).stop().status == 0)
        let disk = folder.path + "/disk"
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: false)
        let mount = #"mount -t tmpfs -o size=64k tmpfs "$DISK"; cat /dev/zero >"$DISK/filler"; "$0" "$@"; code=$?; ls "$DISK"; exit $code"#
        let child = try ChildProcess(
            ["admin", "registrations", "export", disk + "/export"] + standard, environment: ["DISK": disk],
            shell: #"exec unshare --user --map-root-user --mount sh -c '\#(mount)' "$0" "$@""#)
        #expect(await child.status == 73, "\(child.errors)")
        #expect(child.errors.contains("\(disk)/export can't be written: is the disk full?"), "\(child.errors)")
        #expect(child.output == "filler\n")
    }

    private static let mayMount: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "unshare --user --map-root-user --mount mount -t tmpfs tmpfs /mnt"]
        process.standardError = FileHandle.nullDevice
        guard (try? ChildProcess.start(process)) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    private func command(_ path: String, _ arguments: String...) async throws -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        try ChildProcess.start(process)
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    /// Not as root, which ignores file modes.
    @Test("A read-only database is refused at the start", .enabled(if: geteuid() != 0, "root may write anything"))
    func readOnly() async throws {
        #expect(await (try Daemon.start(standard)).stop().status == 0)
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: data + "/waku-push.sqlite")
        let ended = try await run(["serve", "--http", "127.0.0.1:\(try freePort())"] + standard)
        #expect(ended.status == 77)
        #expect(ended.failure?.contains("can't be written to: give this user access to it") == true)
    }
}
