import Foundation
import GRDB
import Storage
import TestSupport
import Testing

@testable import StoreSQLite

@Suite("Checkpoints of the log")
struct CheckpointTests {
    private let limit = CheckpointSchedule.limit

    @Test("The log is copied once it has grown to the limit, and the rest by the commit that follows the copy")
    func schedule() {
        var schedule = CheckpointSchedule()
        for _ in 0..<3 {
            #expect(schedule.committed(pages: limit - 1) == nil)
            #expect(schedule.committed(pages: 1) == .copy)
            #expect(schedule.committed(pages: 2 * limit) == nil)
            schedule.copied(.copied)
            #expect(schedule.committed(pages: 2 * limit) == .finish)
        }
    }

    @Test("What a read keeps in the log is left to the next copy, not to the writer")
    func obstructed() {
        var schedule = CheckpointSchedule()
        #expect(schedule.committed(pages: limit) == .copy)
        schedule.copied(.obstructed)
        #expect(schedule.committed(pages: limit - 1) == nil)
        #expect(schedule.committed(pages: 1) == .copy)
    }

    @Test("The writer copies when the other connection fails, and, again and again, when its thread does not run")
    func withoutCopies() {
        var schedule = CheckpointSchedule()
        #expect(schedule.committed(pages: limit) == .copy)
        schedule.copied(.failed)
        #expect(schedule.committed(pages: 0) == .finish)
        #expect(schedule.committed(pages: limit) == .copy)
        for _ in 0..<2 {
            #expect(schedule.committed(pages: CheckpointSchedule.starvation - 1) == nil)
            #expect(schedule.committed(pages: 1) == .finish)
        }
        schedule.copied(.copied)
        #expect(schedule.committed(pages: 0) == .finish)
    }

    @Test("A transaction may exceed the limit alone")
    func largeTransaction() {
        var schedule = CheckpointSchedule()
        #expect(schedule.committed(pages: limit + 1) == .copy)
    }

    @Test("Only the end of its own copy counts")
    func otherCopies() {
        var schedule = CheckpointSchedule()
        schedule.copied(.copied)
        #expect(schedule.committed(pages: limit) == .copy)
        schedule.copied(.copied)
        schedule.copied(.copied)
        #expect(schedule.committed(pages: 0) == .finish)
        #expect(schedule.committed(pages: 0) == nil)
    }

    @Test("While commits go on, the log is copied into the database, and begins again")
    func copying() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let content = [UInt8](repeating: 7, count: 4 << 20)
        func byteCount(of path: String) throws -> Int {
            try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        }
        var version: Int64 = 0
        func grow() async throws {
            version += 1
            try await store.commit(Records.put("large", version: version, content: content, store.sealer))
        }
        while try byteCount(of: fixture.path + "-wal") < limit * 4096 { try await grow() }
        try await grow()
        try await eventually { try byteCount(of: fixture.path) > content.count }
        // Unless all of it is copied, the log grows with each further commit.
        try await eventually {
            let before = try byteCount(of: fixture.path + "-wal")
            try await grow()
            return try byteCount(of: fixture.path + "-wal") == before
        }
        // Without the other connection, the writer would copy it once it is five times as long.
        #expect(try byteCount(of: fixture.path + "-wal") < 3 * limit * 4096)
        #expect(try store.version(of: "large") == version)
        try store.close()
        #expect(try fixture.reopened().version(of: "large") == version)
    }

    @Test("After a long read, the log is copied by the other connection alone")
    func longRead() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        func copy() async -> LogCopier.Outcome {
            await withCheckedContinuation { done in store.copier.copy { done.resume(returning: $0) } }
        }
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let reader = try DatabaseQueue(path: fixture.path, configuration: configuration)
        try await reader.writeWithoutTransaction { try $0.execute(sql: "BEGIN; SELECT count(*) FROM record") }
        #expect(await copy() == .copied)
        let content = [UInt8](repeating: 7, count: 4 << 20)
        for version in 1...6 as ClosedRange<Int64> {
            try await store.commit(Records.put("large", version: version, content: content, store.sealer))
        }
        #expect(await copy() == .obstructed)
        await store.maintain()
        #expect(store.failure == nil)
        #expect(try FileManager.default.attributesOfItem(atPath: fixture.path)[.size] as? Int ?? 0 < content.count)
        try await reader.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        #expect(await copy() == .copied)
        #expect(try FileManager.default.attributesOfItem(atPath: fixture.path)[.size] as? Int ?? 0 > content.count)
        // SQLite's own checkpoint would be part of a commit, however long the log is.
        #expect(try await store.queue.run { try Int.fetchOne($0, sql: "PRAGMA wal_autocheckpoint") } == 0)
    }

    @Test("What is left of the log after an interruption, as at a stop, is left to the next start")
    func interruption() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        try await store.commit(Records.put("large", version: 1, content: [UInt8](repeating: 7, count: 4 << 20), store.sealer))
        store.copier.interrupt()
        await store.maintain()
        #expect(store.failure == nil)
        try store.close()
        #expect(try FileManager.default.attributesOfItem(atPath: fixture.path + "-wal")[.size] as? Int ?? 0 > 4 << 20)
    }

    @Test("A log that grew far over the limit is cut off when it begins again")
    func shrinking() async throws {
        let fixture = try StoreFixture()
        let log = fixture.path + "-wal"
        func put(_ version: Int64) async throws {
            try await fixture.store.commit(Records.put("name", version: version, content: [1], fixture.store.sealer))
        }
        try await put(1)
        #expect(truncate(log, 1 << 30) == 0)
        await fixture.store.maintain()
        try await put(2)
        #expect(try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int == 2 * limit * 4096)
        #expect(try fixture.store.version(of: "name") == 2)
    }
}
