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

    /// A kill at any moment leaves the file complete or missing.
    @Test func aFileGetsItsNameOnceItIsComplete() throws {
        let folder = try TemporaryFolder()
        let file = PrivateFile(kind: "identity file", path: folder.path + "/file")
        let names = { try FileManager.default.contentsOfDirectory(atPath: folder.path) }
        var partial: (name: String, content: String)?
        try file.create("secret") { complete, path in
            partial = try? (complete, String(contentsOfFile: complete, encoding: .utf8))
            #expect(path == file.path && !FileManager.default.fileExists(atPath: path))
            return link(complete, path)
        }
        #expect(partial?.content == "secret\n" && partial?.name.hasPrefix(folder.path + "/") == true)
        #expect(try file.read(upTo: 100, remedy: "") == Array("secret\n".utf8) && names() == ["file"])
        // Neither an existing file nor one that another process makes meanwhile is replaced.
        let overtaken = PrivateFile(kind: "identity file", path: folder.path + "/other")
        for (file, link) in [(file, { _, _ in 0 }), (overtaken, { _, _ in failed(EEXIST) })] as [(PrivateFile, (String, String) -> Int32)] {
            let error = #expect(throws: CommandFailure.self) { try file.create("other", link: link) }
            #expect(error?.code == .cannotCreate && error?.message == "identity file \(file.path) exists already: choose another name")
        }
        #expect(try file.read(upTo: 100, remedy: "") == Array("secret\n".utf8) && names() == ["file"])
    }

    private func failed(_ code: Int32) -> Int32 {
        errno = code
        return -1
    }

    /// The first bytes of a process's memory can't be read.
    @Test func aFailingReadIsNoEmptyFile() {
        #expect(failure("/proc/self/mem")?.message == "identity file /proc/self/mem can't be read: Input/output error")
    }
}
