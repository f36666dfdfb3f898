import Core
import NodeAssembly
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("The hashes of handled messages")
struct NodeStorageTests {
    private let folder: TemporaryFolder
    private let store: any Store

    init() throws {
        folder = try TemporaryFolder()
        store = try NodeAssembly.store(in: folder.path, of: .generate())
    }

    private func remember(_ count: Int, mark: UInt8, at time: Int64) async throws {
        let hash = MessageHash(bytes: [UInt8](repeating: mark, count: 32))
        try await store.commit(
            .change(NodeStorage.remember([MessageHash](repeating: hash, count: count), at: Timestamp(rawValue: time))))
    }

    /// The mark of each row and the number of its hashes.
    private func rows() throws -> [[Int]] {
        let marks = try store.read(NodeStorage.handledMessages()).map { Int($0.bytes[0]) }
        return Set(marks).sorted().map { mark in [mark, marks.count { $0 == mark }] }
    }

    @Test("Those from before the cursor are deleted, and none from after it")
    func forgotten() async throws {
        for mark in 1...4 { try await remember(2, mark: UInt8(mark), at: Int64(mark)) }
        try await store.commit(NodeStorage.forgetHandled(before: Timestamp(rawValue: 3)))
        #expect(try rows() == [[3, 2], [4, 2]])
        // Stored while the clock was slow: it waits until those before it are deleted.
        try await remember(1, mark: 5, at: 2)
        try await store.commit(NodeStorage.forgetHandled(before: Timestamp(rawValue: 3)))
        #expect(try rows() == [[3, 2], [4, 2], [5, 1]])
        try await store.commit(NodeStorage.forgetHandled(before: Timestamp(rawValue: 5)))
        #expect(try rows() == [])
    }

    /// It is a part of the commit with the cursors, every few seconds: a cursor that stands leaves up to 196,608 rows.
    @Test("The commit with the cursors reads one of them")
    func oneRow() throws {
        guard case .read(let reads, _) = NodeStorage.forgetHandled(before: .now()) else {
            Issue.record("reads nothing")
            return
        }
        #expect(reads.map(\.limit) == [1])
    }

    @Test("The oldest beyond 6 MiB are deleted")
    func limited() async throws {
        // 1 MiB each.
        for mark in 1...8 { try await remember(1 << 15, mark: UInt8(mark), at: Int64(mark)) }
        try await remember(1, mark: 9, at: 9)
        try await NodeStorage.limitHandled(in: store)
        #expect(try rows() == (4...8).map { [$0, 1 << 15] } + [[9, 1]])
        try await NodeStorage.limitHandled(in: store)
        #expect(try rows().count == 6)
    }
}
