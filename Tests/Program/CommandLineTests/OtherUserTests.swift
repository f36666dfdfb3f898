import Foundation
import TestSupport
import Testing

/// Commands that a user runs who may not use the daemon's data folder.
@Suite(.timeLimit(.minutes(5)))
struct OtherUserTests {
    private let node: OperatedNode

    init() throws {
        node = try OperatedNode()
    }

    /// As a user without any permission if the tests run as root; otherwise without the permissions of the folder.
    private func refused(_ arguments: [String]) async throws -> Ended {
        guard geteuid() == 0 else {
            chmod(node.data, 0)
            defer { chmod(node.data, 0o700) }
            return try await run(arguments)
        }
        let child = try ChildProcess(
            arguments, shell: #"exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$0" "$@""#)
        return Ended(status: await child.status, output: child.output, errors: child.errors)
    }

    @Test(
        arguments: [
            ["registrations", "list"], ["outbox", "list"], ["status"], ["health"], ["peers"], ["check"], ["backup", "/nonexistent/file"],
        ], [0o700, 0o755])
    func permissionIsRefusedWithARemedy(command: [String], parentMode: Int) async throws {
        let daemon = try await node.start()
        defer { node.gorush.stop() }
        #expect(await daemon.stop().status == 0)
        chmod(node.folder.path, mode_t(parentMode))
        let ended = try await refused(["admin"] + command + ["--data", node.data])
        #expect(ended.status == 77, "\(ended.errors)")
        #expect(ended.failure?.hasPrefix("this user may not") == true && ended.errors.contains("root"), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
    }

    @Test func doctorSaysThatTheDatabaseMayNotBeRead() async throws {
        let daemon = try await node.start()
        defer { node.gorush.stop() }
        #expect(await daemon.stop().status == 0)
        let ended = try await refused(["doctor", "--data", node.data])
        #expect(ended.output.contains("this user may not read"), "\(ended.output)\(ended.errors)")
    }

    /// A service whose operator works as root.
    @Test(.enabled(if: geteuid() == 0))
    func filesThatRootMakesBelongToTheFoldersOwner() async throws {
        let daemon = try await node.start()
        defer { node.gorush.stop() }
        #expect(try await node.register(daemon).status == 0)
        #expect(await daemon.stop().status == 0)
        let (backup, export, nobody) = (node.folder.path + "/backup", node.folder.path + "/export", uid_t(65534))
        #expect(try await node.admin("backup", backup, identified: true).status == 0)
        #expect(try await node.admin("registrations", "export", export, identified: true).status == 0)
        chmod(node.folder.path, 0o755)
        for command in [["restore", backup], ["registrations", "import", export], ["restore", backup]] {
            // An import makes the database, a restore replaces it.
            if command[0] == "registrations" { try FileManager.default.removeItem(atPath: node.data) }
            mkdir(node.data, 0o700)
            chown(node.data, nobody, nobody)
            for file in try FileManager.default.contentsOfDirectory(atPath: node.data) { chown(node.data + "/" + file, nobody, nobody) }
            #expect(try await run(["admin"] + command + ["--data", node.data, "--identity", node.server.path]).status == 0)
            for file in try FileManager.default.contentsOfDirectory(atPath: node.data) {
                var status = stat()
                #expect(lstat(node.data + "/" + file, &status) == 0 && status.st_uid == nobody, "\(file) after \(command)")
            }
        }
        // A file that root copied there: the remedy is not to run the daemon as root.
        chown(node.data + "/waku-push.sqlite", 0, 0)
        let ended = try await refused(["admin", "check", "--data", node.data])
        #expect(ended.status == 77)
        let remedy = "which belongs to root: as root, chown nobody: \(node.data)/waku-push.sqlite*"
        #expect(ended.failure?.hasSuffix(remedy) == true, "\(ended.errors)")
    }

    /// The daemon's user could make a link to a file of root.
    @Test(.enabled(if: geteuid() == 0))
    func filesThatWereThereKeepTheirOwner() async throws {
        let daemon = try await node.start()
        defer { node.gorush.stop() }
        #expect(await daemon.stop().status == 0)
        let other = node.folder.path + "/other"
        #expect(FileManager.default.createFile(atPath: other, contents: nil) && link(other, node.data + "/audit.log") == 0)
        chown(node.data, 65534, 65534)
        #expect(try await node.admin("backup", node.folder.path + "/backup", identified: true).status == 0)
        var status = stat()
        #expect(stat(other, &status) == 0 && status.st_uid == 0)
    }

    @Test(.timeLimit(.minutes(1)))
    func aPipeIsNotWaitedFor() async throws {
        let pipe = node.folder.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        for arguments in [["check", "--file", pipe], ["restore", pipe]] {
            let ended = try await run(["admin"] + arguments + ["--data", node.data, "--identity", node.server.path])
            #expect(ended.status == 65)
            #expect(ended.failure?.contains("is not a regular file") == true, "\(ended.errors)")
        }
    }
}
