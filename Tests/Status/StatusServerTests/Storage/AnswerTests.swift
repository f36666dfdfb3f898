import Core
import StatusProtocol
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import StatusServer

@Suite("Stored answers and topic keys")
struct AnswerTests {
    let fixture: StatusStoreFixture
    var store: SQLiteStore { fixture.store }

    init() throws {
        fixture = try StatusStoreFixture()
    }

    @Test("The first answer to a message is kept")
    func answers() async throws {
        try await store.commit(.change([AnswerStorage.remember([1, 2], to: [7], at: Timestamp(rawValue: 1))]))
        try await store.commit(.change([AnswerStorage.remember([9], to: [7], at: Timestamp(rawValue: 2))]))
        #expect(try store.read(AnswerStorage.answer(to: [7])) == [1, 2])
        #expect(try store.read(AnswerStorage.answer(to: [8])) == nil)
    }

    @Test("Answers are pruned by age and by count, oldest first")
    func pruned() async throws {
        for index in 0..<10 as Range<UInt8> {
            try await store.commit(.change([AnswerStorage.remember([0], to: [index], at: Timestamp(rawValue: Int64(index)))]))
        }
        func known() throws -> [UInt8] { try (0..<10).filter { try store.read(AnswerStorage.answer(to: [$0])) != nil } }
        try await store.prune(AnswerStorage.rows, before: Timestamp(rawValue: 3), at: Timestamp(rawValue: 100), keeping: 100)
        #expect(try known() == Array(3..<10))
        try await store.prune(AnswerStorage.rows, before: Timestamp(rawValue: 0), at: Timestamp(rawValue: 100), keeping: 2)
        #expect(try known() == [8, 9])
        try await store.prune(AnswerStorage.rows, before: Timestamp(rawValue: 100), at: Timestamp(rawValue: 100), keeping: 100)
        #expect(try known() == [])
    }

    @Test("A topic's key is replaced, and can be decrypted only for its topic")
    func topicKeys() async throws {
        let (first, second) = (SymmetricKey.random(), SymmetricKey.random())
        for key in [first, second] { try await store.keep(key, of: "a topic") }
        let kept = try #require(try store.topicKey("a topic"))
        #expect(Sealer(storageKey: kept, salt: nil).opensCheck(Sealer(storageKey: second, salt: nil).sealCheck()))
        #expect(try store.topicKey("another topic") == nil)
    }

    @Test("A rotation of the storage key deletes topic keys, which can be derived again, and keeps registrations")
    func rotation() async throws {
        let key = StatusStoreFixture.key()
        try await store.register(key, token: "token")
        try await store.keep(.random(), of: "a topic")
        try store.close()
        let folder = try DataFolder(locking: fixture.folder.path)
        #expect(try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: StatusStoreFixture.parts) == 1)
        let reopened = try fixture.reopened()
        #expect(try reopened.topicKey("a topic") == nil)
        #expect(try reopened.state(of: key)?.registration?.deviceToken.revealed == "token")
        try await reopened.keep(.random(), of: "a topic")
        #expect(try reopened.topicKey("a topic") != nil)
    }
}
