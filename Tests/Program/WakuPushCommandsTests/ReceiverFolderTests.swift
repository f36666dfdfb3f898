import TestSupport
import Testing

@testable import WakuPushCommands

@Suite("The folder of client listen")
struct ReceiverFolderTests {
    @Test("One process uses it at a time")
    func lock() throws {
        let parent = try TemporaryFolder()
        let path = parent.path + "/desktop"
        for _ in 0..<2 {
            let folder = try ReceiverFolder(path)
            let error = #expect(throws: CommandFailure.self) { try ReceiverFolder(path) }
            #expect(error?.code == .unavailable && error?.message.contains("in use by another client listen") == true)
            withExtendedLifetime(folder) {}
        }
    }
}
