import Foundation
import GRDB
import PushStore
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("Rotation of the storage key", .timeLimit(.minutes(5)))
struct StorageKeyRotationTests {
    /// A store with registrations, a tombstone, a notification and topic keys, closed.
    private func filled() async throws -> (StoreFixture, [RegistrationKey]) {
        let fixture = try StoreFixture()
        let keys = (0..<700).map { StoreFixture.key("phone-\($0)") }
        for key in keys { try await fixture.store.register(key, token: "token-of-\(key.installationID)") }
        try await fixture.store.commit { transaction in
            try transaction.unregister(keys[0], version: 2, at: .now())
            let topic = StatusTopics.query(keys[1].keyHash)
            try transaction.keep(.random(), of: topic)
            try transaction.keep(.random(), of: "of somebody who is gone")
        }
        _ = try await fixture.store.enqueue(DeliveryID(messageID: [1], key: keys[1]), keys[1])
        try fixture.store.close()
        return (fixture, keys)
    }

    private func sealed(_ path: String) throws -> [Data] {
        try DatabaseQueue(path: path).read { db in
            try Data.fetchAll(
                db,
                sql: """
                    SELECT sealed FROM registration WHERE sealed IS NOT NULL UNION ALL SELECT sealed FROM outbox
                    UNION ALL SELECT sealed FROM topic_key UNION ALL SELECT value FROM property WHERE name LIKE 'storage key%'
                    """)
        }
    }

    @Test func allIsSealedAnewAndNothingElseChanges() async throws {
        let (fixture, keys) = try await filled()
        let path = DataFolder.databasePath(in: fixture.folder.path)
        let folder = try DataFolder(locking: fixture.folder.path)
        for _ in 0..<2 {
            let before = try sealed(path)
            #expect(try StorageKeyRotation.run(Store.storageKey(of: fixture.identity), in: folder) == 699 + 1 + 1)
            // Neither what was sealed with the old key nor what the old key came from is anywhere.
            let files = ["", "-wal"].map { (try? Data(contentsOf: URL(fileURLWithPath: path + $0))) ?? Data() }
            for old in before { for file in files { #expect(file.firstRange(of: old) == nil) } }
            let after = try sealed(path)
            #expect(Set(before).isDisjoint(with: after))
        }
        let store = try fixture.reopened()
        let isWithout = try store.read { transaction in
            for key in keys.dropFirst() {
                guard case .registered(let stored)? = try transaction.state(of: key) else { Issue.record("gone"); continue }
                #expect(stored.registration.deviceToken.revealed == "token-of-\(key.installationID)")
            }
            guard case .tombstone(version: 2)? = try transaction.state(of: keys[0]) else { return false }
            #expect(try transaction.topicKey(StatusTopics.query(keys[1].keyHash)) != nil)
            return try transaction.topicKey("of somebody who is gone") == nil
        }
        #expect(isWithout)
        #expect(try store.entry(1)?.notification.message == [1, 2])
        try store.close()
    }

    @Test func aRowThatCannotBeOpenedStopsIt() async throws {
        let (fixture, _) = try await filled()
        let path = DataFolder.databasePath(in: fixture.folder.path)
        let database = try DatabaseQueue(path: path)
        try await database.write { try $0.execute(sql: "UPDATE registration SET version = 99 WHERE id = 600") }
        try database.close()
        let before = try sealed(path)
        let folder = try DataFolder(locking: fixture.folder.path)
        let error = #expect(throws: StoreError.self) {
            try StorageKeyRotation.run(Store.storageKey(of: fixture.identity), in: folder)
        }
        #expect(error?.code == .damaged)
        #expect(try sealed(path) == before)
    }

    @Test func anotherIdentity() async throws {
        let (fixture, _) = try await filled()
        let folder = try DataFolder(locking: fixture.folder.path)
        let other = Store.storageKey(of: .generate())
        #expect(throws: StoreError.self) { try StorageKeyRotation.run(other, in: folder) }
        _ = try StorageKeyRotation.run(Store.storageKey(of: fixture.identity), in: folder)
        let error = #expect(throws: StoreError.self) { try Store(folder: fixture.folder.path, storageKey: other) }
        #expect(error?.code == .otherIdentity)
    }
}
