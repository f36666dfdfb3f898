import Foundation
@testable import SessionProtocol
import TestSupport
import Testing

@Suite struct StorageServerFileTests {
    @Test func fileIsRead() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/nodes.json"
        let key = String(repeating: "ab", count: 32)
        try Data(#"[{"pubkey_x25519":"\#(key)","ip":"127.0.0.1","port":22,"swarm_id":"00000000000000ff"}]"#.utf8)
            .write(to: URL(fileURLWithPath: path))
        #expect(try StorageServerFile.read(path).servers.map(\.swarm) == [255])
    }

    @Test func fileThatIsBrokenOrMissingIsNamed() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/nodes.json"
        #expect(throws: StorageServerFile.Failure(path: path, reason: "No such file or directory")) { try StorageServerFile.read(path) }
        try Data("{".utf8).write(to: URL(fileURLWithPath: path))
        #expect(throws: StorageServerFile.Failure(path: path, reason: "not JSON")) { try StorageServerFile.read(path) }
        let unusable = #"[{"pubkey_x25519":"\#(String(repeating: "ab", count: 32))","ip":"","port":22,"swarm_id":"00000000000000ff"}]"#
        for text in ["[]", unusable] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            #expect(throws: StorageServerFile.Failure(path: path, reason: "it lists no storage server")) {
                try StorageServerFile.read(path)
            }
        }
        #expect(throws: StorageServerFile.Failure(path: folder.path, reason: "not a regular file")) {
            try StorageServerFile.read(folder.path)
        }
    }

    /// A pipe without a writer.
    @Test func pipeIsNotWaitedFor() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        #expect(throws: StorageServerFile.Failure(path: path, reason: "not a regular file")) { try StorageServerFile.read(path) }
    }
}
