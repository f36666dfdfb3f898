import Foundation
import GRDB
import PushStore
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// Nothing is acknowledged that was not kept, what is wrong is told, and what works again is noticed.
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
            Fault(name: "disk full", code: .SQLITE_FULL, operations: .write, complaint: "no room for the database"),
            Fault(name: "write error", code: .SQLITE_IOERR_WRITE, operations: .write, complaint: "the disk fails under the database"),
            Fault(name: "sync error", code: .SQLITE_IOERR_FSYNC, operations: .sync, complaint: "the disk fails under the database"),
            Fault(name: "read-only", code: .SQLITE_READONLY, operations: .write, complaint: "can't be written to"),
            Fault(name: "busy", code: .SQLITE_BUSY, operations: .lock, complaint: "is locked by another program"),
        ]
    }

    @Test("What can't be written is not acknowledged and not seen; reading goes on; it recovers", arguments: Fault.ofWriting)
    func writing(fault: Fault) async throws {
        let store = try fixture.open()
        let kept = StoreFixture.key("kept")
        try await store.register(kept)
        #expect(store.failure == nil)

        faults.add(.code(fault.code.rawValue), to: fault.operations)
        let lost = (0..<5).map { StoreFixture.key("lost \($0)") }
        let results = await store.commitEach(lost) { transaction, key in
            let registration = StoreFixture.registration(key)
            try transaction.store(registration, bytes: registration.encoded(), as: key, at: Timestamp(rawValue: 1))
        }
        for result in results { #expect(throws: StoreError.self) { try result.get() } }
        #expect(faults.hits > 0)
        #expect(store.failure?.contains(fault.complaint) == true, "\(store.failure ?? "nothing")")
        #expect(try store.read { try $0.state(of: kept) }?.version == 1)
        for key in lost { #expect(try store.read { try $0.state(of: key) } == nil) }

        faults.clear()
        try await store.register(kept, version: 2)
        #expect(store.failure == nil)
        try store.close()
        let reopened = try fixture.open()
        #expect(try reopened.read { try $0.state(of: kept) }?.version == 2)
        for key in lost { #expect(try reopened.read { try $0.state(of: key) } == nil) }
    }

    @Test("A fault in the middle of a commit: any write or sync of it may be the one that fails", arguments: Fault.ofWriting.prefix(4))
    func atAnyCall(fault: Fault) async throws {
        let store = try fixture.open()
        var version: UInt64 = 1
        let key = StoreFixture.key()
        try await store.register(key, version: version)
        for after in 0..<12 {
            faults.add(.code(fault.code.rawValue), to: fault.operations, of: .log, after: after, count: 1)
            do {
                try await store.register(key, version: version + 1)
                version += 1
            } catch is StoreError {
            }
            #expect(try store.read { try $0.state(of: key) }?.version == version)
            faults.clear()
        }
        try await store.register(key, version: version + 1)
        #expect(faults.hits > 0)
    }

    @Test("When the log can't be moved into the database, commits go on, and it is told")
    func checkpoint() async throws {
        let store = try fixture.open()
        faults.add(.code(ResultCode.SQLITE_IOERR_WRITE.rawValue), to: .write, of: .database)
        let key = StoreFixture.key()
        try await store.register(key)
        await store.keepUp()
        #expect(store.failure?.contains("the disk fails under the database") == true)
        try await store.register(key, version: 2)
        #expect(store.failure != nil)
        faults.clear()
        await store.keepUp()
        #expect(store.failure == nil)
        try store.close()
        #expect(try fixture.open().read { try $0.state(of: key) }?.version == 2)
    }

    @Test("What can't be read is told until all can be read again", arguments: [ResultCode.SQLITE_IOERR_READ, .SQLITE_CORRUPT])
    func reading(code: ResultCode) async throws {
        let key = StoreFixture.key()
        let first = try fixture.open()
        try await first.register(key)
        try first.close()

        let store = try fixture.open()
        faults.add(.code(code.rawValue), to: .read)
        // Opening has read some pages into memory already: those of this table it has not.
        #expect(throws: StoreError.self) { try store.read { try $0.state(of: key) } }
        #expect(store.failure?.contains("is damaged") == true)
        try await store.commit { try $0.setProperty("alive", [1]) }
        #expect(store.failure?.contains("is damaged") == true)
        await store.check()
        #expect(store.failure?.contains("is damaged") == true)
        faults.clear()
        #expect(store.failure?.contains("is damaged") == true)
        await store.check()
        #expect(store.failure == nil)
        #expect(try store.read { try $0.state(of: key) }?.version == 1)
    }

    @Test("A row that can't be read fails what concerns it, and nothing else; once it is replaced, all is well")
    func alteredRow() async throws {
        let store = try fixture.open()
        let (bad, good) = (StoreFixture.key("bad"), StoreFixture.key("good"))
        try await store.register(bad)
        try await store.register(good)
        for change in ["sealed = x'00112233'", "sealed = 7", "changed_at = 'then'", "version = x'ff'"] {
            let other = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
            try await other.write {
                try $0.execute(sql: "UPDATE registration SET \(change) WHERE installation = ?", arguments: [Data("bad".utf8)])
            }
            try other.close()
            let results = await store.commitEach([good, bad, good]) { transaction, key in try transaction.state(of: key)?.version }
            #expect(results.map { (try? $0.get()) != nil } == [true, false, true], "\(change)")
            #expect(store.failure?.contains("can't be opened: it was altered") == true)
            await store.check()
            #expect(store.failure != nil)
            try await store.register(bad)
            await store.check()
            #expect(store.failure == nil, "\(change)")
        }
    }

    @Test("Another program that holds the database delays commits, and fails them after 2 s; reading goes on")
    func held() async throws {
        let store = try fixture.open()
        let key = StoreFixture.key()
        try await store.register(key)
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path), configuration: configuration)
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN EXCLUSIVE") }
        let error = await #expect(throws: StoreError.self) { try await store.register(key, version: 2) }
        #expect(error?.message.contains("is locked by another program") == true)
        #expect(store.failure?.contains("is locked by another program") == true)
        #expect(try store.read { try $0.state(of: key) }?.version == 1)
        try await other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        try await store.register(key, version: 2)
        #expect(store.failure == nil)
    }

    @Test(
        "Commits and reads by many, and a disk that fails at random: who was told success finds it, who was told failure does not",
        arguments: 1...4)
    func atRandom(seed: UInt64) async throws {
        faults.seed(seed)
        let store = try fixture.open()
        let owner = PrivateKey.generate()
        faults.add(.code(ResultCode.SQLITE_FULL.rawValue), to: .write, of: .log, permille: 20)
        faults.add(.code(ResultCode.SQLITE_IOERR_FSYNC.rawValue), to: .sync, permille: 50)
        faults.add(.code(ResultCode.SQLITE_IOERR_WRITE.rawValue), to: .write, of: .database, permille: 50)
        let kept = await withTaskGroup(of: [RegistrationKey: Bool].self) { group in
            for worker in 0..<6 {
                group.addTask {
                    var kept: [RegistrationKey: Bool] = [:]
                    for index in 0..<50 {
                        let key = StoreFixture.key("\(worker) \(index)", of: owner)
                        kept[key] = (try? await store.register(key)) != nil
                        if index.isMultiple(of: 20) { await store.keepUp() }
                    }
                    return kept
                }
            }
            return await group.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
        }
        #expect(Set(kept.values) == [true, false], "seed \(seed)")
        faults.clear()
        for (key, isKept) in kept {
            #expect((try store.read { try $0.state(of: key) } != nil) == isKept, "seed \(seed): \(key.installationID.string)")
        }
        try store.close()
        let reopened = try fixture.open()
        for (key, isKept) in kept {
            #expect((try reopened.read { try $0.state(of: key) } != nil) == isKept, "seed \(seed): \(key.installationID.string)")
        }
    }

    @Test("A power cut loses nothing that was acknowledged", arguments: 1...8)
    func powerCut(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        faults.seed(seed)
        faults.trackSyncs()
        let owner = PrivateKey.generate()
        let keys = (0..<20).map { StoreFixture.key("\($0)", of: owner) }
        var versions: [RegistrationKey: UInt64] = [:]
        for round in 1...6 {
            do {
                let store = try fixture.open()
                for (key, version) in versions {
                    let found = try store.read { try $0.state(of: key) }?.version
                    #expect(found ?? 0 >= version, "seed \(seed), round \(round)")
                    versions[key] = found
                }
                // One sync fails before the power goes, after some commits more.
                faults.add(
                    .code(ResultCode.SQLITE_IOERR_FSYNC.rawValue), to: .sync, of: .log, after: Int.random(in: 0...20, using: &generator),
                    count: 1)
                for step in 0..<Int.random(in: 5...40, using: &generator) {
                    let key = keys[(step * 7 + round) % keys.count]
                    let version = (versions[key] ?? 0) + 1
                    if (try? await store.register(key, version: version)) != nil { versions[key] = version }
                    if Int.random(in: 0..<20, using: &generator) == 0 { await store.keepUp() }
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
