import Foundation
import GRDB
import PushStore
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("Registrations in the store")
struct RegistrationStorageTests {
    let fixture: StoreFixture
    var store: Store { fixture.store }

    init() throws {
        fixture = try StoreFixture()
    }

    @Test("Nothing is known of an installation that never came")
    func unknown() throws {
        #expect(try store.read { try $0.state(of: StoreFixture.key()) } == nil)
    }

    @Test("A registration comes back as it went in, also after the store was opened again")
    func survivesReopening() async throws {
        let key = StoreFixture.key()
        try await store.register(key, version: 7, at: Timestamp(rawValue: 99))
        let expected = StoredRegistration(
            key: key, registration: StoreFixture.registration(key, version: 7), storedAt: Timestamp(rawValue: 99))
        #expect(try store.read { try $0.state(of: key) } == .registered(expected))
        try store.close()
        #expect(try fixture.reopened().read { try $0.state(of: key) } == .registered(expected))
    }

    @Test("Versions keep all their 64 bits", arguments: [1, UInt64(Int64.max), 1 << 63, .max])
    func versions(version: UInt64) async throws {
        let key = StoreFixture.key()
        try await store.register(key, version: version)
        #expect(try store.read { try $0.state(of: key) }?.version == version)
        try await store.commit { try $0.unregister(key, version: version, at: Timestamp(rawValue: 2)) }
        #expect(try store.read { try $0.state(of: key) } == .tombstone(version: version))
    }

    @Test("Installation ids with embedded NULs are different ids")
    func embeddedNul() async throws {
        let owner = PrivateKey.generate()
        try await store.register(StoreFixture.key("a\0b", of: owner), version: 3)
        #expect(try store.read { try $0.state(of: StoreFixture.key("a", of: owner)) } == nil)
        #expect(try store.read { try $0.state(of: StoreFixture.key("a\0b", of: owner)) }?.version == 3)
    }

    @Test("All installations of a registrant are found, and of no other; tombstones are not among them")
    func installations() async throws {
        let owner = PrivateKey.generate()
        for name in ["one", "two", "three"] { try await store.register(StoreFixture.key(name, of: owner)) }
        try await store.register(StoreFixture.key("one"))
        try await store.commit { try $0.unregister(StoreFixture.key("two", of: owner), version: 2, at: Timestamp(rawValue: 2)) }
        func found(atMost limit: Int) throws -> [String] {
            try store.read { transaction in
                var found: [String] = []
                try transaction.forEachRegistration(of: KeyHash(of: owner.publicKey)) { stored in
                    found.append(stored.key.installationID.string)
                    return found.count < limit
                }
                return found
            }
        }
        // The most recently changed first.
        #expect(try found(atMost: 10) == ["three", "one"])
        #expect(try found(atMost: 1) == ["three"])
    }

    @Test("Unregistering leaves key hash, installation and version, and nothing else")
    func tombstone() async throws {
        let key = StoreFixture.key()
        try await store.register(key, token: "tombstone-token")
        try await store.commit { try $0.unregister(key, version: 5, at: Timestamp(rawValue: 2)) }
        try store.close()
        let queue = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
        let left = try await queue.read { db in
            try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM registration WHERE version = 5 AND platform IS NULL AND query_topic IS NULL
                    AND published_query_topic IS NULL AND sealed IS NULL
                    """)
        }
        #expect(left == 1)
    }

    @Test(
        "Tombstones of what was never registered are forgotten after a while; those of what was registered stay, and refuse what is older")
    func unfounded() async throws {
        let (registered, never, anew) = (StoreFixture.key(), StoreFixture.key(), StoreFixture.key())
        try await store.register(registered, version: 1)
        try await store.commit { transaction in
            try transaction.unregister(registered, version: 2, at: Timestamp(rawValue: 10))
            try transaction.unregister(never, version: 2, at: Timestamp(rawValue: 10))
            try transaction.unregister(anew, version: 2, at: Timestamp(rawValue: 10))
        }
        #expect(try store.read { try $0.head(of: never)?.isUnfounded } == true)
        #expect(try store.read { try $0.countedInstallations(of: never.keyHash) } == 1)
        #expect(try store.read { try $0.countedInstallations(of: registered.keyHash) } == 0)
        #expect(try store.read { try $0.countedRegistrations() } == 2)
        // Registered after all, and unregistered again: now it stays.
        try await store.register(anew, version: 3)
        try await store.commit { try $0.unregister(anew, version: 4, at: Timestamp(rawValue: 11)) }
        #expect(try await store.commit { try $0.forgetUnfounded(before: Timestamp(rawValue: 10), limit: 10) } == 0)
        #expect(try await store.commit { try $0.forgetUnfounded(before: Timestamp(rawValue: 1_000), limit: 10) } == 1)
        #expect(try store.read { try $0.state(of: never) } == nil)
        #expect(try store.read { try $0.state(of: registered)?.version } == 2)
        #expect(try store.read { try $0.state(of: anew)?.version } == 4)
        // Imported tombstones are of what was registered elsewhere.
        let imported = StoreFixture.key()
        let record = RegistrationRecord(key: imported, version: 7, changedAt: Timestamp(rawValue: 1), registration: nil)
        #expect(try await store.commit { try $0.merge(record) })
        #expect(try await store.commit { try $0.forgetUnfounded(before: Timestamp(rawValue: 1_000), limit: 10) } == 0)
    }

    @Test("Unregistering takes doubts about the token along, and with the last installation the keys of the registrant's topics")
    func unregistrationLeavesNothing() async throws {
        let phone = StoreFixture.key("phone")
        let tablet = RegistrationKey(keyHash: phone.keyHash, installationID: InstallationID("tablet"))
        for key in [phone, tablet] { try await store.register(key) }
        let topics = [StatusTopics.query(phone.keyHash), StatusTopics.publishedQuery(phone.keyHash)]
        try await store.commit { transaction in
            for topic in topics { try transaction.keep(SymmetricKey.random(), of: topic) }
            for id in [1, 2] as [Int64] {
                try transaction.setDoubt(
                    TokenDoubt(
                        version: 1, failureCount: 1, firstFailure: Timestamp(rawValue: 1), lastFailure: Timestamp(rawValue: 1),
                        unfailedSince: nil), of: id)
            }
        }
        try await store.commit { try $0.unregister(phone, version: 2, at: Timestamp(rawValue: 2)) }
        #expect(try store.read { try [$0.doubt(of: 1) == nil, $0.doubt(of: 2) == nil] } == [true, false])
        #expect(try store.read { try $0.topicKey(topics[0]) } != nil)
        try await store.commit { try $0.unregister(tablet, version: 2, at: Timestamp(rawValue: 2)) }
        #expect(try store.read { try $0.hasDoubts() } == false)
        for topic in topics { #expect(try store.read { try $0.topicKey(topic) } == nil) }
    }

    @Test("A row that can't be opened expires like any other, and keeps none from it")
    func unreadableRowsExpire() async throws {
        let keys = (0..<3).map { _ in StoreFixture.key() }
        for key in keys { try await store.register(key, version: 4) }
        try store.close()
        let queue = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
        try await queue.write { try $0.execute(sql: "UPDATE registration SET sealed = x'00' WHERE id = 1") }
        try queue.close()
        let reopened = try fixture.reopened()
        let (cutoff, now) = (Timestamp(rawValue: 100), Timestamp(rawValue: 200))
        let old = try reopened.read { try $0.registrations(unchangedSince: cutoff) }
        #expect(old == keys)
        let ended = try await reopened.commit { transaction in
            try old.filter { try transaction.expire($0, unchangedSince: cutoff, at: now) }
        }
        #expect(ended == keys)
        for key in keys { #expect(try reopened.read { try $0.state(of: key)?.version } == 4) }
        #expect(try reopened.read { try $0.registrationCount() } == 0)
    }

    @Test("Handled messages are remembered for a while, and no more than there is room for")
    func handledMessages() async throws {
        let hashes = (0..<3).map { MessageHash(bytes: [UInt8](repeating: UInt8($0), count: 32)) }
        for (index, hash) in hashes.enumerated() {
            try await store.commit { try $0.remember(handled: [hash], at: Timestamp(rawValue: Int64(index))) }
        }
        #expect(try store.read { try $0.handledMessages() } == hashes)
        try await store.commit { try $0.forgetHandled(before: Timestamp(rawValue: 1)) }
        #expect(try store.read { try $0.handledMessages() } == [hashes[1], hashes[2]])
        let many = (0..<100_000).map { _ in hashes[0] }
        for time in [5, 6, 7] as [Int64] { try await store.commit { try $0.remember(handled: many, at: Timestamp(rawValue: time)) } }
        try await store.commit { try $0.forgetHandled(before: Timestamp(rawValue: 0)) }
        #expect(try store.read { try $0.handledMessages().count } == 100_000)
    }

    @Test("Registrants without a topic key are found, the newest first, in parts")
    func withoutTopicKey() async throws {
        let keys = (0..<5).map { _ in StoreFixture.key() }
        for key in keys { try await store.register(key) }
        // A second device of the first one, and one that is gone.
        try await store.register(RegistrationKey(keyHash: keys[0].keyHash, installationID: InstallationID("tablet")))
        try await store.commit { try $0.unregister(keys[3], version: 2, at: Timestamp(rawValue: 2)) }
        let topic = StatusTopics.query(keys[2].keyHash)
        try await store.commit { try $0.keep(SymmetricKey.random(), of: topic) }
        let hashes = keys.map(\.keyHash)
        let all = try store.read { try $0.registrantsWithoutTopicKey(before: nil, limit: 100) }
        #expect(all.registrants == [hashes[0], hashes[4], hashes[1]] && all.next == nil)
        let first = try store.read { try $0.registrantsWithoutTopicKey(before: nil, limit: 3) }
        #expect(first.registrants == [hashes[0], hashes[4]])
        let second = try store.read { try $0.registrantsWithoutTopicKey(before: first.next, limit: 3) }
        #expect(second.registrants == [hashes[1], hashes[0]] && second.next == nil)
    }

    @Test("Four bytes of a topic find their registrants, in the form that fits; several on one topic are all found")
    func topics() async throws {
        let key = StoreFixture.key()
        try await store.register(key)
        let topics = QueryTopics(of: key.keyHash)
        #expect(try store.read { try $0.queryTopics(withTag: topics.deployed) } == [key.keyHash.hex])
        #expect(try store.read { try $0.queryTopics(withTag: topics.published) } == ["0x" + key.keyHash.hex])

        // Nobody finds two keys that share four bytes in a test's time: another registrant is moved to the topic by hand.
        let other = StoreFixture.key()
        try await store.register(other)
        try store.close()
        let queue = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
        try await queue.write {
            try $0.execute(
                sql: "UPDATE registration SET query_topic = ? WHERE key_hash = ?",
                arguments: [Int64(topics.deployed.rawValue), Data(other.keyHash.bytes)])
        }
        try queue.close()
        let found = try fixture.reopened().read { try $0.queryTopics(withTag: topics.deployed) }
        #expect(Set(found) == [key.keyHash.hex, other.keyHash.hex])
    }

    @Test("The topics of all who are registered are listed, of those who left not")
    func topicList() async throws {
        let stays = StoreFixture.key(), leaves = StoreFixture.key()
        try await store.register(stays)
        try await store.register(leaves)
        try await store.commit { try $0.unregister(leaves, version: 2, at: Timestamp(rawValue: 2)) }
        var tags: Set<TopicTag> = []
        try store.read { try $0.forEachQueryTopic { tags.insert($0) } }
        #expect(tags == [QueryTopics(of: stays.keyHash).deployed, QueryTopics(of: stays.keyHash).published])
    }

    @Test("The files disclose no device token, and nobody else may read them")
    func sealed() async throws {
        let token = "a-token-that-must-not-be-found"
        try await store.register(StoreFixture.key(), token: token)
        for file in try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path) {
            let path = fixture.folder.path + "/" + file
            let content = try #require(FileManager.default.contents(atPath: path))
            #expect(content.range(of: Data(token.utf8)) == nil, "\(file) holds the token")
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(try #require(mode) & 0o077 == 0, "\(file) can be read by others")
        }
    }

    @Test("A row that was moved to another installation does not open")
    func bound() async throws {
        let key = StoreFixture.key("mine"), other = StoreFixture.key("theirs")
        try await store.register(key)
        try await store.register(other)
        try store.close()
        let queue = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
        try await queue.write {
            try $0.execute(sql: "UPDATE registration SET sealed = (SELECT sealed FROM registration WHERE id = 1) WHERE id = 2")
        }
        try queue.close()
        let reopened = try fixture.reopened()
        #expect(throws: StoreError.self) { try reopened.read { try $0.state(of: other) } }
        #expect(try reopened.read { try $0.state(of: key) } != nil)
    }
}
