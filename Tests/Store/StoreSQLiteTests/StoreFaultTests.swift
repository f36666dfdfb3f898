import Foundation
import GRDB
import Storage
import StoreSQLite
import TestSupport
import Testing

/// Changes that were not stored are not acknowledged, failures are reported, and the recovery is noticed.
@Suite("A store whose disk fails", .timeLimit(.minutes(5)))
struct StoreFaultTests {
    let fixture: FaultyStoreFixture
    var faults: StoreFaults { fixture.faults }

    init() throws {
        fixture = try FaultyStoreFixture()
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        let name: String
        let code: ResultCode
        let operations: StoreFaults.Operations
        let complaint: String
        var testDescription: String { name }

        static let ofWriting = [
            Fault(name: "disk full", code: .SQLITE_FULL, operations: .write, complaint: "no disk space for the database"),
            Fault(name: "write error", code: .SQLITE_IOERR_WRITE, operations: .write, complaint: "the disk fails under the database"),
            Fault(name: "sync error", code: .SQLITE_IOERR_FSYNC, operations: .sync, complaint: "the disk fails under the database"),
            Fault(name: "read-only", code: .SQLITE_READONLY, operations: .write, complaint: "can't be written to"),
            Fault(name: "busy", code: .SQLITE_BUSY, operations: .lock, complaint: "is locked by another program"),
        ]
    }

    @Test("A failed write is neither acknowledged nor visible; reads continue, and the store recovers", arguments: Fault.ofWriting)
    func writing(fault: Fault) async throws {
        let store = try fixture.open()
        try await store.put("kept")
        #expect(store.failure == nil)

        faults.add(.code(fault.code.rawValue), to: fault.operations)
        let lost = (0..<5).map { "lost \($0)" }
        let results = await store.commitEach(lost.map { Records.put($0, store.sealer) })
        for result in results { #expect(throws: StoreError.self) { try result.get() } }
        #expect(faults.hits > 0)
        #expect(store.failure?.contains(fault.complaint) == true, "\(store.failure ?? "nothing")")
        #expect(try store.version(of: "kept") == 1)
        for name in lost { #expect(try store.version(of: name) == nil) }

        faults.clear()
        try await store.put("kept", version: 2)
        // One that succeeds does not show that the disk has space.
        #expect((store.failure != nil) == (fault.code == .SQLITE_FULL))
        try store.close()
        let reopened = try fixture.open()
        #expect(try reopened.version(of: "kept") == 2)
        for name in lost { #expect(try reopened.version(of: name) == nil) }
    }

    @Test("A commit may fail at any of its writes or syncs", arguments: Fault.ofWriting.prefix(4))
    func atAnyCall(fault: Fault) async throws {
        let store = try fixture.open()
        var version: Int64 = 1
        try await store.put("phone", version: version)
        for after in 0..<12 {
            faults.add(.code(fault.code.rawValue), to: fault.operations, of: .log, after: after, count: 1)
            if (try? await store.put("phone", version: version + 1)) != nil { version += 1 }
            #expect(try store.version(of: "phone") == version)
            faults.clear()
        }
        try await store.put("phone", version: version + 1)
        #expect(faults.hits > 0)
    }

    @Test("When the log can't be checkpointed, commits continue, and the failure is reported")
    func checkpoint() async throws {
        let store = try fixture.open()
        faults.add(.code(ResultCode.SQLITE_IOERR_WRITE.rawValue), to: .write, of: .database)
        try await store.put("phone")
        await store.maintain()
        #expect(store.failure?.contains("the disk fails under the database") == true)
        try await store.put("phone", version: 2)
        #expect(store.failure != nil)
        faults.clear()
        await store.maintain()
        #expect(store.failure == nil)
        try store.close()
        #expect(try fixture.open().version(of: "phone") == 2)
    }

    @Test("A checkpoint by another process is no failure")
    func otherCheckpoint() async throws {
        let store = try fixture.open()
        try await store.put("phone")
        faults.add(.code(ResultCode.SQLITE_BUSY.rawValue), to: .lock)
        await store.maintain()
        #expect(faults.hits > 0)
        #expect(store.failure == nil)
    }

    @Test("Closing does not wait for other processes, whose transactions continue")
    func closeBesideOthers() async throws {
        let store = try fixture.open()
        try await store.put("phone")
        let path = DataFolder.databasePath(in: fixture.folder.path)
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let reader = try DatabaseQueue(path: path, configuration: configuration)
        let writer = try DatabaseQueue(path: path, configuration: configuration)
        try await reader.writeWithoutTransaction { try $0.execute(sql: "BEGIN; SELECT count(*) FROM record") }
        try await store.put("phone", version: 2)
        try await writer.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE; DELETE FROM record") }
        try store.close()
        try await writer.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        try await reader.writeWithoutTransaction { db in
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM record") == 1)
            try db.execute(sql: "COMMIT")
        }
        #expect(try fixture.open().version(of: "phone") == nil)
    }

    @Test(
        "A read failure is reported until everything can be read again",
        arguments: [
            (ResultCode.SQLITE_IOERR_READ, "can't be read (SQLite code 266): look at the disk"),
            (.SQLITE_CORRUPT, "is damaged: restore a backup"),
        ])
    func reading(code: ResultCode, complaint: String) async throws {
        let first = try fixture.open()
        try await first.put("phone")
        try first.close()

        let store = try fixture.open()
        faults.add(.code(code.rawValue), to: .read)
        // Opening has cached some pages, but none of this table.
        #expect(throws: StoreError.self) { try store.version(of: "phone") }
        #expect(store.failure?.contains(complaint) == true)
        try await store.commit(.change([Properties.set("alive", to: [1])]))
        #expect(store.failure?.contains(complaint) == true)
        await store.check()
        #expect(store.failure?.contains(complaint) == true)
        faults.clear()
        #expect(store.failure?.contains(complaint) == true)
        await store.check()
        #expect(store.failure == nil)
        #expect(try store.version(of: "phone") == 1)
    }

    @Test("A check waits for no read in progress, which may hang, and keeps no other from running")
    func checkBesideReads() async throws {
        let store = try fixture.open()
        try await store.put("phone")
        let end = DispatchSemaphore(value: 0)
        await withCheckedContinuation { began in
            store.onReader {
                try? store.scan(Query(Records.table, [Records.name])()) { _ in
                    began.resume()
                    end.wait()
                    return false
                }
            }
        }
        await store.check()
        #expect(try store.version(of: "phone") == 1)
        end.signal()
    }

    @Test("An unreadable row fails only commands that read it, until it is replaced")
    func alteredRow() async throws {
        let store = try fixture.open()
        try await store.put("bad")
        try await store.put("good")
        for change in ["sealed = x'00112233'", "sealed = 7", "changed_at = 'then'", "version = x'ff'"] {
            let other = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
            try await other.write {
                try $0.execute(sql: "UPDATE record SET \(change) WHERE name = ?", arguments: [Data("bad".utf8)])
            }
            try other.close()
            let results = await store.commitEach(["good", "bad", "good"].map { Records.version(of: $0, store.sealer) })
            #expect(results.map { (try? $0.get()) != nil } == [true, false, true], "\(change)")
            #expect(store.failure?.contains("can't be opened: it was altered") == true)
            await store.check()
            #expect(store.failure != nil)
            try await store.put("bad")
            let cancelled = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                await store.check()
            }
            await cancelled.value
            #expect(store.failure != nil)
            await store.check()
            #expect(store.failure == nil, "\(change)")
        }
    }

    @Test("A lock held by another program delays commits, and fails them after 2 s; reads continue")
    func held() async throws {
        let store = try fixture.open()
        try await store.put("phone")
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path), configuration: configuration)
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN EXCLUSIVE") }
        let error = await #expect(throws: StoreError.self) { try await store.put("phone", version: 2) }
        #expect(error?.message.contains("is locked by another program") == true)
        #expect(store.failure?.contains("is locked by another program") == true)
        #expect(try store.version(of: "phone") == 1)
        try await other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        try await store.put("phone", version: 2)
        #expect(store.failure == nil)
    }

    @Test(
        "Concurrent commits and reads on a disk that fails at random: reported successes are stored, reported failures are not",
        arguments: 1...4)
    func atRandom(seed: UInt64) async throws {
        faults.seed(seed)
        let store = try fixture.open()
        faults.add(.code(ResultCode.SQLITE_FULL.rawValue), to: .write, of: .log, permille: 20)
        faults.add(.code(ResultCode.SQLITE_IOERR_FSYNC.rawValue), to: .sync, permille: 50)
        faults.add(.code(ResultCode.SQLITE_IOERR_WRITE.rawValue), to: .write, of: .database, permille: 50)
        let kept = await withTaskGroup(of: [String: Bool].self) { group in
            for worker in 0..<6 {
                group.addTask {
                    var kept: [String: Bool] = [:]
                    for index in 0..<50 {
                        let name = "\(worker) \(index)"
                        kept[name] = (try? await store.put(name)) != nil
                        if index.isMultiple(of: 20) { await store.maintain() }
                    }
                    return kept
                }
            }
            return await group.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
        }
        #expect(Set(kept.values) == [true, false], "seed \(seed)")
        faults.clear()
        for (name, isKept) in kept { #expect((try store.version(of: name) != nil) == isKept, "seed \(seed): \(name)") }
        try store.close()
        let reopened = try fixture.open()
        for (name, isKept) in kept { #expect((try reopened.version(of: name) != nil) == isKept, "seed \(seed): \(name)") }
    }

    @Test("A power failure loses no acknowledged change", arguments: 1...8)
    func powerCut(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        faults.seed(seed)
        faults.trackSyncs()
        let names = (0..<20).map(String.init)
        var versions: [String: Int64] = [:]
        for round in 1...6 {
            do {
                let store = try fixture.open()
                for (name, version) in versions {
                    let found = try store.version(of: name)
                    #expect(found ?? 0 >= version, "seed \(seed), round \(round)")
                    versions[name] = found
                }
                // One sync fails, and the power fails some commits later.
                faults.add(
                    .code(ResultCode.SQLITE_IOERR_FSYNC.rawValue), to: .sync, of: .log, after: Int.random(in: 0...20, using: &generator),
                    count: 1)
                for step in 0..<Int.random(in: 5...40, using: &generator) {
                    let name = names[(step * 7 + round) % names.count]
                    let version = (versions[name] ?? 0) + 1
                    if (try? await store.put(name, version: version)) != nil { versions[name] = version }
                    if Int.random(in: 0..<20, using: &generator) == 0 { await store.maintain() }
                }
                faults.kill()
            }
            faults.cutPower()
            faults.clear()
            faults.revive()
        }
        #expect(versions.count > 10)
    }
}
