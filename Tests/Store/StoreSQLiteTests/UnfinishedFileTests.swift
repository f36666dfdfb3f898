import Foundation
import TestSupport
import Testing

@testable import Storage

struct UnfinishedFileTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }

    private func text(_ name: String) throws -> String { try String(contentsOfFile: folder.path + "/" + name, encoding: .utf8) }

    /// Writes a file whose name can't be a hard link.
    private func write(_ name: String, failing code: Int32, before step: () throws -> Void = {}) throws {
        let file = try UnfinishedFile("file", at: folder.path + "/" + name)
        try Data("new".utf8).write(to: URL(fileURLWithPath: file.partialPath))
        try step()
        try file.finish { _, _ in
            errno = code
            return -1
        }
    }

    /// FAT has no hard links, nor have SMB shares.
    @Test(arguments: [EPERM, EOPNOTSUPP, ENOSYS]) func hardLinksAreNotNeeded(code: Int32) throws {
        try write("a", failing: code)
        #expect(try text("a") == "new")
        // Another program was faster.
        #expect(throws: StoreError.self) {
            try write("b", failing: code) { try Data("other".utf8).write(to: URL(fileURLWithPath: folder.path + "/b")) }
        }
        #expect(try text("b") == "other")
        #expect(try names() == ["a", "b"])
    }

    @Test func otherErrorsAreReported() throws {
        #expect(throws: StoreError.self) { try write("a", failing: EIO) }
        #expect(try names() == [])
    }
}
