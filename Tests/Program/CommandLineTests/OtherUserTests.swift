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
