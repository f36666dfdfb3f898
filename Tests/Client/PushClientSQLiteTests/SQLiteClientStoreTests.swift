import Foundation
import GRDB
import PushClient
import PushClientSQLite
import TestSupport
import Testing
import WakuCrypto

@Suite struct SQLiteClientStoreTests {
    private let identity = PrivateKey.generate()
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private var path: String { folder.path + "/state" }
    private var file: String { path + "/client.sqlite" }

    private func code(_ body: () throws -> Void) -> ClientStoreError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? ClientStoreError)?.code
        }
    }

    @Test func committedValuesAreThereAfterReopening() async throws {
        do {
            let store = try SQLiteClientStore(folder: path, identity: identity)
            try await store.commit(["own": [1, 2], "server/a": [3], "message/b": [4]])
            let changes: [String: [UInt8]?] = ["own": [9], "server/a": nil]
            try await store.commit(changes)
        }
        let store = try SQLiteClientStore(folder: path, identity: identity)
        #expect(try await store.load() == ["own": [9], "message/b": [4]])
    }

    @Test func nameThatIsTooLongIsRefused() async throws {
        let store = try SQLiteClientStore(folder: path, identity: identity)
        let longest = String(repeating: "n", count: Int(UInt16.max))
        try await store.commit([longest: [1]])
        await #expect(throws: ClientStoreError.self) { try await store.commit([longest + "n": [2], "own": [3]]) }
        #expect(try await store.load() == [longest: [1]])
    }

    @Test func commitsAreDurable() async throws {
        let pragmas = try await SQLiteClientStore(folder: path, identity: identity).pragmas()
        #expect(pragmas.synchronous == 2 && pragmas.journal == "wal")
    }

    @Test func filesAreForTheirOwnerAlone() async throws {
        let store = try SQLiteClientStore(folder: path, identity: identity)
        try await store.commit(["own": [1]])
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
        #expect(names.contains("client.sqlite-wal"))
        for name in names {
            let mode = try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(name)")
        }
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o700)
    }

    @Test func stateThatOthersMayReadIsRefused() throws {
        do { _ = try SQLiteClientStore(folder: path, identity: identity) }
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        #expect(code { _ = try SQLiteClientStore(folder: path, identity: identity) } == .permission)
    }

    @Test func namesAndValuesAreSealed() async throws {
        let secret = Array("a-device-token-that-nobody-is-to-see".utf8)
        do {
            let store = try SQLiteClientStore(folder: path, identity: identity)
            try await store.commit(["registrant/of-a-friend": secret])
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
            #expect(bytes.range(of: Data(secret)) == nil && bytes.range(of: Data("of-a-friend".utf8)) == nil)
        }
    }

    /// SQLite stores a value of any type in any column: the record's header decides, of which one bit may be enough.
    @Test(arguments: ["body = 5", "body = 1.5", "body = 'x'", "name = 7", "name = 'x'"])
    func valueOfAnotherTypeIsReportedAsDamage(change: String) async throws {
        try await SQLiteClientStore(folder: path, identity: identity).commit(["own": [1]])
        try await DatabaseQueue(path: file).write { try $0.execute(sql: "UPDATE record SET \(change)") }
        let store = try SQLiteClientStore(folder: path, identity: identity)
        let error = await #expect(throws: ClientStoreError.self) { try await store.load() }
        #expect(error?.code == .damaged)
    }

    @Test func secondClientGetsOneClearError() throws {
        let store = try SQLiteClientStore(folder: path, identity: identity)
        do {
            _ = try SQLiteClientStore(folder: path, identity: identity)
            Issue.record("two clients have one state")
        } catch {
            #expect(error.code == .locked && error.message.contains(path) && error.message.contains("another process"))
        }
        withExtendedLifetime(store) {}
    }

    @Test func lockGoesWithTheStore() throws {
        do { _ = try SQLiteClientStore(folder: path, identity: identity) }
        #expect(throws: Never.self) { try SQLiteClientStore(folder: path, identity: identity) }
    }

    @Test func stateOfAnotherIdentityIsRefused() throws {
        do { _ = try SQLiteClientStore(folder: path, identity: identity) }
        #expect(code { _ = try SQLiteClientStore(folder: path, identity: .generate()) } == .otherIdentity)
    }

    @Test func fileThatIsNoDatabaseIsDamagedAndKept() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let junk = Data(repeating: 7, count: 8192)
        #expect(FileManager.default.createFile(atPath: file, contents: junk, attributes: [.posixPermissions: 0o600]))
        #expect(code { _ = try SQLiteClientStore(folder: path, identity: identity) } == .damaged)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == junk)
    }

    @Test func damagedRecordIsReportedAndNothingIsLost() async throws {
        do {
            let store = try SQLiteClientStore(folder: path, identity: identity)
            try await store.commit(["own": [1, 2, 3], "server/a": [4]])
        }
        do {
            let database = try DatabaseQueue(path: file)
            try await database.write {
                try $0.execute(
                    sql:
                        "UPDATE record SET body = x'00112233445566778899aabbccddeeff00112233445566778899aabb' WHERE name = (SELECT min(name) FROM record)"
                )
            }
        }
        let store = try SQLiteClientStore(folder: path, identity: identity)
        await #expect(throws: ClientStoreError.self) { try await store.load() }
    }

    @Test func recordsCannotBeExchanged() async throws {
        do {
            let store = try SQLiteClientStore(folder: path, identity: identity)
            try await store.commit(["own": [1], "server/a": [2]])
        }
        do {
            let database = try DatabaseQueue(path: file)
            try await database.write { db in
                try db.execute(sql: "UPDATE record SET body = (SELECT body FROM record ORDER BY name DESC LIMIT 1)")
            }
        }
        let store = try SQLiteClientStore(folder: path, identity: identity)
        await #expect(throws: ClientStoreError.self) { try await store.load() }
    }

    @Test func laterVersionsFileIsRefused() async throws {
        do { _ = try SQLiteClientStore(folder: path, identity: identity) }
        do {
            let database = try DatabaseQueue(path: file)
            try await database.write { try $0.execute(sql: "PRAGMA user_version = 2") }
        }
        #expect(code { _ = try SQLiteClientStore(folder: path, identity: identity) } == .newer)
    }

    /// A copy of the file and its log at any moment, as a kill leaves them, opens with whole commits.
    @Test func copyOfTheFilesAtAnyMomentHoldsWholeCommits() async throws {
        let store = try SQLiteClientStore(folder: path, identity: identity)
        for round in UInt8(1)...20 {
            try await store.commit(["a": [round], "b": [round]])
            let copy = folder.path + "/copy-\(round)"
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            let values = try await SQLiteClientStore(folder: copy, identity: identity).load()
            #expect(values == ["a": [round], "b": [round]])
        }
    }
}
