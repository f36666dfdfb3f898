import Foundation
import TestSupport
import Testing

@testable import WakuPushCommands

@Suite("Files with secrets")
struct PrivateFileTests {
    private func failure(_ path: String) -> CommandFailure? {
        do throws(CommandFailure) {
            _ = try PrivateFile(kind: "identity file", path: path).read(upTo: 100, remedy: "make one")
            return nil
        } catch {
            return error
        }
    }

    @Test("The message names the cause")
    func causes() throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/file"
        try Data("secret".utf8).write(to: URL(filePath: file))
        #expect(failure(folder.path + "/none")?.message == "identity file \(folder.path)/none is missing: make one")
        #expect(failure(folder.path)?.message == "identity file \(folder.path) is a folder: name a file")
        #expect(failure(file + "/x")?.message == "identity file \(file)/x can't be read: Not a directory")
        chmod(file, 0o600)
        #expect(failure(file) == nil)
    }

    /// The first bytes of a process's memory can't be read.
    @Test func aFailingReadIsNoEmptyFile() {
        #expect(failure("/proc/self/mem")?.message == "identity file /proc/self/mem can't be read: Input/output error")
    }
}
