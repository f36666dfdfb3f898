import Foundation
import Testing

@testable import NodeMetrics

struct ProcessFiguresTests {
    @Test func openFilesAreCounted() throws {
        let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        // Standard input, output and error, and the file; other tests open more.
        #expect(try #require(ProcessFigures.openFileCount(limit: 0)) >= 4)
    }

    /// A file is needed to count them.
    @Test func whenNoFileCanBeOpenedAllAreInUse() {
        for (code, count) in [(EMFILE, 1024), (ENFILE, 1024), (EACCES, nil), (ENOENT, nil)] as [(Int32, Int?)] {
            let found = ProcessFigures.openFileCount(limit: 1024) { _ in
                errno = code
                return nil
            }
            #expect(found == count, "\(code)")
        }
    }
}
