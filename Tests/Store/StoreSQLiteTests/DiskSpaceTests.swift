import Foundation
import Storage
import TestSupport
import Testing

struct DiskSpaceTests {
    @Test func aFullDiskIsNotBlamedOnAccess() {
        for code in [ENOSPC, EDQUOT] { #expect(DiskSpace.creationFailure(code).contains("the disk is full, or has no free inode")) }
        #expect(DiskSpace.creationFailure(EEXIST) == "exists already: choose another name")
        #expect(DiskSpace.creationFailure(EACCES, remedy: "remedy") == "can't be made: remedy")
    }

    @Test func spaceIsFoundByAFileThatIsDeleted() throws {
        let folder = try TemporaryFolder()
        #expect(DiskSpace.isLeft(beside: folder.path + "/database"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
        // The reason is not space.
        #expect(DiskSpace.isLeft(beside: folder.path + "/missing/database"))
    }

    @Test func aFolderHasFreeSpaceAndAMissingOneIsUnknown() throws {
        let folder = try TemporaryFolder()
        let space = try #require(DiskSpace(at: folder.path))
        #expect(space.bytes > 0 && space.inodes != 0)
        #expect(DiskSpace(at: folder.path + "/missing") == nil)
    }
}
